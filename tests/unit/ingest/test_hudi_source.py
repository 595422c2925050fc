"""The source `hudi` in this process: places, modes, starts, limits, lost history."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.latest import latest
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.sources.hudi import CHANGE, Hudi
from hoodie.records.change import IS_DELETED
from tests.support.fault_store import CrashError, FaultStore
from tests.support.overtaken import held_before_commit
from tests.support.tables import new_table

_numbers = itertools.count()
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("p", pa.string())])


def made(*rows: dict[str, Any], **options: Any) -> hoodie.Table:
    """A table with these rows."""
    return new_table(SCHEMA, *([[*rows]] if rows else []), partition_by="p", **options)


def row(key: str, n: int, p: str = "x") -> dict[str, Any]:
    return {"id": key, "n": n, "p": p}


def planned(source: Hudi, after: str | None = None, limit: int | None = None) -> Batch:
    batch = source.plan(Request(after=after, limit=limit))
    assert batch is not None
    return batch


def values(batch: Batch) -> set[tuple[Any, ...]]:
    """Id and number of each row, for change data whether it is a delete; the last one of each key."""
    read = batch.read()
    if isinstance(read, Decoded):
        rows = latest(read.rows, ["id"], read.order)
        return {tuple(found.values()) for found in rows.select(["id", "n", "_hoodie_is_deleted"]).to_pylist()}
    table = read.read_all()
    assert table.column_names in (SCHEMA.names, [*SCHEMA.names, IS_DELETED])
    return {(found["id"], found["n"]) for found in table.to_pylist()}


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_snapshot_and_then_what_changes(version: int, kind: str) -> None:
    table = made(table_version=version, type=kind)
    source = Hudi(table.path)
    assert source.plan(Request()) is None
    table.upsert([row("a", 1), row("b", 1)])
    table.upsert([row("b", 2)])
    first = planned(source)
    assert values(first) == values(first) == {("a", 1), ("b", 2)}
    newest = table.view().completed_writes()[-1]
    assert first.place == (newest.requested_time if version == 6 else newest.completion_time)
    assert source.place_version == Hudi(table.path).place_version == (1 if version == 6 else 2)
    assert source.plan(Request(after=first.place)) is None
    table.upsert([row("c", 3, "y")])
    second = planned(source, first.place)
    assert values(second) == {("c", 3)}
    assert (second.lag_rows, second.lag_seconds, second.notes) == (0, 0.0, ())
    assert source.plan(Request(after=second.place)) is None


@pytest.mark.parametrize("mode", ["latest", "cdc"])
@pytest.mark.parametrize("name", [None, "a"])
def test_a_source_that_is_upgraded_is_not_read_twice(mode: str, name: str | None) -> None:
    table = made(table_version=6)
    target = f"{table.path}-to"

    def ingest() -> int:
        source, create = {"kind": "hudi", "path": table.path, "mode": mode}, {"table_version": 9}
        return hoodie.ingest(source, target, operation="insert", create=create, name=name, spark=False).inserted

    for number in range(3):
        table.upsert([row(f"k{number}", number)])
        assert ingest() == 1
    table.upgrade(to=9, dry_run=False)
    assert (ingest(), ingest()) == (0, 0)
    table.upsert([row("new", 1)])
    assert (ingest(), ingest()) == (1, 0)


def test_a_batch_does_not_change_after_it_was_planned() -> None:
    table = made(row("a", 1))
    first = planned(Hudi(table.path))
    table.upsert([row("a", 2)])
    assert values(first) == {("a", 1)}
    assert values(planned(Hudi(table.path), first.place)) == {("a", 2)}


def test_the_limit_is_a_number_of_commits() -> None:
    table = made()
    for number in range(5):
        table.upsert([row(f"k{number}", number)])
    source = Hudi(table.path, start="earliest")
    place, seen, lags = None, list[set[tuple[Any, ...]]](), []
    while (batch := source.plan(Request(after=place, limit=2))) is not None:
        place = batch.place
        seen.append(values(batch))
        lags.append(batch.lag_seconds)
    assert seen == [{("k0", 0), ("k1", 1)}, {("k2", 2), ("k3", 3)}, {("k4", 4)}]
    assert (lags[0] or 0) > 0
    assert lags[-1] == 0


def test_starts() -> None:
    table = made(row("a", 1))
    middle = table.upsert([row("b", 1)]).instant
    table.upsert([row("c", 1)])
    assert values(planned(Hudi(table.path, start="earliest"))) == {("a", 1), ("b", 1), ("c", 1)}
    assert values(planned(Hudi(table.path, start=str(middle)))) == {("c", 1)}
    later = planned(Hudi(table.path, start="latest"))
    assert values(later) == set()
    table.upsert([row("d", 1)])
    assert values(planned(Hudi(table.path), later.place)) == {("d", 1)}
    assert planned(Hudi(made().path, start="latest")).place == "0" * 17


def test_table_services_are_no_news() -> None:
    table = made(row("a", 1), type="merge_on_read")
    source = Hudi(table.path)
    place = planned(source).place
    table.upsert([row("a", 2)])
    place = planned(source, place).place
    table.schedule_compaction()
    table.compact()
    table.cluster()
    table.clean()
    assert source.plan(Request(after=place)) is None
    assert source.plan(Request(after=place)) is None
    table.upsert([row("b", 1)])
    batch = planned(source, place, limit=1)
    assert "1 commit in" in batch.about
    assert values(batch) == {("b", 1)}


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("is_logged", [False, True])
def test_change_data_with_deletes(kind: str, is_logged: bool) -> None:
    logged = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER"}
    table = made(row("a", 1), row("b", 1), row("c", 1), row("d", 1), type=kind, properties=logged if is_logged else {})
    source = Hudi(table.path, mode="cdc")
    first = planned(source)
    table.upsert([row("a", 2)])
    table.upsert([row("a", 3)])
    table.delete(["b", "c"])
    table.upsert([row("c", 4)])
    batch = planned(source, first.place)
    assert values(batch) == {("a", 3, False), ("b", 1, True), ("c", 4, False)}
    assert batch.notes == ()
    assert batch.read().rows.column_names == ["id", "n", "p", CHANGE, "_hoodie_is_deleted"]
    found = planned(Hudi(table.path, mode="cdc", deletes=False), first.place).read()
    assert sorted(found.rows["n"].to_pylist()) == [2, 3, 4]
    assert "_hoodie_is_deleted" not in found.rows.column_names
    parts = planned(source, first.place, limit=1)
    assert values(parts) == {("a", 2, False)}


def test_a_record_that_moves_is_no_delete() -> None:
    table = made(row("a", 1), index="record", properties={"hoodie.record.index.update.partition.path": "true"})
    place = planned(Hudi(table.path)).place
    table.upsert([row("a", 2, "y")])
    assert values(planned(Hudi(table.path, mode="cdc"), place)) == {("a", 2, False)}


def test_mode_latest_notes_what_it_does_not_see() -> None:
    table = made(row("a", 1), row("b", 1), row("c", 1, "y"))
    place = planned(Hudi(table.path)).place
    table.delete([{"id": "a", "p": "x"}])
    table.delete_partitions([{"p": "y"}])
    batch = planned(Hudi(table.path), place)
    assert values(batch) == set()
    assert any("DELETE_PARTITION" in note for note in batch.notes)
    assert any("1 rows that the commits deleted" in note for note in batch.notes)


def test_a_restore_behind_the_place_is_an_error() -> None:
    table = made(row("a", 1))
    saved = table.savepoint().instant
    table.upsert([row("a", 2), row("b", 1)])
    place = planned(Hudi(table.path)).place
    assert saved is not None
    table.restore(saved)
    for source in (Hudi(table.path), Hudi(table.path, mode="cdc")):
        with pytest.raises(SourceError, match=r"was restored .* restart = \"snapshot\""):
            source.plan(Request(after=place))
    again = planned(Hudi(table.path, restart="snapshot"), place)
    assert values(again) == {("a", 1)}
    assert "the whole table is read again" in again.notes[0]
    assert Hudi(table.path).plan(Request(after=again.place)) is None


def test_change_data_that_was_cleaned_names_the_oldest_instant() -> None:
    table = made(row("a", 0), properties={"hoodie.clean.commits.retained": "1"})
    place = planned(Hudi(table.path)).place
    for number in range(1, 5):
        table.upsert([row("a", number)])
        table.clean()
    with pytest.raises(SourceError, match="The oldest instant that can be read is 2"):
        Hudi(table.path, mode="cdc").plan(Request(after=place))
    # Mode latest needs the newest files only, and then reads more commits than the limit.
    assert values(planned(Hudi(table.path), place)) == {("a", 4)}
    longer = planned(Hudi(table.path), place, limit=1)
    assert values(longer) == {("a", 4)}
    assert "longer than the limit" in longer.notes[-1]
    again = planned(Hudi(table.path, mode="cdc", restart="snapshot"), place)
    assert {found[:2] for found in values(again)} == {("a", 4)}


def test_a_place_that_has_no_news_takes_two_requests() -> None:
    table = made(row("a", 1))
    store = FaultStore(table.view().store, count_reads=True)
    store.register()
    source = Hudi(store.spec.uri)
    place = planned(source).place
    assert source.plan(Request(after=place)) is None
    store.calls.clear()
    assert source.plan(Request(after=place)) is None
    assert [(call.operation, call.path) for call in store.calls] == [
        ("read", ".hoodie/hoodie.properties"),
        ("names", ".hoodie/timeline"),
    ]
    store.unregister()


def test_the_rollback_of_a_dead_write_is_harmless() -> None:
    table = made(row("a", 1))
    place = planned(Hudi(table.path)).place
    store = FaultStore(table.view().store, fail_at=6)
    store.register()
    with pytest.raises(CrashError):
        hoodie.open(store.spec.uri, spark=False).upsert([row("b", 1)])
    store.unregister()
    assert len(table.view().timeline.pending().instants) == 1
    table.rollback(table.view().timeline.pending().instants[0].requested_time)
    for source in (Hudi(table.path), Hudi(table.path, mode="cdc")):
        assert source.plan(Request(after=place)) is None
    table.upsert([row("c", 1)])
    assert values(planned(Hudi(table.path), place)) == {("c", 1)}


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_completes_late_is_not_missed(version: int) -> None:
    lock = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"} if version == 6 else {}
    table = made(row("a", 1), table_version=version)
    source = Hudi(table.path)
    place = planned(source).place
    other = hoodie.open(table.path, spark=False)
    finish = held_before_commit(lambda: other.upsert([row("late", 1, "y")], properties=lock))
    table.upsert([row("b", 1)], properties=lock)
    seen = set[tuple[Any, ...]]()
    if version == 6:
        with pytest.raises(UnsupportedError, match="is pending"):
            source.plan(Request(after=place))
    else:
        batch = planned(source, place)
        place, seen = batch.place, values(batch)
        assert seen == {("b", 1)}
    finish()
    assert seen | values(planned(source, place)) == {("b", 1), ("late", 1)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "all"}, "mode: expected one of latest, cdc"),
        ({"restart": "yes"}, "restart: expected one of error, snapshot"),
        ({"start": ""}, "start: expected snapshot"),
        ({"deletes": True}, 'expected mode = "cdc"'),
        ({"deletes": "x"}, "expected true or false"),
    ],
)
def test_wrong_options(options: Any, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        Hudi("x", **options)


def test_a_place_of_another_source_is_refused() -> None:
    table = made()
    with pytest.raises(SourceError, match="the time of a commit"):
        Hudi(table.path).plan(Request(after="topic,0:5"))


def test_secrets_are_not_shown() -> None:
    assert "hush" not in repr(Hudi("x", storage_options={"secret": "hush"}))
