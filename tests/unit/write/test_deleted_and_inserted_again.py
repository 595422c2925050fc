"""Records that a log deletes and an insert without look-up stores again: one record for each key, whatever follows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.errors import RecordKeyError
from hoodie.index import INDEXES
from tests.support import tables
from tests.support.seeds import examples
from tests.support.tables import values_of

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
NAMES = [kind.name for kind in INDEXES if kind.name != "hbase"]
POLICY = "hoodie.datasource.insert.dup.policy"
KEYS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)
ACTS = st.tuples(
    st.sampled_from(["insert", "bulk_insert", "drop", "upsert", "delete", "update", "compact", "cluster"]), KEYS
)


def rows(keys: list[str], v: int) -> pa.Table:
    return pa.table({"id": keys, "v": [v] * len(keys)}, schema=SCHEMA)


def new_table(index: str, *data: pa.Table, **options: Any) -> hoodie.Table:
    return tables.new_table(SCHEMA, *data, index=index, type="merge_on_read", **options)


def act(table: hoodie.Table, model: dict[str, int], name: str, keys: list[str], v: int) -> None:
    """Do the same to the table and to the model; inserts without look-up only of keys that the model has not."""
    new = [key for key in keys if key not in model]
    if name in ("insert", "bulk_insert") and new:
        (table.insert if name == "insert" else table.bulk_insert)(rows(new, v))
        model.update(dict.fromkeys(new, v))
    elif name == "drop":
        result = table.insert(rows(keys, v), properties={POLICY: "drop"})
        assert (result.inserted, result.ignored) == (len(new), len(keys) - len(new))
        model.update(dict.fromkeys(new, v))
    elif name == "upsert":
        table.upsert(rows(keys, v))
        model.update(dict.fromkeys(keys, v))
    elif name == "delete":
        table.delete(keys)
        for key in keys:
            model.pop(key, None)
    elif name == "update":
        table.update({"v": "v + 1000"}, where=f"id IN ({', '.join(map(repr, keys))})")
        model.update({key: model[key] + 1000 for key in keys if key in model})
    elif name in ("compact", "cluster"):
        getattr(table, name)()


@settings(max_examples=examples(15))
@given(st.lists(ACTS, min_size=3, max_size=8))
@pytest.mark.parametrize("index", ["simple", "bloom"])
def test_a_life_of_such_records_is_that_of_a_dict(index: str, acts: list[tuple[str, list[str]]]) -> None:
    table, model = new_table(index, rows(["a", "b", "x"], 0)), {"a": 0, "b": 0, "x": 0}
    for number, (name, keys) in enumerate(acts, 1):
        act(table, model, name, keys, number)
        assert values_of(table) == sorted(model.items()), (number, name)


@pytest.mark.parametrize("index", NAMES)
def test_a_record_deleted_in_two_file_groups_comes_back_once(index: str) -> None:
    table = new_table(index, rows(["a", "b"], 1))
    for v in (2, 3):
        table.delete(["a"])
        table.insert(rows(["a"], v))
    table.delete(["a"])
    assert values_of(table) == [("b", 1)]
    table.upsert(rows(["a"], 4))
    assert values_of(table) == [("a", 4), ("b", 1)]
    assert table.update({"v": "v + 1"}).updated == 2
    assert table.delete(["a"]).deleted == 1
    assert values_of(table) == [("b", 2)]


@pytest.mark.parametrize("index", ["simple", "bloom"])
def test_a_late_version_still_meets_the_last_delete(index: str) -> None:
    """The delete of the newest log decides, and the record stays deleted for versions that are older."""
    table = new_table(index, rows(["a", "b"], 1), ordering="v")
    table.upsert(versions(5, is_deleted=True))
    table.insert(versions(6))
    table.upsert(versions(9, is_deleted=True))
    table.upsert(versions(7))
    assert values_of(table) == [("b", 1)]
    table.upsert(versions(10))
    assert values_of(table) == [("a", 10), ("b", 1)]


def versions(v: int, *, is_deleted: bool = False) -> pa.Table:
    return pa.table({"id": ["a"], "v": [v], "_hoodie_is_deleted": [is_deleted]})


@pytest.mark.parametrize("index", [name for name in NAMES if name != "bucket"])
def test_an_insert_that_looks_up_keys_finds_living_records_only(index: str) -> None:
    table = new_table(index, rows(["a", "b"], 1))
    table.delete(["a"])
    assert table.insert(rows(["a", "b"], 2), properties={POLICY: "drop"}).inserted == 1
    assert values_of(table) == [("a", 2), ("b", 1)]
    with pytest.raises(RecordKeyError, match="1 rows have keys"):
        table.insert(rows(["a", "z"], 3), properties={POLICY: "fail"})
    table.delete(["a"])
    table.insert(rows(["a"], 3), properties={POLICY: "fail"})
    assert values_of(table) == [("a", 3), ("b", 1)]
