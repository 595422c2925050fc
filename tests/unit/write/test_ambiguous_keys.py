"""Keys of several fields that another record has too: refused in rows, look-ups and merges."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import RecordKeyError

REFUSED = [("1,b:2", "3"), ("1", "2,b:3"), ("__null__", "x"), ("x", "__empty__")]
HARMLESS = [("1", "3"), (None, "x"), ("x", ""), ("a:1,x", ",:"), ("b:,a:", "null"), ("__null", "__EMPTY__")]
Keys = Sequence[tuple[str | None, str | None]]
SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("v", pa.int64())])
NAMES = ["simple", "record", "bucket"]


def rows(keys: Keys) -> pa.Table:
    return pa.Table.from_pylist([{"a": a, "b": b, "v": n} for n, (a, b) in enumerate(keys)], SCHEMA)


def names(keys: Keys) -> pa.Table:
    return rows(keys).drop_columns(["v"])


def new_table(index: str = "simple", **options: Any) -> hoodie.Table:
    table = hoodie.create(
        f"memory://{uuid.uuid4()}", SCHEMA, record_key=["a", "b"], index=index, spark=False, **options
    )
    table.upsert(rows(HARMLESS))
    return table


def merge(table: hoodie.Table, bad: Keys) -> Any:
    return table.merge(rows(bad), on=["a", "b"]).when_matched_update_all().when_not_matched_insert_all().execute()


ACTS: dict[str, Callable[[hoodie.Table, Keys], Any]] = {
    "upsert": lambda table, bad: table.upsert(rows(bad)),
    "insert": lambda table, bad: table.insert(rows(bad)),
    "bulk_insert": lambda table, bad: table.bulk_insert(rows(bad)),
    "insert_overwrite": lambda table, bad: table.insert_overwrite(rows(bad)),
    "partial upsert": lambda table, bad: table.upsert(rows(bad), partial=True),
    "delete": lambda table, bad: table.delete(names(bad)),
    "delete tuples": lambda table, bad: table.delete([*bad]),
    "read_keys": lambda table, bad: table.read_keys(names(bad)),
    "record_locations": lambda table, bad: table.record_locations(names(bad)),
    "filter_exists": lambda table, bad: table.filter_exists(rows(bad)),
    "merge": merge,
}


@pytest.mark.matrix(keep=12)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("index", NAMES)
def test_every_act_refuses_them_by_name_and_leaves_no_trace(index: str, act: str) -> None:
    table = new_table(index)
    before = (table.timeline, table.to_arrow().num_rows)
    for bad in REFUSED:
        with pytest.raises(RecordKeyError, match=r"record key '[ab]': the text .* one key in 1 of"):
            ACTS[act](table, [("fine", "too"), bad])
    assert (table.timeline, table.to_arrow().num_rows) == before


@pytest.mark.matrix(keep=12)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("index", NAMES)
def test_every_act_takes_what_only_looks_like_them(index: str, act: str) -> None:
    ACTS[act](new_table(index), HARMLESS)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", NAMES)
def test_whole_keys_are_taken_as_they_are(index: str, table_type: str) -> None:
    table = new_table(index, type=table_type)
    assert table.read_keys(["a:1,b:3", "a:1,b:2,b:3"]).num_rows == 1
    assert table.delete(["a:1,b:2,b:3"]).deleted == 0
    assert table.delete(["a:__null__,b:x"]).deleted == 1
    assert table.delete(table.to_arrow().select(["_hoodie_record_key", "a", "b"])).deleted == len(HARMLESS) - 1
