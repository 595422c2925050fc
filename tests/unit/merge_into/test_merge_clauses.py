"""Merges in process: each index, the rule of ordering values, refused merges, and other writers meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hoodie
from hoodie.errors import HoodieError, InvalidConfigError, RecordKeyError, SchemaMismatchError, UnsupportedError
from hoodie.merge_into.changes import merged_rows
from hoodie.table.merge import TableMerger
from tests.support.tables import TYPES, values_of
from tests.unit.write.tables import FIRST, new_table, trips, untouched

GLOBAL = ("record", "global_simple", "global_bloom")
ONE = trips(("a", 1, 1.0, "sf"))
KEY, NAMED = "t.id = s.id", "t.id = s.id AND t.city = s.city"


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", [*GLOBAL, "simple", "bloom", "bucket"])
def test_every_index_finds_the_rows_of_a_merge(index: str, table_type: str) -> None:
    stored = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "la"))
    table = new_table(stored, index=index, type=table_type)
    on = KEY if index in GLOBAL else NAMED
    source = trips(("a", 5, 7.0, "sf"), ("b", 1, -1.0, "sf"), ("n", 1, 4.0, "la"))
    merge = table.merge(source, on).when_matched_delete("s.fare < 0").when_matched_update({"fare": "s.fare + t.fare"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    assert values_of(table, "id", "fare") == [("a", 8.0), ("c", 3.0), ("n", 4.0)]
    for key in ("a", "new"):
        double = trips((key, 9, 1.0, "sf"), (key, 9, 1.0, "sf"))
        with untouched(table, "nothing was committed", RecordKeyError):
            table.merge(double, on).when_matched_update_all().when_not_matched_insert_all().execute()


def test_an_older_source_row_loses_against_the_stored_row() -> None:
    table = new_table(FIRST)
    older = table.merge(trips(("a", 0, 9.0, "sf")), KEY)
    for merge in (
        older.when_matched_update_all(),
        older.when_matched_update_all().when_not_matched_insert_all(),
        older.when_matched_update({"ts": "s.ts", "fare": "s.fare"}),
    ):
        assert (merge.execute().updated, table.count("fare = 9.0")) == (0, 0)
    assert older.when_matched_update({"fare": "s.fare"}).execute().updated == 1


Clauses = Callable[[TableMerger], TableMerger]


def delete(merge: TableMerger) -> TableMerger:
    return merge.when_matched_delete()


def update_all(merge: TableMerger) -> TableMerger:
    return merge.when_matched_update_all()


def sets(**columns: str) -> Clauses:
    return lambda merge: merge.when_matched_update(columns)


def inserts(**columns: str) -> Clauses:
    return lambda merge: merge.when_not_matched_insert(columns)


CONDITIONS: dict[str, tuple[str, Clauses, type[HoodieError], str]] = {
    "another condition": ("t.id = s.id AND t.fare > 1", delete, UnsupportedError, "conditions belong to the clauses"),
    "no equality": ("t.id = s.id OR t.city = s.city", delete, UnsupportedError, r"t\.id = s\.id"),
    "no column of the source": ("t.id = t.city", delete, UnsupportedError, "only equalities"),
    "unknown column": ("t.no_such = s.id", delete, SchemaMismatchError, "no_such.*table"),
    "types": ("t.fare = s.id", delete, SchemaMismatchError, "type double with source column 'id' of type string; cast"),
    "all columns without the key": ("t.ts = s.ts", update_all, InvalidConfigError, r"would set \['city', 'id'\]"),
}
CLAUSES: dict[type[HoodieError], dict[str, tuple[Clauses, str]]] = {
    InvalidConfigError: {
        "none": (lambda merge: merge, "at least one clause"),
        "one that never applies": (lambda merge: update_all(delete(merge)), "not the last of its kind"),
        "partition column": (sets(city="s.city"), "city"),
        "insert without its key": (inserts(city="s.city"), r"no value for \['id'\]"),
        "insert of another key": (inserts(id="upper(s.id)", city="s.city"), "other values than those that `on` looked"),
    },
    SchemaMismatchError: {
        "unknown column": (sets(no_such="1"), "no_such"),
        "unknown source column": (sets(fare="s.no_such"), "no_such"),
        "stored column of a new row": (lambda merge: merge.when_not_matched_insert_all("t.fare > 1"), "not known here"),
        "ambiguous column": (sets(fare="ts"), "ambiguous: write t.ts or s.ts"),
    },
}
REFUSED = {f"on: {name}": case for name, case in CONDITIONS.items()}
REFUSED |= {
    f"clauses: {name}": (KEY, clauses, error, text)
    for error, cases in CLAUSES.items()
    for name, (clauses, text) in cases.items()
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_merge_is_refused_and_writes_nothing(case: str) -> None:
    on, clauses, error, text = REFUSED[case]
    table = new_table(FIRST)
    with untouched(table, text, error):
        clauses(table.merge(ONE, on)).execute()


def test_a_source_that_lacks_columns_is_refused() -> None:
    table = new_table(FIRST)
    with untouched(table, "lacks", SchemaMismatchError):
        table.merge([{"id": "a"}], KEY).when_matched_update_all().execute()


def test_a_merge_is_computed_again_from_what_another_writer_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(FIRST)
    calls = []

    def compute_then_meet(*args: Any) -> object:
        found = merged_rows(*args)
        calls.append(1)
        if len(calls) == 1:
            hoodie.open(table.path, spark=False).upsert(trips(("a", 2, 100.0, "sf"), ("n", 2, 7.0, "sf")))
        return found

    monkeypatch.setattr("hoodie.merge_into.run.merged_rows", compute_then_meet)
    source = trips(("a", 3, 1.0, "sf"), ("n", 3, 1.0, "sf"))
    merge = table.merge(source, KEY).when_matched_update({"fare": "t.fare + s.fare"})
    result = merge.when_not_matched_insert_all().execute()
    assert (result.inserted, result.updated, len(calls)) == (0, 2, 2)
    assert values_of(table, "id", "fare") == [("a", 101.0), ("b", 2.0), ("n", 8.0)]
