"""Checks and repairs of tables of version 6, whose log files do not have the instant of their write in their names."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from tests.support.tables import TYPES, Rows, made_once, rows_of, trips, trips_store


@made_once
def _life(table_type: str, **properties: str) -> MemoryStore:
    """A table with inserts, updates of several log files, a compaction beside writes, and a delete."""
    store = trips_store(
        {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}, {"a": (2, "sf"), "d": (2, "la")},
        {"a": (3, "sf"), "c": (3, "nyc")}, table_type=table_type, index="simple", table_version=6,
        properties={"hoodie.archive.automatic": "false", **properties},
    )  # fmt: skip
    table = Table(store)
    if table_type == "merge_on_read":
        table.upsert(trips({"a": (4, "sf"), "b": (4, "sf")}))
        assert table.schedule_compaction()
        table.upsert(trips({"b": (5, "sf")}))
        table.upsert(trips({"a": (6, "sf")}))
        table.compact()
    table.delete(trips({"c": (0, "nyc")}).select(["id", "city"]))
    table.upsert(trips({"d": (7, "la")}))
    return store


def _past(store: Store) -> dict[str, Rows]:
    table, found = Table(store), {}
    for instant in table.timeline.writes().completed():
        rows = table.to_arrow(columns=["id", "ts", "city"], as_of=instant.requested_time).to_pylist()
        found[instant.requested_time] = {row["id"]: (row["ts"], row["city"]) for row in rows}
    return found


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("has_metadata_table", [True, False])
def test_a_lost_completed_file_is_written_anew(table_type: str, has_metadata_table: bool) -> None:
    whole = _life(table_type)
    past, rows = _past(whole), rows_of(whole)
    instants, mended = Table(whole).timeline.writes().completed().instants, 0
    # An insert, an update, a compaction, an update of after its plan, a delete.
    chosen = (0, 1, 4, 5, 7) if table_type == "merge_on_read" else (0, 1, 3)
    for instant in [instants[place] for place in chosen]:
        store = _life(table_type)
        lost = f".hoodie/{instant.requested_time}.{instant.action}"
        before = Table(store).view().commit_metadata(instant)
        store.delete(lost)
        if not has_metadata_table:
            update_table_config(store, {"hoodie.table.metadata.partitions": None})
            store.delete_folder(".hoodie/metadata")
        report = Table(store).verify()
        if "completion-lost" not in report.problems:
            # Without the metadata table, only a later write on its files proves that it completed.
            assert not has_metadata_table, (instant, report)
            continue
        done = Table(store).repair(dry_run=False, min_age_seconds=0)
        assert any("has a new completed file" in note for note in done.notes), done.notes
        after = Table(store).view().commit_metadata(instant)
        assert {stat.path for stat in after.write_stats()} == {stat.path for stat in before.write_stats()}
        assert (after.operation_type, after.compacted) == (before.operation_type, before.compacted)
        assert (rows_of(store), _past(store)) == (rows, past)
        report = Table(store).verify(full=True)
        assert report.ok, report
        mended += 1
        Table(store).upsert(trips({"e": (8, "sf")}))
        assert rows_of(store) == {**rows, "e": (8, "sf")}
    assert mended == len(chosen) if has_metadata_table else mended >= 1


def test_reads_and_writes_refuse_while_a_completed_file_with_logged_rows_is_lost() -> None:
    store = _life("merge_on_read")
    instants = Table(store).timeline.writes().completed().instants
    lost = instants[-2]
    store.delete(f".hoodie/{lost.requested_time}.{lost.action}")
    with pytest.raises(hoodie.CorruptFileError, match=f"completed file of {lost.requested_time}"):
        rows_of(store)
    with pytest.raises(hoodie.CorruptFileError, match=f"completed file of {lost.requested_time}"):
        Table(store).upsert(trips({"e": (8, "sf")}))
    Table(store).repair(dry_run=False)
    assert rows_of(store)["a"] == (6, "sf")


def test_a_commit_that_the_metadata_table_lacks_is_found_in_a_copy_too() -> None:
    store = _life("merge_on_read")
    rows, lost = rows_of(store), Table(store).timeline.writes().completed().instants[2]
    for state in ("", ".inflight", ".requested"):
        store.delete(f".hoodie/metadata/.hoodie/{lost.requested_time}.deltacommit{state}")
    report = Table(store).verify()
    assert [found.key for found in report.findings if found.kind == "metadata-behind"] == [lost.requested_time]
    Table(store).repair(dry_run=False, min_age_seconds=0)
    report = Table(store).verify(full=True)
    assert report.ok, report
    assert rows_of(store) == rows


@made_once
def _archived() -> MemoryStore:
    """A table with archived instants."""
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    store = _life("copy_on_write", **limits, **{"hoodie.metadata.compact.max.delta.commits": "2"})
    for ts in range(10, 14):
        Table(store).upsert(trips({"a": (ts, "sf")}))
    assert Table(store).archive().counts["commits"]
    assert Table(store).verify().ok
    return store


def test_log_files_of_a_write_that_was_rolled_back_have_no_statistics() -> None:
    """The log file stays, with a block behind it that rolls it back."""
    store = _life("merge_on_read", **{"hoodie.metadata.index.column.stats.enable": "true"})
    table = Table(store)
    for ts in (8, 9):
        done = table.upsert(trips({"a": (ts, "sf"), "b": (ts, "sf")}))
    logs = len(store_logs(table))
    table.rollback(done.instant)
    assert len(store_logs(table)) > logs
    assert rows_of(store)["a"] == (8, "sf")
    report = table.verify(full=True)
    assert report.ok, report
    assert len(table.to_arrow(where="ts = 8")) == 2


def store_logs(table: Table) -> list[str]:
    return [row["file"] for row in table.inspect.files().to_pylist() if row["kind"] == "log" and row["is_current"]]


def test_an_orphan_of_an_instant_that_is_not_archived_is_found() -> None:
    store = _archived()
    rows, start = rows_of(store), int(Table(store).timeline.start or "")
    name = next(name for name in store.names("city=sf") if name.endswith(".parquet"))
    file_id, token, _ = name.split("_")
    orphan = f"city=sf/{file_id[:-1]}7_{token}_{start - 1}.parquet"
    store.create(orphan, store.read(f"city=sf/{name}"))
    report = Table(store).verify()
    assert [(found.kind, found.key) for found in report.findings] == [("file-orphaned", orphan)]
    assert Table(store).repair(dry_run=False, min_age_seconds=0).counts == {"orphans": 1}
    assert store.head(orphan) is None
    assert (Table(store).verify(full=True).ok, rows_of(store)) == (True, rows)


def test_a_damaged_archive_is_found() -> None:
    store = _archived()
    path = next(info.path for info in store.list(".hoodie/archived") if ".archive." in info.name)
    content = store.read(path)
    store.replace(path, content[: len(content) // 2])
    report = Table(store).verify()
    assert "archive-damaged" in report.problems, report
    assert any("archived timeline is damaged" in note for note in report.notes)
