"""Values that no argument expects, or only some: what a caller passes by mistake. Each case makes its value anew."""

from __future__ import annotations

import decimal
import uuid
from collections import namedtuple
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

LONG = "x" * 100_000
Pair = namedtuple("Pair", ["id", "n"])


class Hostile:
    """An object whose methods all fail."""

    def __getattr__(self, name: str) -> Any:
        raise ArithmeticError(f"no {name}")

    def __repr__(self) -> str:
        raise ArithmeticError("no text")

    def __str__(self) -> str:
        raise ArithmeticError("no text")


def _generator() -> Iterator[int]:
    yield 1


def _used(values: Iterator[Any]) -> Iterator[Any]:
    list(values)
    return values


def _recursive() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "5": lambda: 5,
    "-1": lambda: -1,
    "huge": lambda: 10**30,
    "an instant as a number": lambda: 20261125120000000,
    "seconds": lambda: 1_700_000_000,
    "1.5": lambda: 1.5,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "complex": lambda: 1j,
    "Decimal": lambda: decimal.Decimal("1.5"),
    "bytes": lambda: b"id",
    "wrong bytes": lambda: b"\xff\xfe",
    "no text": lambda: "",
    "blank": lambda: "  ",
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "a\ud800b",
    "control": lambda: "a\x1b[31m\n\r\x07",
    "long text": lambda: LONG,
    "quote": lambda: 'it\'s `x` "y"',
    "text of a number": lambda: "17",
    "not ASCII": lambda: "Zürich \N{PILE OF POO} \u202e",
    "path text": lambda: "../../etc/passwd",
    "condition": lambda: "n > 1",
    "empty list": lambda: [],
    "list": lambda: ["id"],
    "list of None": lambda: [None],
    "list of ints": lambda: [1, 2],
    "mixed list": lambda: ["a", 1, None, 1.5],
    "nested list": lambda: [["a"], [["b"]]],
    "list of dicts": lambda: [{"city": "x"}],
    "list of tuples": lambda: [("a", 0), ("b", 1)],
    "list with itself": _recursive,
    "tuple": lambda: ("id", "n"),
    "named tuple": lambda: Pair("a", 1),
    "set": lambda: {"id"},
    "dict": lambda: {"p": "x"},
    "dict of ints": lambda: {"n": 5},
    "dict of odd keys": lambda: {None: "x", 1: "y", b"z": []},
    "dict of dicts": lambda: {"n": {"m": {}}},
    "empty dict": dict,
    "generator": _generator,
    "used generator": lambda: _used(_generator()),
    "range": lambda: range(3),
    "iterator of text": lambda: iter(["a", "b"]),
    "pa.Table": lambda: pa.table({"z": [1]}),
    "pa.Schema": lambda: pa.schema([("z", pa.int64())]),
    "pa.DataType": lambda: pa.int64(),
    "pa.Scalar": lambda: pa.scalar("a"),
    "null scalar": lambda: pa.scalar(None),
    "pa.Array": lambda: pa.array([1, None]),
    "null array": lambda: pa.nulls(2),
    "struct array": lambda: pa.array([{"id": "a"}]),
    "expression": lambda: pc.field("n") > 2,
    "expression of nothing": lambda: pc.field("no such column") == 1,
    "Series": lambda: pd.Series(["a", None, 3]),
    "Index": lambda: pd.Index([1, 2]),
    "DataFrame": lambda: pd.DataFrame({"z": [1]}),
    "empty DataFrame": pd.DataFrame,
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
    "Timestamp": lambda: pd.Timestamp("2026-01-01T00:00:00.123456789"),
    "np.int64": lambda: np.int64(3),
    "np.bool": lambda: np.bool_(True),
    "np.str_": lambda: np.str_("id"),
    "datetime64": lambda: np.datetime64("2026-01-01"),
    "matrix": lambda: np.zeros((2, 2)),
    "naive datetime": lambda: datetime(2026, 1, 1),
    "aware datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "year 1": lambda: datetime(1, 1, 1, tzinfo=UTC),
    "year 9999": lambda: datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "date": lambda: date(2026, 1, 1),
    "last date": lambda: date.max,
    "time": lambda: time(1),
    "timedelta": lambda: timedelta(days=1),
    "UUID": lambda: uuid.UUID(int=5),
    "path": lambda: Path("folder") / "file",
    "class": lambda: dict,
    "function": lambda: lambda: 1,
    "function of rows": lambda: lambda older, newer: newer,
    "module": lambda: pa,
    "exception": lambda: ValueError("x"),
    "hostile": Hostile,
    "object": object,
    "ellipsis": lambda: ...,
}


def _failing_reader() -> pa.RecordBatchReader:
    batch = pa.record_batch({"id": ["a"], "m": [1], "p": ["x"], "n": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        raise ArithmeticError("the source failed")

    return pa.RecordBatchReader.from_batches(batch.schema, batches())


def _used_reader() -> pa.RecordBatchReader:
    reader = pa.table({"id": ["a"], "m": [1], "p": ["x"], "n": [1]}).to_reader()
    reader.read_all()
    return reader


def _closed_reader() -> pa.RecordBatchReader:
    reader = pa.table({"id": ["a"], "m": [1], "p": ["x"], "n": [1]}).to_reader()
    reader.close()
    return reader


def _rows(**columns: Any) -> pa.Table:
    return pa.table({"id": ["a"], "m": [1], "p": ["x"], "n": [1]} | columns)


class _FailingStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ArithmeticError("the stream failed")


class _FailingFrame:
    def collect(self) -> object:
        raise ArithmeticError("the query failed")


DATA: dict[str, Callable[[], Any]] = {
    "no rows": lambda: _rows().slice(1),
    "no columns": lambda: pa.table({}),
    "rows without columns": lambda: pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([]))),
    "without the key": lambda: pa.table({"p": ["x"], "n": [1]}),
    "without the partition": lambda: pa.table({"id": ["a"], "m": [1], "n": [1]}),
    "a column twice": lambda: pa.Table.from_arrays(
        [pa.array(["a"]), pa.array([1]), pa.array(["x"]), pa.array([1]), pa.array([2])], ["id", "m", "p", "n", "n"]
    ),
    "the key twice": lambda: pa.Table.from_arrays(
        [pa.array(["a"]), pa.array(["b"]), pa.array([1]), pa.array(["x"])], ["id", "id", "m", "p"]
    ),
    "names in other case": lambda: pa.table({"ID": ["a"], "M": [1], "P": ["x"], "N": [1]}),
    "null columns": lambda: pa.table({name: pa.nulls(2) for name in ("id", "m", "p", "n")}),
    "null values": lambda: _rows(n=pa.nulls(1)),
    "nested empties": lambda: _rows(n=pa.array([[]], pa.list_(pa.struct([])))),
    "struct for an integer": lambda: _rows(n=pa.array([{"x": 1}])),
    "text for an integer": lambda: _rows(n=["five"]),
    "float for an integer": lambda: _rows(n=[1.5]),
    "NaN for an integer": lambda: _rows(n=[float("nan")]),
    "huge integer": lambda: {"id": ["a"], "m": [1], "p": ["x"], "n": [2**70]},
    "mixed values": lambda: {"id": ["a", 2], "m": [1, 1], "p": ["x", None], "n": [1, "two"]},
    "objects": lambda: pd.DataFrame({"id": ["a", 2], "m": [1, 1], "p": ["x", object()], "n": [1, object()]}),
    "functions": lambda: [{"id": "a", "m": 1, "p": "x", "n": len}],
    "columns of other lengths": lambda: {"id": ["a", "b"], "m": [1], "p": ["x"], "n": [1]},
    "dicts of other keys": lambda: [{"id": "a", "m": 1, "p": "x"}, {"z": 1}],
    "odd names": lambda: [{1: "a", None: 1, b"p": "x"}],
    "empty dicts": lambda: [{}, {}],
    "a scalar column": lambda: {"id": "a", "m": 1, "p": "x", "n": 1},
    "column of sets": lambda: {"id": [{"a"}], "m": [1], "p": ["x"], "n": [1]},
    "MultiIndex": lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
    "a column of a frame twice": lambda: pd.DataFrame([["a", 1, "x", 1, 2]], columns=["id", "m", "p", "n", "n"]),
    "categories": lambda: pd.DataFrame({"id": ["a"], "m": [1], "p": pd.Categorical(["x"]), "n": [1]}),
    "complex numbers": lambda: pd.DataFrame({"id": ["a"], "m": [1], "p": ["x"], "n": [1j]}),
    "periods": lambda: pd.DataFrame({"id": ["a"], "m": [1], "p": ["x"], "n": [pd.Period("2026-01")]}),
    "big union": lambda: _rows(
        n=pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([5])])
    ),
    "durations": lambda: _rows(n=pa.array([5], pa.duration("s"))),
    "half floats": lambda: _rows(n=pa.array([np.float16(1)])),
    "months": lambda: _rows(n=pa.array([(1, 2, 3)], pa.month_day_nano_interval())),
    "wrong bytes as text": lambda: _rows(
        p=pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
        )
    ),
    "a new column": lambda: _rows(new=["x"]),
    "a new column of no name": lambda: _rows(**{"": ["x"]}),
    "a new column of odd name": lambda: _rows(**{"a.b c\0": ["x"]}),
    "failing reader": _failing_reader,
    "used reader": _used_reader,
    "closed reader": _closed_reader,
    "failing stream": _FailingStream,
    "failing frame": _FailingFrame,
    "lost data set": lambda: ds.FileSystemDataset.from_paths(
        ["no/such/file.parquet"], schema=_rows().schema, format=ds.ParquetFileFormat(), filesystem=_local()
    ),
    "good rows": _rows,
}


def _local() -> Any:
    from pyarrow import fs

    return fs.LocalFileSystem()
