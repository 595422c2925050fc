"""Data of every Arrow type that has a plain twin is taken like the twin: by every method, in every form of input."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hoodie
from tests.support.odd_types import LEAVES, ROWS, tables
from tests.support.rows import assert_same_rows

_numbers = itertools.count()
PLAIN, ODD = tables(13)


class Stream:
    """Data that is known by its Arrow stream only."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._rows.__arrow_c_stream__(requested_schema)


INPUTS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda rows: rows,
    "batch": lambda rows: rows.to_batches()[0],
    "reader": lambda rows: pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=3))),
    "stream": Stream,
    "dataset": lambda rows: ds.dataset(rows),
    "scanner": lambda rows: ds.dataset(rows).scanner(batch_size=3),
    "columns": lambda rows: {name: rows[name] for name in rows.column_names},
    "arrays": lambda rows: {name: rows[name].chunk(0) for name in rows.column_names},
}


def new_table(schema: pa.Schema = PLAIN.schema, **options: Any) -> hoodie.Table:
    chosen = {"record_key": "id", "spark": False, **options}
    return hoodie.create(f"memory://odd-types-{next(_numbers)}", schema, **chosen)


def merged(table: hoodie.Table, data: Any) -> Any:
    merge = table.merge(data, "t.id = s.id").when_matched_update_all("s.id > 'a'")
    return merge.when_not_matched_insert_all("s.id > 'a'").execute()


WRITES: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "upsert": lambda table, data: table.upsert(data),
    "insert": lambda table, data: table.insert(data),
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
    "partial upsert": lambda table, data: table.upsert(data, partial=True),
    "merge": merged,
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_form_of_data_may_have_odd_types(kind: str) -> None:
    # Arrow's own scan of data in memory fails for types of a program.
    names = [name for name in PLAIN.column_names if kind not in ("dataset", "scanner") or "own_type" not in name]
    plain, odd = PLAIN.select(names), ODD.select(names)
    table = new_table(INPUTS[kind](odd))
    for write in ("bulk_insert", "merge", "upsert"):
        WRITES[write](table, INPUTS[kind](odd))
        assert_same_rows(table.to_arrow(columns=names), plain, key="id")
    assert table.filter_exists(INPUTS[kind](odd)).num_rows == 0
    assert table.read_keys(INPUTS[kind](odd.select(["id"]))).num_rows == ROWS
    assert table.record_locations(INPUTS[kind](odd))["file_id"].null_count == 0
    assert table.delete(INPUTS[kind](odd)).deleted == ROWS


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("options", [{}, {"type": "merge_on_read"}], ids=["copy on write", "merge on read"])
def test_every_write_takes_odd_types(write: str, options: dict[str, Any]) -> None:
    table = new_table(**options)
    for _ in range(2 if "insert" not in write else 1):
        WRITES[write](table, ODD)
        assert_same_rows(table.to_arrow(columns=PLAIN.column_names), PLAIN, key="id")


@pytest.mark.parametrize("leaf", LEAVES)
def test_keys_and_partitions_may_have_odd_types(leaf: str) -> None:
    texts = pa.array(["a", "b", "c"])
    rows = pa.table({"id": LEAVES[leaf](texts), "p": LEAVES[leaf](pa.array(["x", "y", "x"])), "x": [1, 2, 3]})
    nested = pa.table({"m": pa.StructArray.from_arrays([rows["id"].chunk(0)], ["id"]), "p": rows["p"], "x": [1, 2, 3]})
    for data, key in ((rows, "id"), (nested, "m.id")):
        is_flat = key == "id"
        table = new_table(data, record_key=key, partition_by="p")
        table.upsert(data.slice(1))
        assert table.filter_exists(data)["x"].to_pylist() == [1]
        assert table.upsert(data).inserted == 1
        if is_flat:
            assert table.upsert(data, partial=True).updated == 3
            merge = table.merge(data, "t.id = s.id AND t.p = s.p").when_matched_update({"x": "s.x"})
            assert merge.execute().updated == 3
        assert table.read_keys(data).num_rows == 3
        assert table.index.compare("record", "simple", data=data).ok
        assert table.delete(data.slice(2)).deleted == 1
        for keys in (data.column(0).chunk(0), data.column(0)) if is_flat else ():
            assert table.read_keys(keys).num_rows == 2
            assert table.record_locations(keys)["file_id"].null_count == 1
            assert table.delete(keys.slice(1)).deleted == 1
            table.upsert(data.slice(1, 1))


def test_a_merge_joins_odd_types() -> None:
    for name, other in (
        ("view", pa.string_view()),
        ("coded", pa.dictionary(pa.int8(), pa.string())),
        ("b", pa.binary_view()),
    ):
        plain = pa.array(["a", "b"]) if name != "b" else pa.array([b"a", b"b"])
        table = new_table(pa.schema([("id", pa.int64()), ("j", plain.type), ("x", pa.int64())]))
        table.upsert(pa.table({"id": [1, 2], "j": plain, "x": [1, 1]}))
        source = pa.table({"j": plain.slice(1).cast(other), "x": [5]})
        table.merge(source, "t.j = s.j").when_matched_update({"x": "s.x"}).execute()
        assert sorted(table.to_arrow(columns=["id", "x"]).to_pylist(), key=lambda row: row["id"]) == [
            {"id": 1, "x": 1},
            {"id": 2, "x": 5},
        ]


def test_frames_of_pandas_are_taken_like_arrow() -> None:
    names = [name for name in ODD.column_names if "runs" not in name and "own" not in name]
    plain = PLAIN.select(names).drop_columns("data")
    frame = plain.to_pandas(types_mapper=pd.ArrowDtype)
    table = new_table(plain.schema)
    table.upsert(frame)
    assert_same_rows(table.to_arrow(columns=plain.column_names), plain, key="id")
