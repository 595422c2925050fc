"""Keys of several fields that another record has too: refused in rows, look-ups and merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import RecordKeyError
from tests.support import tables
from tests.support.tables import TYPES, table_of
from tests.unit.write.tables import untouched

REFUSED = [("1,b:2", "3"), ("1", "2,b:3"), ("__null__", "x"), ("x", "__empty__")]
HARMLESS = [("1", "3"), (None, "x"), ("x", ""), ("a:1,x", ",:"), ("b:,a:", "null"), ("__null", "__EMPTY__")]
Keys = Sequence[tuple[str | None, str | None]]
SCHEMA = pa.schema([("a", pa.string()), ("b", pa.string()), ("v", pa.int64())])
NAMES = ["simple", "record", "bucket"]


def rows(keys: Keys) -> pa.Table:
    return table_of(SCHEMA, *((*key, number) for number, key in enumerate(keys)))


def names(keys: Keys) -> pa.Table:
    return rows(keys).drop_columns(["v"])


def new_table(index: str, **options: Any) -> hoodie.Table:
    return tables.new_table(SCHEMA, rows(HARMLESS), record_key=["a", "b"], index=index, **options)


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
def test_every_act_refuses_them_by_name_and_takes_what_only_looks_like_them(index: str, act: str) -> None:
    table = new_table(index)
    for bad in REFUSED:
        with untouched(table, r"record key '[ab]': the text .* one key in 1 of", RecordKeyError):
            ACTS[act](table, [("fine", "too"), bad])
    ACTS[act](table, HARMLESS)


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", NAMES)
def test_whole_keys_are_taken_as_they_are(index: str, table_type: str) -> None:
    table = new_table(index, type=table_type)
    assert table.read_keys(["a:1,b:3", "a:1,b:2,b:3"]).num_rows == 1
    assert table.delete(["a:1,b:2,b:3"]).deleted == 0
    assert table.delete(["a:__null__,b:x"]).deleted == 1
    assert table.delete(table.to_arrow().select(["_hoodie_record_key", "a", "b"])).deleted == len(HARMLESS) - 1
