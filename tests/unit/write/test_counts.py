"""The counts of a result are what happened to the rows of the batch and of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, RecordKeyError
from hoodie.files.staging.staged import write_hits
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write import insert_policy, options
from tests.support import tables
from tests.support.tables import TYPES, values_of
from tests.unit.write.tables import NAMED, SCHEMA, trips, untouched
from tests.unit.write.tables import new_table as table_with

POLICY = "hoodie.datasource.insert.dup.policy"
INDEXES = ("record", "partitioned_record", "simple", "global_simple", "bloom", "global_bloom")
STORED = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "nyc"), ("c", 5, 3.0, "sf"))


def new_table(**options: Any) -> Table:
    return table_with(STORED, **options)


def counts(result: hoodie.WriteResult) -> dict[str, int | None]:
    """The counts that are not 0."""
    names = ("inserted", "updated", "deleted", "ignored", "duplicates")
    return {name: getattr(result, name) for name in names if getattr(result, name) != 0}


@pytest.mark.parametrize("index", INDEXES)
def test_late_rows_and_duplicates_of_an_upsert(index: str) -> None:
    known = (("a", 4, 9.0, "sf"), ("b", 6, 9.0, "nyc"), ("b", 7, 8.0, "nyc"))
    result = new_table(index=index).upsert(trips(*known, ("d", 1, 1.0, "sf"), ("d", 0, 1.0, "sf")))
    assert counts(result) == {"inserted": 1, "updated": 1, "ignored": 1, "duplicates": 2}
    assert "1 inserted, 1 updated, 0 deleted, 1 ignored, 2 duplicates" in str(result)
    assert result.to_dict()["ignored"] == 1


@pytest.mark.parametrize("index", ["record", "global_simple", "global_bloom"])
@pytest.mark.parametrize("moves", ["true", "false"])
def test_records_whose_partition_changed(index: str, moves: str) -> None:
    option = index.removeprefix("global_")
    table = new_table(index=index, properties={f"hoodie.{option}.index.update.partition.path": moves})
    late_and_new = trips(("a", 4, 9.0, "la"), ("b", 6, 9.0, "la"), ("b", 6, 8.0, "rome"), ("z", 1, 1.0, "la"))
    assert counts(table.upsert(late_and_new)) == {"inserted": 1, "updated": 1, "ignored": 1, "duplicates": 1}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("type", TYPES)
def test_deletes_of_unknown_keys_are_ignored(index: str, type: str) -> None:
    table = new_table(index=index, type=type)
    keys = pa.table({"id": ["a", "x", "a", "b"], "city": ["sf", "sf", "sf", "nyc"]})
    assert counts(table.delete(keys)) == {"deleted": 2, "ignored": 1, "duplicates": 1}
    assert counts(table.delete_where("fare > 100")) == {}
    assert counts(table.delete_where("id = 'c'")) == {"deleted": 1}


def test_rows_without_an_ordering_value_are_noted() -> None:
    late = trips(("a", None, 1.0, "sf"))
    lost = new_table().upsert(late)
    assert (counts(lost), lost.files_updated) == ({"ignored": 1}, 0)
    assert lost.notes == ("1 rows without a value of ts lost against stored rows that have one",)
    assert counts(new_table(type="merge_on_read").upsert(late)) == {"ignored": 1}
    logged = new_table(type="merge_on_read").upsert(pa.concat_tables([late, trips(("c", 6, 1.0, "sf"))]))
    assert counts(logged) == {"updated": 2, "ignored": None}
    assert logged.notes == ("1 rows without a value of ts were logged, and lose against stored rows that have one",)
    assert "ignored not counted" in str(logged)


def test_a_log_without_ordering_values_has_exact_counts() -> None:
    table = new_table(type="merge_on_read", ordering=None)
    batch = trips(("a", 4, 9.0, "sf"), ("a", 3, 9.0, "sf"), ("d", 1, 1.0, "sf"))
    assert counts(table.upsert(batch)) == {"inserted": 1, "updated": 1, "duplicates": 1}


@pytest.mark.parametrize("index", INDEXES)
def test_replaced_records_count_as_deleted(index: str) -> None:
    table = new_table(index=index)
    assert counts(table.delete_partitions(["city=sf"])) == {"deleted": 2}
    assert counts(table.insert_overwrite(trips(("e", 1, 1.0, "nyc")))) == {"inserted": 1, "deleted": 1}
    assert counts(table.insert_overwrite_table(trips(("f", 1, 1.0, "la")))) == {"inserted": 1, "deleted": 1}


@pytest.mark.parametrize("type", TYPES)
def test_an_overwrite_without_rows_says_that_it_changed_nothing(type: str) -> None:
    table, none = new_table(type=type), STORED.slice(0, 0)
    result = table.insert_overwrite(none)
    assert counts(result) == {}
    assert result.notes == ("the data has no rows, so it names no partition to replace: no row of the table changed",)
    (note,) = table.insert_overwrite(none, partitions=["city=none"]).notes
    assert note == "the table has no partition city=none, so no row was replaced there"
    assert table.count() == 3
    assert table.insert_overwrite(trips(("e", 1, 1.0, "nyc"))).notes == ()
    assert (table.insert_overwrite_table(none).notes, table.count()) == ((), 0)


@pytest.mark.parametrize(("index", "deleted"), [("record", 2), ("partitioned_record", 2), ("simple", None)])
def test_replaced_records_in_logs_are_counted_with_a_record_index_only(index: str, deleted: int | None) -> None:
    table = new_table(index=index, type="merge_on_read")
    table.upsert(trips(("a", 6, 9.0, "sf")))
    result = table.delete_partitions(["city=sf"])
    assert counts(result) == {"deleted": deleted}
    assert ("deleted not counted" in str(result)) == (deleted is None)
    assert table.count() == 1


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("index", ["record", "partitioned_record"])
def test_a_small_insert_of_known_keys_is_noted(index: str, type: str) -> None:
    table = new_table(index=index, type=type)
    result = table.insert(trips(("a", 9, 9.0, "sf"), ("d", 9, 9.0, "sf"), ("d", 9, 9.0, "sf")))
    assert counts(result) == {"inserted": 3}
    noted = "1 rows have keys that the table has: these records are stored twice now"
    assert [note.startswith(noted) for note in result.notes] == [False, True]
    assert table.count() == 6
    assert table.insert(trips(("e", 9, 9.0, "sf"))).notes == ()


def test_a_large_insert_says_that_it_looked_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "ROWS_MAX", 1)
    one, two = trips(("e", 9, 9.0, "sf")), trips(("f", 9, 9.0, "sf"), ("g", 9, 9.0, "sf"))
    table = new_table()
    assert table.insert(one).notes == ()
    (note,) = table.insert(two).notes
    assert note.startswith("keys were not looked up: a record that the table had may be stored twice")
    assert new_table(index="simple").insert(trips(("a", 9, 9.0, "sf"))).notes == ()
    assert table_with().insert(two).notes == (), "an empty table has no keys"


def test_a_row_with_hits_in_several_files_counts_once() -> None:
    store, rng = MemoryStore(), np.random.default_rng(7)
    found = [np.flatnonzero(rng.random(5_000) < share) for share in (0.5, 0.01, 0.9)]
    files = [("", str(number), rows, np.zeros(len(rows), np.int8)) for number, rows in enumerate(found)]
    hits = write_hits(store, "h.arrow", files)
    assert insert_policy.known_row_count(store, hits) == len(np.unique(np.concatenate(found)))
    assert insert_policy.known_row_count(store, []) == 0


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("type", TYPES)
def test_the_policy_of_an_insert_with_known_keys(index: str, type: str) -> None:
    table = new_table(index=index, type=type)
    batch = trips(("a", 9, 9.0, "sf"), ("d", 9, 9.0, "sf"), ("b", 1, 9.0, "nyc"))
    with untouched(table, r"2 rows have keys that .*\['a', 'b'\].*use upsert", RecordKeyError):
        table.insert(batch, properties={POLICY: "fail"})
    assert counts(table.insert(batch, properties={POLICY: "drop"})) == {"inserted": 1, "ignored": 2}
    assert values_of(table, "id", "ts") == [("a", 5), ("b", 5), ("c", 5), ("d", 9)]
    with pytest.raises(InvalidConfigError, match="none, drop, fail"):
        table.insert(batch, properties={POLICY: "merge"})


def test_deletes_in_a_batch_of_new_rows_are_ignored() -> None:
    gone = pa.field("_hoodie_is_deleted", pa.bool_())
    table = tables.new_table(SCHEMA.append(gone), **NAMED)
    rows = trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "sf")).append_column(gone, pa.array([True, None]))
    for write in (table.bulk_insert, table.insert_overwrite_table):
        assert write(rows).ignored == 1
    assert table.upsert(rows.set_column(1, "ts", pa.array([2, 2]))).ignored == 1
    assert table.count() == 1
