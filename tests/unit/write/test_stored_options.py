"""Options that a table stores: the calls that obey them, the calls that name them as ignored, and refused ones."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.storage import MemoryStore
from tests.support.tables import TYPES
from tests.unit.write.tables import FIRST, NAMED, SCHEMA, new_table, trips, untouched

COMBINE = "hoodie.combine.before.insert"
POLICY = "hoodie.datasource.insert.dup.policy"
TWICE = trips(("n", 1, 1.0, "sf"), ("n", 2, 2.0, "sf"))


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", ["record", "simple", "bucket"])
def test_a_stored_merge_of_duplicates_holds_for_all_inserts_but_bulk_insert(index: str, table_type: str) -> None:
    table = new_table(FIRST, index=index, type=table_type)
    table.alter.set_property(COMBINE, True)
    for write in (table.insert_overwrite, table.insert_overwrite_table):
        assert write(TWICE).duplicates == 1
        assert table.to_arrow(["id", "ts"], "id = 'n'").to_pylist() == [{"id": "n", "ts": 2}]
    table.delete_where("true")
    assert table.insert(TWICE).duplicates == 1
    table.delete_where("true")
    done = table.bulk_insert(TWICE)
    merges = index == "bucket" and table_type == "merge_on_read"
    assert table.count() == (1 if merges else 2)
    note = f"{COMBINE} of the table has no effect: bulk_insert does not merge duplicates; use upsert"
    assert (note in done.notes) != merges


INLINE, PLANNED = "hoodie.compact.inline", "hoodie.compact.schedule.inline"
MODE = "hoodie.write.concurrency.mode"


def test_options_that_no_table_stores_are_refused_by_create_and_by_alter() -> None:
    both = "true for one of them, found true for both"
    cases = [
        ({MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}, {}, "pass it to each write instead"),
        ({INLINE: "true", PLANNED: "true"}, {}, both),
        ({INLINE: "true"}, {PLANNED: "true"}, both),
        ({PLANNED: "true"}, {INLINE: "true"}, both),
    ]
    for wrong, stored, message in cases:
        store = MemoryStore()
        with untouched(store, message, InvalidConfigError):
            hoodie.create(store.uri(""), SCHEMA, **NAMED, type="merge_on_read", properties={**stored, **wrong})
        table = new_table(FIRST, type="merge_on_read", properties=stored)
        with untouched(table, message, InvalidConfigError):
            table.alter.set_properties(wrong)
    table.alter.set_properties({PLANNED: "true", INLINE: "false"})
    assert {table.view().config.raw[key] for key in (PLANNED, INLINE)} == {"true", "false"}


@pytest.mark.parametrize("policy", ["drop", "fail"])
@pytest.mark.parametrize("index", ["record", "bucket"])
def test_writes_that_look_up_no_keys_refuse_a_policy_for_known_keys(index: str, policy: str) -> None:
    table = new_table(FIRST, index=index)
    given = [
        {POLICY: policy},
        *([{"hoodie.datasource.write.insert.drop.duplicates": "true"}] if policy == "drop" else []),
    ]
    for name in ("bulk_insert", "insert_overwrite", "insert_overwrite_table"):
        reason = f"{name} looks up no keys; use insert"
        for properties in given:
            with untouched(table, f"{POLICY}={policy}: {reason}, or omit the option", InvalidConfigError):
                getattr(table, name)(FIRST, properties=properties)
    table.alter.set_property(POLICY, policy)
    for name in ("insert_overwrite", "insert_overwrite_table", "bulk_insert"):
        done = getattr(table, name)(trips(("new", 1, 1.0, "sf")))
        assert f"{POLICY} of the table has no effect: {name} looks up no keys; use insert" in done.notes
        assert getattr(table, name)(FIRST, properties={POLICY: "none"}).notes == ()
    assert table.upsert(FIRST).notes == ()


def test_a_bulk_insert_refuses_to_merge_duplicates() -> None:
    table = new_table(FIRST)
    with untouched(table, f"{COMBINE}=true: bulk_insert does not merge duplicates; use upsert", InvalidConfigError):
        table.bulk_insert(TWICE, properties={COMBINE: "true"})
    table.alter.set_property(COMBINE, True)
    assert table.bulk_insert(FIRST, properties={COMBINE: "false"}).notes == ()
