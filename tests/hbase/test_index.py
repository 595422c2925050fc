"""The HBase index with a real HBase: writes, moves, deletes, services, and taking commits back."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.errors import CommitConflictError, IndexIncompleteError, InvalidConfigError, RecordKeyError
from hoodie.index.hbase.client import _interface
from hoodie.view.slices import list_slices
from tests.hbase.rows import KINDS, QUIET, START, again, all_cells, check, hbase_versions, started, table_of
from tests.support.steps import ONE_TRY, once_at
from tests.support.tables import SCHEMA, Rows, new_table, rows_of, trips, values_of

PARTITIONED: dict[str, Any] = {"partition_by": "city", "ordering": "ts"}
CLUSTERS = {"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}

each_kind = pytest.mark.parametrize("table_type", KINDS)


class DiedError(Exception):
    """The process of a write ends."""


def die_at(step: Step, write: Any) -> None:
    """Run a write whose process ends at a step: nothing of it is undone."""

    def end(reached: Step) -> None:
        if reached is step:
            raise DiedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie.commit.write_instant.WriteInstant.undo", lambda self: None)
        patch.setattr("hoodie.services.planned.claim.ClaimedPlan.give_back", lambda self: None)
        with pytest.raises(DiedError), watching(end):
            write()
    hoodie.timeline.forget_all()


@each_kind
def test_rows_are_found_moved_deleted_and_come_back(options: dict[str, str], table_type: str) -> None:
    table = started(options, table_type)
    moved = table.upsert(trips({"a": (2, "la"), "d": (2, "sf")}))
    assert (moved.inserted, moved.updated) == (1, 1)
    assert table.delete(trips({"b": (9, "x")}).select(["id"])).deleted == 1
    assert rows_of(table.view().store) == {"a": (2, "la"), "c": (1, "la"), "d": (2, "sf")}
    # A deleted record comes back in any partition.
    assert table.upsert(trips({"b": (3, "nyc")})).inserted == 1
    check(table, {"a": (2, "la"), "b": (3, "nyc"), "c": (1, "la"), "d": (2, "sf")})


def test_inserts_of_merge_on_read_go_to_logs(options: dict[str, str]) -> None:
    table = started(options, "merge_on_read")
    table.upsert(trips({"new": (2, "sf")}))
    names = [log.name.name for found in list_slices(table.view()) for log in found.log_files]
    assert len(names) == 1
    check(table, {**START, "new": (2, "sf")})


def test_records_stay_where_they_are_if_the_row_is_older_or_the_table_says_so(options: dict[str, str]) -> None:
    table = started(options, "copy_on_write", **{"hoodie.hbase.index.update.partition.path": "false"})
    table.upsert(trips({"a": (2, "la")}))
    assert values_of(table, "id", "_hoodie_partition_path")[0] == ("a", "city=sf")
    another = {**options, "hoodie.index.hbase.table": f"t{uuid.uuid4().hex}"}
    table = started(another, "copy_on_write")
    table.upsert(trips({"a": (0, "la")}))
    check(table, START)


@each_kind
def test_the_layout_is_that_of_the_jvm(options: dict[str, str], table_type: str) -> None:
    """Columns of SparkHoodieHBaseIndex: a reader that knows only the newest cells finds the location, or no commit."""
    table = started(options, table_type)
    first = table.timeline.completed().writes().instants[-1].requested_time
    group = next(found.file_id for found in list_slices(table.view(), ["city=la"]))
    cells = {(row, name): value for row, name, value, _ in all_cells(table)}
    assert cells[b"c", b"commit_ts"] == first.encode()
    assert cells[b"c", b"file_name"] == group.encode()
    assert cells[b"c", b"partition_path"] == b"city=la"
    table.delete(trips({"c": (9, "la")}).select(["id"]))
    newest: dict[bytes, bytes] = {}
    for row, name, value, _ in sorted(all_cells(table), key=lambda cell: cell[3]):
        if row == b"c":
            newest[name] = value
    assert newest[b"commit_ts"] > b"9999", "a JVM takes the key of a deleted record as unknown"


@each_kind
def test_rollback_savepoint_and_restore_change_nothing_in_hbase(options: dict[str, str], table_type: str) -> None:
    table = started(options, table_type)
    saved = table.timeline.completed().writes().instants[-1].requested_time
    table.savepoint(saved)
    moved = table.upsert(trips({"a": (2, "la"), "d": (2, "sf")}))
    table.delete(trips({"b": (9, "x")}).select(["id"]))
    table.upsert(trips({"e": (2, "nyc")}))
    before = all_cells(table)
    table.rollback(table.timeline.completed().writes().instants[-1].requested_time)
    assert rows_of(table.view().store) == {"a": (2, "la"), "c": (1, "la"), "d": (2, "sf")}
    assert all_cells(table) == before
    assert table.index.verify().ok
    table.restore(saved)
    assert all_cells(table) == before
    assert hbase_versions(table)["a"][0].instant_time == moved.instant
    # The deletion of b, the move of a, and the keys d and e were taken back.
    check(table, START)
    assert table.upsert(trips({"d": (5, "la"), "e": (5, "la")})).inserted == 2


@each_kind
def test_a_clustering_moves_the_keys(options: dict[str, str], table_type: str) -> None:
    """And gives them back if it is taken back."""
    table = started(options, table_type, **{"hoodie.parquet.small.file.limit": "0"})
    table.insert(trips({"d": (1, "sf"), "e": (1, "la")}))
    if table_type == "merge_on_read":
        table.compact()
    clustered = table.cluster(properties=CLUSTERS).instant
    assert clustered
    if table_type == "copy_on_write":
        assert table.index.verify().ok
        table.rollback(clustered)
    check(table, {**START, "d": (1, "sf"), "e": (1, "la")})


def test_a_second_attempt_at_a_clustering_leaves_no_location_of_the_first(options: dict[str, str]) -> None:
    """Both attempts have one instant: what the first put for a file group that the second leaves out must not count."""
    table = started(options, "copy_on_write", **{"hoodie.parquet.small.file.limit": "0"})
    table.insert(trips({"d": (1, "sf"), "e": (1, "la"), "f": (1, "nyc")}))
    table.insert(trips({"g": (1, "nyc")}))
    plan = table.schedule_clustering(properties=CLUSTERS)
    assert plan
    die_at(Step.LOCATED, lambda: again(table).cluster(instant=plan))
    assert any(found.instant_time == plan for found in hbase_versions(table)["d"])
    allows = {"hoodie.clustering.updates.strategy": "allow"}
    again(table).upsert(trips({"a": (2, "sf")}), properties=allows)
    done = again(table).cluster(instant=plan)
    assert any("left out" in note for note in done.notes)
    assert table.timeline.completed().get(plan) is not None
    check(table, {**START, "a": (2, "sf"), "d": (1, "sf"), "e": (1, "la"), "f": (1, "nyc"), "g": (1, "nyc")})


@each_kind
def test_keys_of_removed_file_groups_are_unknown(options: dict[str, str], table_type: str) -> None:
    table = started(options, table_type)
    deleted = table.delete_partitions(["city=sf"])
    assert table.upsert(trips({"a": (2, "la")})).inserted == 1
    table.insert_overwrite(trips({"x": (1, "la")}))
    check(table, {"x": (1, "la")})
    table.rollback(deleted.instant, chain=True)
    check(table, START)


@each_kind
def test_the_move_of_a_write_that_died_does_not_hide_the_old_location(options: dict[str, str], table_type: str) -> None:
    """The newest location in HBase is that of a dead write; the record is where it was before."""
    table = started(options, table_type)
    for ts in (2, 3):
        die_at(Step.LOCATED, lambda ts=ts: again(table).upsert(trips({"a": (ts, "la"), "new": (ts, "sf")})))
    assert len(hbase_versions(table)["a"]) == 3
    assert again(table).upsert(trips({"a": (4, "sf"), "new": (4, "nyc")})).inserted == 1
    check(table, {**START, "a": (4, "sf"), "new": (4, "nyc")})


def test_locations_of_dead_writes_stay_invalid_behind_the_archive(options: dict[str, str]) -> None:
    """An instant before the start of the active timeline is in the archive, or its write never completed."""
    table = started(options, "copy_on_write")
    die_at(Step.LOCATED, lambda: again(table).upsert(trips({"a": (2, "la"), "new": (2, "la")})))
    dead = hbase_versions(table)["a"][0].instant_time
    for ts in range(3, 12):
        table.upsert(trips({"b": (ts, "sf")}))
    archives = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table.clean(properties=archives)
    table.archive(properties=archives)
    table = again(table)
    assert dead < (table.timeline.start or "")
    assert table.timeline.contains_or_before_start(dead), "by the active timeline alone it would count"
    assert table.upsert(trips({"a": (20, "sf"), "new": (20, "nyc")})).inserted == 1
    check(table, {"a": (20, "sf"), "b": (11, "sf"), "c": (1, "la"), "new": (20, "nyc")})


@each_kind
def test_of_two_writers_of_one_new_key_the_second_is_refused(options: dict[str, str], table_type: str) -> None:
    table = started(options, table_type)

    def insert() -> None:
        again(table).upsert(trips({"new": (2, "nyc")}))

    with once_at(Step.WRITTEN, insert), pytest.raises(CommitConflictError, match="inserted into the same"):
        again(table).upsert(trips({"new": (3, "oslo")}), properties=ONE_TRY)
    check(table, {**START, "new": (2, "nyc")})
    with once_at(Step.WRITTEN, insert):
        assert again(table).upsert(trips({"other": (3, "oslo")}), properties=ONE_TRY).inserted == 1


def test_a_conflicting_write_is_tried_again_and_finds_the_key(options: dict[str, str]) -> None:
    table = started(options, "copy_on_write")
    with once_at(Step.WRITTEN, lambda: again(table).upsert(trips({"new": (2, "nyc")}))):
        result = again(table).upsert(trips({"new": (3, "oslo")}))
    assert (result.inserted, result.updated) == (0, 1)
    check(table, {**START, "new": (3, "oslo")})


def test_a_write_of_another_engine_is_found_and_a_build_mends_it(options: dict[str, str]) -> None:
    table = started(options, "copy_on_write")
    with pytest.MonkeyPatch.context() as patch:
        # What another engine would do: it writes files, and records nothing in HBase.
        patch.setattr("hoodie.index.hbase.index.HBaseUpdate.note_locations", lambda self, entries: _no_entries())
        patch.setattr("hoodie.index.hbase.index.HBaseUpdate.commit_entries", {})
        again(table).upsert(trips({"foreign": (2, "sf")}))
    with pytest.raises(IndexIncompleteError, match=r"lacks the keys of .* t\.index\.build\(\"hbase\"\)"):
        again(table).upsert(trips({"a": (3, "sf")}))
    assert not table.index.verify().ok
    built = table.index.build("hbase")
    assert built.counts["entries"] == 4
    check(table, {**START, "foreign": (2, "sf")})


def _no_entries() -> Any:
    from hoodie.index.record.entries import WrittenEntries

    return WrittenEntries()


@each_kind
def test_an_index_is_built_from_the_rows_of_a_table(options: dict[str, str], table_type: str) -> None:
    table = new_table(SCHEMA, trips(START), **PARTITIONED, index="global_simple", type=table_type, properties=QUIET)
    table.upsert(trips({"a": (2, "la")}))
    with pytest.raises(InvalidConfigError, match="not of 'record'"):
        table.index.build("record", properties=options)
    assert table.index.build("hbase", properties=options).counts["entries"] == 3
    check(table, {**START, "a": (2, "la")})
    first = table.timeline.completed().writes().instants[0].requested_time
    table.rollback(table.timeline.completed().writes().instants[1].requested_time, chain=True)
    assert first in table.timeline.completed().writes().instants[-1].requested_time
    with pytest.raises(IndexIncompleteError, match="took that commit back"):
        table.upsert(trips({"a": (5, "sf")}))
    table.index.build("hbase")
    check(table, START)
    assert "still there" in table.index.drop("hbase").notes[0]
    assert rows_of(table.view().store) == {key: (ts + 100, city) for key, (ts, city) in START.items()}
    assert table.upsert(trips({"a": (500, "la")})).updated == 1


def test_the_hbase_table_of_another_table_is_refused(options: dict[str, str]) -> None:
    started(options, "copy_on_write")
    other = table_of(options, "merge_on_read")  # of the same type it would be a copy, with the same identity
    with pytest.raises(IndexIncompleteError, match="does not have the index of"):
        other.upsert(trips(START))
    with pytest.raises(InvalidConfigError, match="has the index of memory"):
        other.index.build("hbase")


def test_batches_of_one_key_and_keys_of_any_text(options: dict[str, str]) -> None:
    table = table_of(options)
    one = {"hoodie.index.hbase.get.batch.size": "1", "hoodie.index.hbase.put.batch.size": "1"}
    rows: Rows = {"ключ": (1, "sf"), "a b/c": (1, "sf"), "😀": (1, "la"), "x" * 500: (1, "la")}
    table.upsert(trips(rows), properties=one)
    check(table, rows)


@pytest.mark.parametrize("key", ["k" * 32_768, "\0hoodie.index.hbase"])
def test_a_key_that_hbase_cannot_have_is_refused(options: dict[str, str], key: str) -> None:
    table = started(options, "copy_on_write")
    for write in (table.upsert, table.bulk_insert):
        with pytest.raises(RecordKeyError, match=r"row keys of at most 32,767|row of the HBase index's identity"):
            write(trips({key: (1, "sf"), "new": (1, "sf")}))
    table.upsert(trips({"k" * 32_767: (1, "sf")}))
    check(table, {**START, "k" * 32_767: (1, "sf")})


def test_without_the_client_library_the_error_says_what_to_install(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = started(options, "copy_on_write")
    _interface.cache_clear()
    monkeypatch.setitem(sys.modules, "thriftpy2", None)
    with pytest.raises(InvalidConfigError, match=r"pip install 'hoodie\[hbase\]'"):
        table.upsert(pa.table(trips(START)))


def test_a_write_that_began_before_the_build_is_refused(options: dict[str, str]) -> None:
    table = new_table(SCHEMA, trips(START), **PARTITIONED, properties=QUIET)
    with (
        once_at(Step.WRITTEN, lambda: again(table).index.build("hbase", properties=options)),
        pytest.raises(CommitConflictError, match="got the index 'hbase' while this write ran"),
    ):
        again(table).upsert(trips({"late": (2, "sf")}))
    check(again(table), START)


def test_a_key_of_a_write_after_the_index_was_given_up_is_not_missed(options: dict[str, str]) -> None:
    table = started(options, "copy_on_write")

    def give_up_and_write() -> None:
        again(table).index.drop("hbase")
        again(table).upsert(trips({"new": (2, "nyc")}))

    inserted = pytest.raises(CommitConflictError, match="inserted into the same")
    with once_at(Step.WRITTEN, give_up_and_write), inserted:
        again(table).upsert(trips({"new": (3, "oslo")}), properties=ONE_TRY)
    assert rows_of(table.view().store) == {**START, "new": (2, "nyc")}


def test_non_blocking_appends_meet_and_a_common_new_key_does_not(options: dict[str, str]) -> None:
    table = started(options, "merge_on_read")
    appends = {**ONE_TRY, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}

    def write_between(rows: Rows, others: Rows) -> None:
        with once_at(Step.WRITTEN, lambda: again(table).upsert(trips(others), properties=appends)):
            again(table).upsert(trips(rows), properties=appends)

    write_between({"a": (3, "sf"), "x": (3, "sf")}, {"b": (2, "sf"), "y": (2, "sf")})
    rows = {**START, "a": (3, "sf"), "b": (2, "sf"), "x": (3, "sf"), "y": (2, "sf")}
    assert rows_of(table.view().store) == rows
    with pytest.raises(CommitConflictError, match="inserted into the same"):
        write_between({"new": (3, "oslo")}, {"new": (2, "rome")})
    check(table, {**rows, "new": (2, "rome")})
