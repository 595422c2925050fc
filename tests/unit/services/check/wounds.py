"""Tables with one wound each: what a dead process or a damaged disk left, and what `verify` and `repair` make of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.table_properties import BACKUP, PROPERTIES, update_table_config
from hoodie.index.record.entries import EntryWriter
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.delta_commit import FileGroupDelta
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.files import FilesKind
from hoodie.services.check import kinds
from hoodie.services.check.kinds import FindingKind
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline.locks import storage_based
from tests.crash.tables import Rows, copy_of, new_table, run_until, trips
from tests.support.fault_store import CrashPoint

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
SECOND: Rows = {**START, "a": (2, "sf"), "d": (2, "nyc")}
THIRD: Rows = {**SECOND, "b": (3, "sf"), "e": (3, "la")}
TIMELINE = ".hoodie/timeline"
METADATA_TIMELINE = ".hoodie/metadata/.hoodie/timeline"
_OLD_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Wound:
    """A table, the findings that it must give, and its rows after the repair (None: no repair mends it).

    `rows_before` are the rows that a reader sees before the repair; None if a read fails or the rows are wrong.
    """

    name: str
    make: Callable[[], Store]
    findings: frozenset[FindingKind]
    rows: Rows | None = None
    rows_before: Rows | None = None
    full: bool = False


@functools.cache
def _sound(table_type: str) -> MemoryStore:
    """Return a table of two commits whose writers all ended."""
    store = MemoryStore()
    new_table(store, table_type=table_type)
    Table(store).upsert(trips(START))
    Table(store).upsert(trips({"a": (2, "sf"), "d": (2, "nyc")}))
    return store


def sound(table_type: str = "copy_on_write") -> MemoryStore:
    """Return a new copy of a sound table with the rows `SECOND`."""
    return copy_of(_sound(table_type))


def paths(store: Store, folder: str, ending: str, *, recursive: bool = False) -> list[str]:
    """Return the files of a folder whose path ends so."""
    found = [info.path for info in store.list(folder, recursive=recursive) if info.path.endswith(ending)]
    assert found, f"no file {folder}/…{ending}"
    return found


def data_files(store: Store) -> list[str]:
    """Return the base files, the oldest first."""
    found = [p for p in paths(store, "", ".parquet", recursive=True) if not p.startswith(".hoodie/")]
    return sorted(found, key=lambda path: path.rpartition("_")[2])


def died(operation: str, ending: str, point: CrashPoint, *, table_type: str = "copy_on_write") -> MemoryStore:
    """Return a table on which a third write died at the call; all its files are old."""
    store = sound(table_type)

    def write(table: Table) -> object:
        return table.upsert(trips({"b": (3, "sf"), "e": (3, "la")}))

    calls = run_until(copy_of(store), write, None).calls
    number = next(n for n, call in enumerate(calls, 1) if call.operation == operation and call.path.endswith(ending))
    run_until(store, write, number, point)
    return aged(store)


def _died_halfway(call: Callable[[Table], object], *, before: Rows) -> Callable[[], MemoryStore]:
    """Make a table with a third write of these rows on which the call died after half of its storage calls."""

    def make() -> MemoryStore:
        store = sound()
        Table(store).upsert(trips(before))
        calls = run_until(copy_of(store), call, None).calls
        run_until(store, call, len(calls) // 2)
        return aged(store)

    return make


def _restore_first(table: Table) -> object:
    return table.restore(table.timeline.writes().instants[0].requested_time)


def _clean_all(table: Table) -> object:
    return table.clean(properties={"hoodie.clean.commits.retained": "1"})


def aged(store: MemoryStore) -> MemoryStore:
    """Make every file old, so that it counts as left by a dead process."""
    for info in (*store.list("", recursive=True), *store.temporary_files()):
        store.set_modified_ms(info.path, _OLD_MS)
    return store


def _damaged(change: Callable[[MemoryStore], None], table_type: str = "copy_on_write") -> Callable[[], Store]:
    def make() -> Store:
        store = sound(table_type)
        change(store)
        return aged(store)

    return make


def _lose_properties(store: MemoryStore) -> None:
    store.replace(BACKUP, store.read(PROPERTIES))
    store.delete(PROPERTIES)


def _half_properties(store: MemoryStore) -> None:
    content = store.read(PROPERTIES)
    store.replace(BACKUP, content)
    store.replace(PROPERTIES, b"#Updated at now\n")


def _keep_backup(store: MemoryStore) -> None:
    store.replace(BACKUP, store.read(PROPERTIES))


def _empty_newest(store: MemoryStore) -> None:
    store.replace(paths(store, TIMELINE, ".commit")[-1], b"")


def _empty_oldest(store: MemoryStore) -> None:
    store.replace(paths(store, TIMELINE, ".commit")[0], b"")


def _garbage_newest(store: MemoryStore) -> None:
    newest = paths(store, TIMELINE, ".commit")[-1]
    store.replace(newest, store.read(newest)[:-40])


def _double(store: MemoryStore) -> None:
    newest = paths(store, TIMELINE, ".commit")[-1]
    store.create(newest.replace(".commit", "1.commit"), store.read(newest))


def _lose_requested(store: MemoryStore) -> None:
    store.delete(paths(store, TIMELINE, ".commit.requested")[0])


def _empty_rollback_plan(store: MemoryStore) -> None:
    store.create(f"{TIMELINE}/20990101000000000.rollback.requested", b"")


def _empty_compaction_plan(store: MemoryStore) -> None:
    store.create(f"{TIMELINE}/20990101000000000.compaction.requested", b"")


def _lose_instant(store: MemoryStore) -> None:
    newest = paths(store, TIMELINE, ".commit")[-1]
    time = newest.rpartition("/")[2].partition("_")[0]
    for path in [path for path in paths(store, TIMELINE, "") if path.rpartition("/")[2].startswith(time)]:
        store.delete(path)


def _lose_completed(store: MemoryStore) -> None:
    store.delete(paths(store, TIMELINE, ".commit")[0])


def _orphan_of_a_failed_task(store: MemoryStore) -> None:
    newest = data_files(store)[-1]
    file_id, token, instant = newest.rpartition("/")[2].split("_")
    other = f"{file_id[:-1]}7_9{token}_{instant}"
    store.create(f"{newest.rpartition('/')[0]}/{other}", store.read(newest))


def orphan_of_no_instant(store: MemoryStore) -> None:
    """Add a base file whose instant is not on the timeline."""
    newest = data_files(store)[-1]
    head, _, _ = newest.rpartition("_")
    store.create(f"{head}_20990101000000000.parquet", store.read(newest))


def _orphan_before_the_timeline(store: MemoryStore) -> None:
    oldest = data_files(store)[0]
    folder, _, name = oldest.rpartition("/")
    file_id, token, _ = name.split("_")
    store.create(f"{folder}/{file_id}9_{token}_20000101000000000.parquet", store.read(oldest))


def _lose_newest_data(store: MemoryStore) -> None:
    store.delete(data_files(store)[-1])


def _cut_newest_data(store: MemoryStore) -> None:
    newest = data_files(store)[-1]
    store.replace(newest, store.read(newest)[:-20])


def _lose_old_data(store: MemoryStore) -> None:
    """Delete the version of sf's file that the second commit replaced, as a JVM cleaner without the listing would."""
    store.delete(next(path for path in data_files(store) if path.startswith("city=sf") or path.startswith("sf/")))


def _lose_partition_file(store: MemoryStore) -> None:
    found = paths(store, "", ".hoodie_partition_metadata", recursive=True)
    store.delete(next(path for path in found if not path.startswith(".hoodie/")))


def _lose_metadata_table(store: MemoryStore) -> None:
    store.delete_folder(".hoodie/metadata")


def _cut_metadata_log(store: MemoryStore) -> None:
    log = [path for path in paths(store, ".hoodie/metadata/files", "") if ".log." in path][-1]
    store.replace(log, store.read(log)[:-11])


def _lose_metadata_log(store: MemoryStore) -> None:
    store.delete([path for path in paths(store, ".hoodie/metadata/files", "") if ".log." in path][-1])


def _lose_index_log(store: MemoryStore) -> None:
    store.delete([path for path in paths(store, ".hoodie/metadata/record_index", "") if ".log." in path][-1])


def _empty_metadata_instant(store: MemoryStore) -> None:
    store.replace(paths(store, METADATA_TIMELINE, ".deltacommit")[-1], b"")


def _lose_metadata_instant(store: MemoryStore) -> None:
    store.delete(paths(store, METADATA_TIMELINE, ".deltacommit")[-1])


def _flip_a_page(store: MemoryStore) -> None:
    newest = data_files(store)[-1]
    content = bytearray(store.read(newest))
    content[200] ^= 0xFF
    store.replace(newest, bytes(content))


def _flip_a_log(store: MemoryStore) -> None:
    log = [path for path in paths(store, "", "", recursive=True) if ".log." in path and not path.startswith(".hoodie")]
    content = bytearray(store.read(log[-1]))
    content[len(content) // 2] ^= 0xFF
    store.replace(log[-1], bytes(content))


def _index_of_other_rows(store: MemoryStore) -> None:
    """Write a row that the record index does not get, and take it for an old one: a writer with a defect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EntryWriter, "put", lambda *_: None)
        Table(store).upsert(trips({"b": (3, "sf"), "e": (3, "la")}))


def _doubled_key() -> Store:
    """Add a row of a key that another file group of the same partition has, as an insert without a look-up does."""
    store = MemoryStore()
    new_table(store, index="simple")
    Table(store).upsert(trips(START))
    Table(store).bulk_insert(trips({"a": (7, "sf")}))
    return aged(store)


def _drop_the_index(store: MemoryStore) -> None:
    """Drop the index as a JVM call without index options does: the properties that ask for it stay."""
    update_table_config(store, {"hoodie.table.metadata.partitions": "files"})
    store.delete_folder(".hoodie/metadata/record_index")


def _abandon_a_build(store: MemoryStore) -> None:
    update_table_config(store, {"hoodie.table.metadata.partitions.inflight": "column_stats"})


def _list_another_length(store: MemoryStore) -> None:
    original = FilesKind.rows_of

    def rows_of(self: FilesKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
        added = {path: {name: 7 for name in names} for path, names in changes.files_added.items()}
        return original(self, replace(changes, files_added=added), *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FilesKind, "rows_of", rows_of)
        Table(store).upsert(trips({"b": (3, "sf"), "e": (3, "la")}))


def _stage(store: MemoryStore) -> None:
    store.create(f"{TEMP_FOLDER}/stage-other/rows.arrow", b"x")


def _files_of_a_build(store: MemoryStore) -> None:
    log = next(path for path in paths(store, ".hoodie/metadata/record_index", "") if ".log." in path)
    folder, _, name = log.rpartition("/")
    store.create(f"{folder}/{name.partition('_')[0]}_20200101000000000004.log.1_0-0-0", store.read(log))


def _with_statistics(change: Callable[[MemoryStore], None]) -> Callable[[], Store]:
    def make() -> Store:
        store = sound()
        Table(store).index.build("column_stats")
        change(store)
        return aged(store)

    return make


def _wrong_ranges(store: MemoryStore) -> None:
    """Write a file whose ranges are those of no row: a writer with a defect."""
    original = ColumnStatsKind.rows_of

    def rows_of(self: ColumnStatsKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
        return original(self, replace(changes, collected={}), *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnStatsKind, "rows_of", rows_of)
        Table(store).upsert(trips({"b": (3, "sf"), "e": (3, "la")}))


def _drop_the_statistics(store: MemoryStore) -> None:
    update_table_config(store, {"hoodie.table.metadata.partitions": "files,record_index"})
    for name in ("column_stats", "partition_stats"):
        store.delete_folder(f".hoodie/metadata/{name}")


def _lose_statistics_log(store: MemoryStore) -> None:
    Table(store).upsert(trips({"b": (3, "sf"), "e": (3, "la")}))
    store.delete([path for path in paths(store, ".hoodie/metadata/column_stats", "") if ".log." in path][-1])


def _changed(partition: str, ending: str, change: Callable[[bytes], bytes]) -> Callable[[MemoryStore], None]:
    """Return a change of the newest file of a metadata partition whose name has this text."""

    def apply(store: MemoryStore) -> None:
        if (partition, ending) == ("record_index", ".hfile"):
            Table(store).index.rebuild()  # an index that began empty has log files only
        found = [path for path in paths(store, f".hoodie/metadata/{partition}", "") if ending in path]
        store.replace(found[-1], change(store.read(found[-1])))

    return apply


def _empty(_content: bytes) -> bytes:
    return b""


def _halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    place = len(content) - 5000 if len(content) > 5000 else len(content) // 2
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def _marker_folder(store: MemoryStore) -> None:
    store.create(f"{TEMP_FOLDER}/20200101000000000/MARKERS.type", b"DIRECT")


def _heartbeats(store: MemoryStore) -> None:
    store.create(".hoodie/.heartbeat/20200101000000000", b"")
    store.create(".hoodie/metadata/.hoodie/.heartbeat/20200101000000000", b"")


def _lock_files(store: MemoryStore) -> None:
    store.create(".hoodie/.locks/prepared-0000", b"x")


def _no_lock(store: MemoryStore) -> None:
    store.create(f".hoodie/.locks/{storage_based.FILE_NAME}", b"{}")


def _temporary(store: MemoryStore) -> None:
    store.create("city=sf/.tmp-0000", b"x")
    store.create(".hoodie/timeline/.tmp-0001", b"x")


_DAMAGE: dict[str, dict[str, Callable[[bytes], bytes]]] = {
    ".hfile": {"an empty base file": _empty, "a cut base file": _halved, "a changed byte in a base file": _flipped},
    ".log.": {"an empty log file": _empty, "a changed byte in a log file": _flipped},
}


def _empty_clean() -> Store:
    store = sound()
    Table(store).upsert(trips({"b": (3, "sf"), "e": (3, "la")}))
    _clean_all(Table(store))
    store.replace(paths(store, TIMELINE, ".clean")[-1], b"")
    return aged(store)


def _kinds(*found: FindingKind) -> frozenset[FindingKind]:
    return frozenset(found)


WOUNDS = [
    Wound(
        "missing properties with a backup", _damaged(_lose_properties), _kinds(kinds.PROPERTIES_DAMAGED), SECOND, SECOND
    ),
    Wound(
        "half-written properties with a backup",
        _damaged(_half_properties),
        _kinds(kinds.PROPERTIES_DAMAGED),
        SECOND,
        SECOND,
    ),
    Wound("a backup of the properties", _damaged(_keep_backup), _kinds(kinds.PROPERTIES_BACKUP), SECOND, SECOND),
    Wound("an empty completed file, the newest", _damaged(_empty_newest), _kinds(kinds.INSTANT_EMPTY), START),
    Wound("an empty completed file, not the newest", _damaged(_empty_oldest), _kinds(kinds.INSTANT_DAMAGED)),
    Wound("a torn completed file", _damaged(_garbage_newest), _kinds(kinds.INSTANT_DAMAGED)),
    Wound("two completed files of one instant", _damaged(_double), _kinds(kinds.INSTANT_DOUBLED), None, SECOND),
    Wound("a missing requested file", _damaged(_lose_requested), _kinds(kinds.INSTANT_NOT_REQUESTED), None, SECOND),
    Wound(
        "a rollback without a plan",
        _damaged(_empty_rollback_plan),
        _kinds(kinds.PLAN_EMPTY, kinds.ROLLBACK_PENDING),
        SECOND,
        SECOND,
    ),
    Wound(
        "a compaction without a plan",
        _damaged(_empty_compaction_plan, "merge_on_read"),
        _kinds(kinds.PLAN_EMPTY),
        SECOND,
        SECOND,
    ),
    Wound(
        "a missing completed file of an older commit",
        _damaged(_lose_completed),
        _kinds(kinds.COMPLETION_LOST),
        SECOND,
    ),
    Wound("all instant files of a commit are missing", _damaged(_lose_instant), _kinds(kinds.INSTANT_LOST)),
    Wound(
        "a base file of a failed task", _damaged(_orphan_of_a_failed_task), _kinds(kinds.FILE_ORPHANED), SECOND, SECOND
    ),
    Wound("a base file of no instant", _damaged(orphan_of_no_instant), _kinds(kinds.FILE_ORPHANED), SECOND, SECOND),
    Wound(
        "a base file older than the timeline",
        _damaged(_orphan_before_the_timeline),
        _kinds(kinds.FILE_ORPHANED),
        SECOND,
        SECOND,
    ),
    Wound("a missing base file", _damaged(_lose_newest_data), _kinds(kinds.FILE_MISSING)),
    Wound("a base file that was cut", _damaged(_cut_newest_data), _kinds(kinds.FILE_LENGTH)),
    Wound(
        "a missing base file of an old version", _damaged(_lose_old_data), _kinds(kinds.LISTING_STALE), SECOND, SECOND
    ),
    Wound(
        "a missing partition metadata file",
        _damaged(_lose_partition_file),
        _kinds(kinds.PARTITION_FILE_MISSING),
        SECOND,
        SECOND,
    ),
    Wound("a missing metadata table", _damaged(_lose_metadata_table), _kinds(kinds.METADATA_MISSING), SECOND),
    Wound("a torn log file of the listing", _damaged(_cut_metadata_log), _kinds(kinds.METADATA_DAMAGED), SECOND),
    Wound("a missing log file of the listing", _damaged(_lose_metadata_log), _kinds(kinds.METADATA_DAMAGED), SECOND),
    Wound(
        "a missing log file of the record index",
        _damaged(_lose_index_log),
        _kinds(kinds.METADATA_DAMAGED),
        SECOND,
        SECOND,
    ),
    Wound(
        "an empty completed file of the metadata table",
        _damaged(_empty_metadata_instant),
        _kinds(kinds.METADATA_DAMAGED),
        SECOND,
    ),
    Wound(
        "a missing completed file of the metadata table",
        _damaged(_lose_metadata_instant),
        _kinds(kinds.METADATA_BEHIND, kinds.LISTING_LACKS),
        SECOND,
    ),
    Wound(
        "a write that died when it was requested",
        lambda: died("create", ".commit.requested", CrashPoint.AFTER),
        _kinds(kinds.WRITE_DEAD),
        SECOND,
        SECOND,
    ),
    Wound(
        "a write that died with half a file",
        lambda: died("close_output", ".parquet", CrashPoint.BEFORE),
        _kinds(kinds.WRITE_DEAD),
        SECOND,
        SECOND,
    ),
    Wound(
        "a write that died before its last step",
        lambda: died("move", ".commit", CrashPoint.BEFORE),
        _kinds(kinds.WRITE_DEAD),
        SECOND,
        SECOND,
    ),
    Wound(
        "a restore that died halfway",
        _died_halfway(_restore_first, before={"b": (3, "sf"), "e": (3, "la")}),
        _kinds(kinds.RESTORE_PENDING),
        START,
    ),
    Wound(
        "a clean that died halfway",
        _died_halfway(_clean_all, before={"b": (3, "sf"), "e": (3, "la")}),
        _kinds(kinds.CLEAN_PENDING),
        THIRD,
        THIRD,
    ),
    Wound("an empty completed clean", _empty_clean, _kinds(kinds.INSTANT_EMPTY), THIRD, THIRD),
    Wound("a changed byte in a base file", _damaged(_flip_a_page), _kinds(kinds.FILE_DAMAGED), full=True),
    Wound(
        "a changed byte in a log file", _damaged(_flip_a_log, "merge_on_read"), _kinds(kinds.FILE_DAMAGED), full=True
    ),
    Wound(
        "an index of other rows", _damaged(_index_of_other_rows), _kinds(kinds.INDEX_DIFFERS), THIRD, THIRD, full=True
    ),
    Wound("a key of two rows", _doubled_key, _kinds(kinds.KEY_DOUBLED), full=True),
    Wound("an index that a JVM call dropped", _damaged(_drop_the_index), _kinds(kinds.INDEX_MISSING), SECOND),
    Wound("an abandoned build", _damaged(_abandon_a_build), _kinds(kinds.INDEX_BUILD_ABANDONED), SECOND, SECOND),
    Wound("a listing of another length", _damaged(_list_another_length), _kinds(kinds.LISTING_LENGTH), THIRD),
    Wound(
        "ranges that a writer did not store",
        _with_statistics(_wrong_ranges),
        _kinds(kinds.STATISTICS_DIFFER),
        THIRD,
        full=True,
    ),
    Wound(
        "statistics that another writer dropped",
        _with_statistics(_drop_the_statistics),
        _kinds(kinds.STATISTICS_MISSING),
        SECOND,
        SECOND,
    ),
    Wound(
        "a missing log file of the statistics",
        _with_statistics(_lose_statistics_log),
        _kinds(kinds.METADATA_DAMAGED),
        THIRD,
    ),
    *(
        Wound(
            f"{name} of the {told}",
            _with_statistics(_changed(partition, ending, change)),
            _kinds(kinds.METADATA_DAMAGED),
            SECOND,
        )
        for partition, told, ending in (
            ("record_index", "record index", ".hfile"),
            ("column_stats", "column statistics", ".hfile"),
            ("partition_stats", "partition statistics", ".hfile"),
            ("record_index", "record index", ".log."),
        )
        for name, change in _DAMAGE[ending].items()
    ),
    Wound(
        "files of a build that was not completed",
        _damaged(_files_of_a_build),
        _kinds(kinds.LEFTOVER_INDEX_FILES),
        SECOND,
        SECOND,
    ),
    Wound("staged rows", _damaged(_stage), _kinds(kinds.LEFTOVER_STAGE), SECOND, SECOND),
    Wound("markers of an ended instant", _damaged(_marker_folder), _kinds(kinds.LEFTOVER_MARKERS), SECOND, SECOND),
    Wound("heartbeats of ended instants", _damaged(_heartbeats), _kinds(kinds.LEFTOVER_HEARTBEAT), SECOND, SECOND),
    Wound("a prepared completed file", _damaged(_lock_files), _kinds(kinds.LEFTOVER_LOCK), SECOND, SECOND),
    Wound("a storage-based lock file without a lock", _damaged(_no_lock), _kinds(kinds.LOCK_DAMAGED), None, SECOND),
    Wound("half-written temporary files", _damaged(_temporary), _kinds(kinds.LEFTOVER_TEMPORARY), SECOND, SECOND),
]
