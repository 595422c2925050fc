"""Data of every Arrow type that has a plain twin is taken like the twin: by every method, in every form of input.

Frames of pandas and Polars are such data; values that Arrow has no type for are refused by their column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.storage import MemoryStore
from tests.support.odd_types import LEAVES, ROWS, tables
from tests.support.rows import assert_same_rows
from tests.support.tables import new_table, values_of

PLAIN, ODD = tables(13)
FEW_PLAIN, FEW_ODD = tables(61)


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


def created(schema: Any, **options: Any) -> hoodie.Table:
    """A new table with the columns of the data."""
    return hoodie.create(MemoryStore().uri(""), schema, **{"record_key": "id", "spark": False, **options})


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
    """A few types: all are proved by each write below, and one by one in `unit/format/schema/test_plain_types.py`."""
    # Arrow's own scan of data in memory fails for types of a program.
    names = [name for name in FEW_PLAIN.column_names if kind not in ("dataset", "scanner") or "own_type" not in name]
    plain, odd = FEW_PLAIN.select(names), FEW_ODD.select(names)
    table = created(INPUTS[kind](odd))
    for write in ("bulk_insert", "merge", "upsert"):
        WRITES[write](table, INPUTS[kind](odd))
        assert_same_rows(table.to_arrow(columns=names), plain, key="id")
    assert table.filter_exists(INPUTS[kind](odd)).num_rows == 0
    assert table.read_keys(INPUTS[kind](odd.select(["id"]))).num_rows == ROWS
    assert table.record_locations(INPUTS[kind](odd))["file_id"].null_count == 0
    assert table.delete(INPUTS[kind](odd)).deleted == ROWS


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_every_write_takes_odd_types(write: str, table_type: str) -> None:
    table = new_table(PLAIN.schema, type=table_type)
    if "insert" not in write:
        WRITES["bulk_insert"](table, ODD.slice(0, 2))
    WRITES[write](table, ODD)
    assert_same_rows(table.to_arrow(columns=PLAIN.column_names), PLAIN, key="id")


@pytest.mark.parametrize("leaf", LEAVES)
def test_keys_and_partitions_may_have_odd_types(leaf: str) -> None:
    texts = pa.array(["a", "b", "c"])
    data = pa.table({"id": LEAVES[leaf](texts), "p": LEAVES[leaf](pa.array(["x", "y", "x"])), "x": [1, 2, 3]})
    table = created(data, partition_by="p")
    table.upsert(data.slice(1))
    assert table.filter_exists(data)["x"].to_pylist() == [1]
    assert table.upsert(data).inserted == 1
    assert table.upsert(data, partial=True).updated == 3
    merge = table.merge(data, "t.id = s.id AND t.p = s.p").when_matched_update({"x": "s.x"})
    assert merge.execute().updated == 3
    assert table.read_keys(data).num_rows == 3
    assert table.index.compare("record", "simple", data=data).ok
    assert table.delete(data.slice(2)).deleted == 1
    for keys in (data.column(0).chunk(0), data.column(0)):
        assert table.read_keys(keys).num_rows == 2
        assert table.record_locations(keys)["file_id"].null_count == 1
    assert table.delete(data.column(0).slice(1)).deleted == 1
    assert table.delete(data.column(0).chunk(0)).deleted == 1
    nested = pa.table({"m": pa.StructArray.from_arrays([data["id"].chunk(0)], ["id"]), "p": data["p"], "x": data["x"]})
    table = created(nested, record_key="m.id", partition_by="p")
    table.upsert(nested.slice(1))
    assert table.filter_exists(nested)["x"].to_pylist() == [1]
    assert table.read_keys(nested).num_rows == 2
    assert table.delete(nested).deleted == 2


def test_a_merge_joins_odd_types() -> None:
    for name, other in (
        ("view", pa.string_view()),
        ("coded", pa.dictionary(pa.int8(), pa.string())),
        ("b", pa.binary_view()),
    ):
        plain = pa.array(["a", "b"]) if name != "b" else pa.array([b"a", b"b"])
        stored = pa.table({"id": [1, 2], "j": plain, "x": [1, 1]})
        table = new_table(stored.schema, stored)
        source = pa.table({"j": plain.slice(1).cast(other), "x": [5]})
        table.merge(source, "t.j = s.j").when_matched_update({"x": "s.x"}).execute()
        assert values_of(table, "id", "x") == [(1, 1), (2, 5)]


def test_frames_of_pandas_are_taken_like_arrow() -> None:
    names = [name for name in ODD.column_names if "runs" not in name and "own" not in name]
    plain = PLAIN.select(names).drop_columns("data")
    frame = plain.to_pandas(types_mapper=pd.ArrowDtype)
    table = new_table(plain.schema)
    table.upsert(frame)
    assert_same_rows(table.to_arrow(columns=plain.column_names), plain, key="id")


def test_frames_of_polars_are_taken_like_arrow() -> None:
    texts = ["a", "b", None]
    frame = pl.DataFrame(
        {
            "id": ["k1", "k2", "k3"],
            "text": texts,
            "category": pl.Series(texts, dtype=pl.Categorical),
            "enum": pl.Series(texts, dtype=pl.Enum(["a", "b"])),
            "data": [b"\xff", None, b""],
            "list": [["a"], [], None],
            "categories": pl.Series([["a"], [None], None], dtype=pl.List(pl.Categorical)),
            "array": pl.Series([["a", "b"], ["c", None], None], dtype=pl.Array(pl.String, 2)),
            "struct": [{"f": "a", "g": ["b"]}, {"f": None, "g": None}, None],
        }
    )
    plain = pa.Table.from_pylist(frame.to_dicts())
    table = created(frame)
    columns = {name: frame[name] for name in frame.columns}
    replacing = [write for write in WRITES if write != "insert"]
    for data, writes in ((frame, replacing), (frame.lazy(), ["upsert"]), (columns, ["upsert"])):
        for write in writes:
            WRITES[write](table, data)
        found = table.to_arrow(columns=frame.columns)
        assert_same_rows(found, plain, key="id")
    assert table.read_keys(frame["id"]).num_rows == 3
    assert table.read_keys(frame["enum"].cast(pl.Categorical).drop_nulls()).num_rows == 0
    assert table.filter_exists(frame).num_rows == 0
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert hoodie.sql(None, statement, tables={"t": table, "s": frame}).updated == 3
    assert table.delete(frame.head(1)).deleted == 1


UNKNOWN: dict[str, Callable[[], pl.Series]] = {
    "Object": lambda: pl.Series([object()], dtype=pl.Object),
    "Int128": lambda: pl.Series([1], dtype=pl.Int128),
    "List(Int128)": lambda: pl.Series([[1]], dtype=pl.List(pl.Int128)),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_values_without_a_type_of_arrow_are_refused_by_their_column(kind: str) -> None:
    series = UNKNOWN[kind]()
    frame = pl.DataFrame({"id": ["a"], "odd": series})
    table = new_table(pa.schema([("id", pa.string()), ("odd", pa.binary())]))
    calls: list[Callable[[Any], Any]] = [*(partial(write, table) for write in WRITES.values())]
    calls += [table.filter_exists, table.read_keys, table.delete, table.record_locations]
    for data in (frame, frame.lazy(), {"id": ["a"], "odd": series}):
        for call in calls:
            with pytest.raises(hoodie.SchemaMismatchError, match="column 'odd': Arrow has no type"):
                call(data)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'odd': Arrow has no type"):
        created(frame)
    with pytest.raises(hoodie.SchemaMismatchError, match="column 'keys': Arrow has no type"):
        table.delete(series)
    with pytest.raises(hoodie.SchemaMismatchError, match="expected columns of Arrow's types"):
        table.upsert(frame["id"])
    assert not table.history().num_rows
