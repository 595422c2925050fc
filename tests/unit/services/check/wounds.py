"""Tables with one wound each: what a dead process or a damaged disk left, and what `verify` and `repair` make of it."""

from __future__ import annotations

import re
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
from tests.support.archived import OFTEN
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint
from tests.support.tables import Rows, copy_of, made_once, trips, trips_store

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
SECOND: Rows = {**START, "a": (2, "sf"), "d": (2, "nyc")}
THIRD: Rows = {**SECOND, "b": (3, "sf"), "e": (3, "la")}
TIMELINE = ".hoodie/timeline"
METADATA_TIMELINE = ".hoodie/metadata/.hoodie/timeline"
_OLD_MS = 1_700_000_000_000

Change = Callable[[MemoryStore], object]
"""Wounds a table."""
File = Callable[[Store], str]
"""Chooses a file."""


@dataclass(frozen=True)
class Wound:
    """A table, the findings that it must give, and its rows after the repair (None: no repair mends it).

    `rows_before` are the rows that a reader sees before the repair; None if a read fails or the rows are wrong. `left`
    are findings of earlier states, which stay.
    """

    name: str
    change: Change
    findings: frozenset[FindingKind]
    rows: Rows | None = None
    rows_before: Rows | None = None
    full: bool = False
    kind: str = "copy_on_write"
    left: frozenset[FindingKind] = frozenset()

    def make(self, version: int = 9) -> MemoryStore:
        """Return a new copy of the wounded table of a version; all its files are old."""
        store = sound(self.kind, version)
        self.change(store)
        return aged(store)


@made_once
def sound(kind: str = "copy_on_write", version: int = 9) -> MemoryStore:
    """Return a table of two commits whose writers all ended, with the rows `SECOND`."""
    second = {"a": (2, "sf"), "d": (2, "nyc")}
    table_type = "merge_on_read" if kind == "merge_on_read" else "copy_on_write"
    index = "simple" if kind == "simple" else "record"
    store = trips_store(START, second, table_type=table_type, index=index, table_version=version)
    if kind == "statistics":
        Table(store).index.build("column_stats")
    return store


def aged(store: MemoryStore) -> MemoryStore:
    """Make every file old, so that it counts as left by a dead process."""
    for info in (*store.list("", recursive=True), *store.temporary_files()):
        store.set_modified_ms(info.path, _OLD_MS)
    return store


def paths(store: Store, folder: str, pattern: str, *, recursive: bool = False) -> list[str]:
    """Return the files of a folder whose path has this pattern."""
    infos = store.list(_placed(store, folder), recursive=recursive)
    found = [info.path for info in infos if re.search(pattern, info.path)]
    assert found, f"no file {folder}/…{pattern}"
    return found


def _placed(store: Store, path: str) -> str:
    """Return a path of the timeline in its place: version 6 has no folder `timeline`."""
    is_old = b"hoodie.table.version=6" in store.read(PROPERTIES)
    return path.replace("/timeline/history", "/archived").replace("/timeline", "") if is_old else path


def data_files(store: Store) -> list[str]:
    """Return the base files, the oldest first."""
    found = [path for path in paths(store, "", r"\.parquet$", recursive=True) if not path.startswith(".hoodie/")]
    return sorted(found, key=lambda path: path.rpartition("_")[2])


def _file(folder: str, pattern: str, place: int = -1) -> File:
    return lambda store: paths(store, folder, pattern)[place]


def _newest_data(store: Store) -> str:
    return data_files(store)[-1]


_NEWEST = _file(TIMELINE, r"\.commit$")
_OLDEST = _file(TIMELINE, r"\.commit$", 0)
_NEWEST_LISTED = _file(".hoodie/metadata/files", r"\.log\.")
_PARTITION_FILE = _file("city=sf", r"/\.hoodie_partition_metadata$")
_DATA_LOG = _file("city=sf", r"\.log\.")
_INDEX_LOG = _file(".hoodie/metadata/record_index", r"\.log\.")
_FIRST_REQUESTED = _file(TIMELINE, r"\.commit\.requested$", 0)
_NEWEST_OF_METADATA = _file(METADATA_TIMELINE, r"\.deltacommit$")


def _lose(file: File) -> Change:
    return lambda store: store.delete(file(store))


def _rewrite(file: File, change: Callable[[bytes], bytes]) -> Change:
    def apply(store: MemoryStore) -> None:
        path = file(store)
        store.replace(path, change(store.read(path)))

    return apply


def _add(*given: str, content: bytes = b"x") -> Change:
    def change(store: MemoryStore) -> None:
        for path in given:
            store.create(_placed(store, path), content)

    return change


def _request(action: str) -> Change:
    return _add(f"{TIMELINE}/20990101000000000.{action}.requested", content=b"")


def _cut(file: File, size_bytes: int) -> Change:
    return _rewrite(file, lambda content: content[:-size_bytes])


def _empty(_content: bytes) -> bytes:
    return b""


def _halved(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    place = len(content) - 5000 if len(content) > 5000 else len(content) // 2
    return _flipped_at(content, place)


def _flipped_early(content: bytes) -> bytes:
    return _flipped_at(content, 200)


def _flipped_at(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def _write_third(table: Table) -> object:
    return table.upsert(trips({"b": (3, "sf"), "e": (3, "la")}))


def _dies(operation: str, ending: str, point: CrashPoint) -> Change:
    """A third write dies at its first such call on a path with this ending."""

    def change(store: MemoryStore) -> None:
        calls = run_until(copy_of(store), _write_third, None).calls
        number = next(
            n for n, call in enumerate(calls, 1) if call.operation == operation and call.path.endswith(ending)
        )
        run_until(store, _write_third, number, point)

    return change


def _dies_halfway(call: Callable[[Table], object]) -> Change:
    """After a third write the call dies after half of its storage calls."""

    def change(store: MemoryStore) -> None:
        _write_third(Table(store))
        calls = run_until(copy_of(store), call, None).calls
        run_until(store, call, len(calls) // 2)

    return change


def _restore_first(table: Table) -> object:
    return table.restore(table.timeline.writes().instants[0].requested_time)


def _clean_all(table: Table) -> object:
    return table.clean(properties={"hoodie.clean.commits.retained": "1"})


def _empty_clean(store: MemoryStore) -> None:
    _write_third(Table(store))
    _clean_all(Table(store))
    store.replace(paths(store, TIMELINE, r"\.clean$")[-1], b"")


def _writes_with(owner: type, name: str, replacement: object) -> Change:
    """A third write with another method: a writer with a defect."""

    def change(store: MemoryStore) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, replacement)
            _write_third(Table(store))

    return change


_rows_of_listing = FilesKind.rows_of
_rows_of_statistics = ColumnStatsKind.rows_of


def _list_another_length(kind: FilesKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
    added = {path: {name: 7 for name in names} for path, names in changes.files_added.items()}
    return _rows_of_listing(kind, replace(changes, files_added=added), *given)


def _no_ranges(kind: ColumnStatsKind, changes: MetadataChanges, *given: Any) -> Sequence[FileGroupDelta]:
    return _rows_of_statistics(kind, replace(changes, collected={}), *given)


_writes_without_entries = _writes_with(EntryWriter, "put", lambda *_: None)
_writes_other_lengths = _writes_with(FilesKind, "rows_of", _list_another_length)
_writes_no_ranges = _writes_with(ColumnStatsKind, "rows_of", _no_ranges)


def _backup_properties(store: MemoryStore) -> None:
    store.replace(BACKUP, store.read(PROPERTIES))


def _lose_properties(store: MemoryStore) -> None:
    _backup_properties(store)
    store.delete(PROPERTIES)


def _half_properties(store: MemoryStore) -> None:
    _backup_properties(store)
    store.replace(PROPERTIES, b"#Updated at now\n")


def _double(store: MemoryStore) -> None:
    newest = _NEWEST(store)
    store.create(newest.replace(".commit", "1.commit"), store.read(newest))


def _lose_instant(store: MemoryStore) -> None:
    time = _NEWEST(store).rpartition("/")[2].partition("_")[0]
    for path in paths(store, TIMELINE, f"/{time}[^/]*$"):
        store.delete(path)


def _torn_clean(store: MemoryStore) -> None:
    _write_third(Table(store))
    _clean_all(Table(store))
    _cut(_file(TIMELINE, r"\.clean$"), 40)(store)


def _torn_savepoint(store: MemoryStore) -> None:
    Table(store).savepoint()
    _cut(_file(TIMELINE, r"\.savepoint$"), 40)(store)


def _half_savepoint(store: MemoryStore) -> None:
    Table(store).savepoint()
    _lose(_file(TIMELINE, r"\.savepoint$"))(store)


def _half_compaction(store: MemoryStore) -> None:
    Table(store).schedule_compaction()
    _rewrite(_file(TIMELINE, r"\.compaction\.requested$"), _halved)(store)


def _half_clean(store: MemoryStore) -> None:
    """The plan of a clean that died."""
    _dies_halfway(_clean_all)(store)
    _rewrite(_file(TIMELINE, r"\.clean\.requested$"), _halved)(store)


def _half_service(action: str) -> Change:
    return _add(f"{TIMELINE}/20990101000000000.{action}.requested", content=b"Obj\x01 and no more")


ARCHIVED: Rows = {**SECOND, "x": (9, "sf")}


def _archived(store: MemoryStore) -> str:
    """Archive the first commits; return a file of the archive."""
    for number in range(6):
        Table(store).upsert(trips({"x": (number + 4, "sf")}), properties=OFTEN)
    return _file(f"{TIMELINE}/history", r"\.parquet$|\.archive\.", 0)(store)


def _cut_archive(store: MemoryStore) -> None:
    path = _archived(store)
    store.replace(path, store.read(path)[:-9])


def _lose_archive(store: MemoryStore) -> None:
    store.delete(_archived(store))


def _lose_manifest(store: MemoryStore) -> None:
    _archived(store)
    store.delete(_file(f"{TIMELINE}/history", "manifest_")(store))


def _orphan_of_a_failed_task(store: MemoryStore) -> None:
    newest = _newest_data(store)
    folder, _, name = newest.rpartition("/")
    file_id, token, instant = name.split("_")
    store.create(f"{folder}/{file_id[:-1]}7_9{token}_{instant}", store.read(newest))


def orphan_of_no_instant(store: MemoryStore) -> None:
    """Add a base file whose instant is not on the timeline."""
    newest = _newest_data(store)
    store.create(f"{newest.rpartition('_')[0]}_20990101000000000.parquet", store.read(newest))


def _orphan_before_the_timeline(store: MemoryStore) -> None:
    oldest = data_files(store)[0]
    folder, _, name = oldest.rpartition("/")
    file_id, token, _ = name.split("_")
    store.create(f"{folder}/{file_id}9_{token}_20000101000000000.parquet", store.read(oldest))


def _first_of_sf(store: Store) -> str:
    """The version of sf's file that the second commit replaced: a JVM cleaner without the listing would delete it."""
    return next(path for path in data_files(store) if path.startswith("city=sf"))


def _lose_saved(store: MemoryStore) -> None:
    """Lose a file that only a savepoint and earlier states need; the listing is built anew without it."""
    table = Table(store)
    table.savepoint(table.timeline.writes().instants[0].requested_time)
    store.delete(_first_of_sf(store))
    table.index.rebuild()


def _drop_partitions(*names: str) -> Change:
    """Drop them as a JVM call without options of theirs does: the properties that ask for them stay."""

    def change(store: MemoryStore) -> None:
        left = [name for name in ("files", "record_index") if name not in names]
        update_table_config(store, {"hoodie.table.metadata.partitions": ",".join(left)})
        for name in names:
            store.delete_folder(f".hoodie/metadata/{name}")

    return change


def _lose_statistics_log(store: MemoryStore) -> None:
    _write_third(Table(store))
    store.delete(paths(store, ".hoodie/metadata/column_stats", r"\.log\.")[-1])


def _files_of_a_build(store: MemoryStore) -> None:
    log = paths(store, ".hoodie/metadata/record_index", r"\.log\.")[0]
    folder, _, name = log.rpartition("/")
    store.create(f"{folder}/{name.partition('_')[0]}_20200101000000000004.log.1_0-0-0", store.read(log))


def _changed(partition: str, pattern: str, change: Callable[[bytes], bytes]) -> Change:
    """Change the newest file of a metadata partition whose name has this text."""

    def apply(store: MemoryStore) -> None:
        if (partition, pattern) == ("record_index", r"\.hfile"):
            Table(store).index.rebuild()  # an index that began empty has log files only
        _rewrite(_file(f".hoodie/metadata/{partition}", pattern), change)(store)

    return apply


_DAMAGE: dict[str, dict[str, Callable[[bytes], bytes]]] = {
    r"\.hfile": {"an empty base file": _empty, "a cut base file": _halved, "a changed byte in a base file": _flipped},
    r"\.log\.": {"an empty log file": _empty, "a changed byte in a log file": _flipped},
}


def _told(name: str, change: Change, *found: FindingKind, before: Rows | None = None, **more: Any) -> Wound:
    """A wound that no repair mends."""
    return Wound(name, change, frozenset(found), rows_before=before, **more)


def _unseen(name: str, change: Change, *found: FindingKind, rows: Rows = SECOND, **more: Any) -> Wound:
    """A wound that a repair mends, and that readers do not see."""
    return Wound(name, change, frozenset(found), rows, rows, **more)


def _mended(name: str, change: Change, *found: FindingKind, rows: Rows = SECOND, **more: Any) -> Wound:
    """A wound that a repair mends, and that stops readers or shows them wrong rows."""
    return Wound(name, change, frozenset(found), rows, **more)


WOUNDS = [
    _unseen("missing properties with a backup", _lose_properties, kinds.PROPERTIES_DAMAGED),
    _unseen("half-written properties with a backup", _half_properties, kinds.PROPERTIES_DAMAGED),
    _unseen("a backup of the properties", _backup_properties, kinds.PROPERTIES_BACKUP),
    _mended("an empty completed file, the newest", _rewrite(_NEWEST, _empty), kinds.INSTANT_EMPTY, rows=START),
    _mended("an empty completed file, not the newest", _rewrite(_OLDEST, _empty), kinds.COMPLETION_LOST),
    _mended("a torn completed file", _cut(_NEWEST, 40), kinds.COMPLETION_LOST),
    _unseen("a torn completed clean", _torn_clean, kinds.INSTANT_EMPTY, rows=THIRD),
    _told("a torn savepoint", _torn_savepoint, kinds.INSTANT_DAMAGED, before=SECOND),
    *(
        _unseen(f"a {action} with half a plan", _half_service(action), kinds.PLAN_DAMAGED, *more)
        for action, more in (("clustering", ()), ("rollback", (kinds.ROLLBACK_PENDING,)), ("indexing", ()))
    ),
    _unseen("a compaction with half a plan", _half_compaction, kinds.PLAN_DAMAGED, kind="merge_on_read"),
    _unseen(
        "a clean with half a plan",
        _half_clean,
        *(kinds.PLAN_DAMAGED, kinds.CLEAN_PENDING, kinds.LISTING_STALE),
        rows=THIRD,
        left=frozenset({kinds.HISTORY_FILE_MISSING}),
    ),
    _told("a cut file of the archive", _cut_archive, kinds.ARCHIVE_DAMAGED, before=ARCHIVED),
    _told("a lost file of the archive", _lose_archive, kinds.ARCHIVE_DAMAGED, before=ARCHIVED),
    _told("a lost manifest of the archive", _lose_manifest, kinds.ARCHIVE_DAMAGED, before=ARCHIVED),
    _told("two completed files of one instant", _double, kinds.INSTANT_DOUBLED, before=SECOND),
    _told("a missing requested file", _lose(_FIRST_REQUESTED), kinds.INSTANT_NOT_REQUESTED, before=SECOND),
    _unseen("a rollback without a plan", _request("rollback"), kinds.PLAN_EMPTY, kinds.ROLLBACK_PENDING),
    _unseen("a compaction without a plan", _request("compaction"), kinds.PLAN_EMPTY, kind="merge_on_read"),
    _mended("a missing completed file of an older commit", _lose(_OLDEST), kinds.COMPLETION_LOST),
    _told("all instant files of a commit are missing", _lose_instant, kinds.INSTANT_LOST),
    _unseen("a base file of a failed task", _orphan_of_a_failed_task, kinds.FILE_ORPHANED),
    _unseen("a base file of no instant", orphan_of_no_instant, kinds.FILE_ORPHANED),
    _unseen("a base file older than the timeline", _orphan_before_the_timeline, kinds.FILE_ORPHANED),
    _told("a missing base file", _lose(_newest_data), kinds.FILE_MISSING),
    _told("a base file that was cut", _cut(_newest_data, 20), kinds.FILE_LENGTH),
    _told("a log file that was cut", _cut(_DATA_LOG, 20), kinds.FILE_LENGTH, kind="merge_on_read"),
    _told("an empty log file", _rewrite(_DATA_LOG, _empty), kinds.FILE_LENGTH, kind="merge_on_read"),
    _unseen(
        "a missing base file of an old version",
        _lose(_first_of_sf),
        *(kinds.HISTORY_FILE_MISSING, kinds.LISTING_STALE),
        left=frozenset({kinds.HISTORY_FILE_MISSING}),
    ),
    _told("a missing base file of a savepoint", _lose_saved, kinds.SAVEPOINT_FILE_MISSING, before=SECOND),
    _unseen("a missing partition metadata file", _lose(_PARTITION_FILE), kinds.PARTITION_FILE_MISSING),
    _mended("a missing metadata table", lambda store: store.delete_folder(".hoodie/metadata"), kinds.METADATA_MISSING),
    _mended("a torn log file of the listing", _cut(_NEWEST_LISTED, 11), kinds.METADATA_DAMAGED),
    _mended("a missing log file of the listing", _lose(_NEWEST_LISTED), kinds.METADATA_DAMAGED),
    _unseen("a missing log file of the record index", _lose(_INDEX_LOG), kinds.METADATA_DAMAGED),
    _mended(
        "an empty completed file of the metadata table", _rewrite(_NEWEST_OF_METADATA, _empty), kinds.METADATA_DAMAGED
    ),
    _mended(
        "a missing completed file of the metadata table",
        _lose(_NEWEST_OF_METADATA),
        *(kinds.METADATA_BEHIND, kinds.LISTING_LACKS),
    ),
    *(
        _unseen(f"a write that died {when}", _dies(operation, ending, point), kinds.WRITE_DEAD)
        for when, operation, ending, point in (
            ("when it was requested", "create", ".commit.requested", CrashPoint.AFTER),
            ("with half a file", "close_output", ".parquet", CrashPoint.BEFORE),
            ("before its last step", "move", ".commit", CrashPoint.BEFORE),
        )
    ),
    _mended("a restore that died halfway", _dies_halfway(_restore_first), kinds.RESTORE_PENDING, rows=START),
    _told("a savepoint that died halfway", _half_savepoint, kinds.SAVEPOINT_PENDING, before=SECOND),
    _unseen("a clean that died halfway", _dies_halfway(_clean_all), kinds.CLEAN_PENDING, rows=THIRD),
    _unseen("an empty completed clean", _empty_clean, kinds.INSTANT_EMPTY, rows=THIRD),
    _told("a changed byte in a base file", _rewrite(_newest_data, _flipped_early), kinds.FILE_DAMAGED, full=True),
    _told(
        "a changed byte in a log file",
        _rewrite(_DATA_LOG, _flipped),
        kinds.FILE_DAMAGED,
        full=True,
        kind="merge_on_read",
    ),
    _unseen("an index of other rows", _writes_without_entries, kinds.INDEX_DIFFERS, rows=THIRD, full=True),
    _told(  # as an insert without a look-up leaves it
        "a key of two rows",
        lambda store: Table(store).bulk_insert(trips({"a": (7, "sf")})),
        kinds.KEY_DOUBLED,
        full=True,
        kind="simple",
    ),
    _mended("an index that a JVM call dropped", _drop_partitions("record_index"), kinds.INDEX_MISSING),
    _unseen(
        "an abandoned build",
        lambda store: update_table_config(store, {"hoodie.table.metadata.partitions.inflight": "column_stats"}),
        kinds.INDEX_BUILD_ABANDONED,
    ),
    _mended("a listing of another length", _writes_other_lengths, kinds.LISTING_LENGTH, rows=THIRD),
    _mended(
        "ranges that a writer did not store",
        _writes_no_ranges,
        kinds.STATISTICS_DIFFER,
        rows=THIRD,
        full=True,
        kind="statistics",
    ),
    _unseen(
        "statistics that another writer dropped",
        _drop_partitions("column_stats", "partition_stats"),
        kinds.STATISTICS_MISSING,
        kind="statistics",
    ),
    _mended(
        "a missing log file of the statistics",
        _lose_statistics_log,
        kinds.METADATA_DAMAGED,
        rows=THIRD,
        kind="statistics",
    ),
    *(
        _mended(
            f"{name} of the {told}",
            _changed(partition, pattern, change),
            kinds.METADATA_DAMAGED,
            kind="statistics",
        )
        for partition, told, pattern in (
            ("record_index", "record index", r"\.hfile"),
            ("column_stats", "column statistics", r"\.hfile"),
            ("partition_stats", "partition statistics", r"\.hfile"),
            ("record_index", "record index", r"\.log\."),
        )
        for name, change in _DAMAGE[pattern].items()
    ),
    _unseen("files of a build that was not completed", _files_of_a_build, kinds.LEFTOVER_INDEX_FILES),
    _unseen("staged rows", _add(f"{TEMP_FOLDER}/stage-other/rows.arrow"), kinds.LEFTOVER_STAGE),
    _unseen(
        "markers of an ended instant",
        _add(f"{TEMP_FOLDER}/20200101000000000/MARKERS.type", content=b"DIRECT"),
        kinds.LEFTOVER_MARKERS,
    ),
    _unseen(
        "heartbeats of ended instants",
        _add(*(f"{folder}/.heartbeat/20200101000000000" for folder in (".hoodie", ".hoodie/metadata/.hoodie"))),
        kinds.LEFTOVER_HEARTBEAT,
    ),
    _unseen("a prepared completed file", _add(".hoodie/.locks/prepared-0000"), kinds.LEFTOVER_LOCK),
    _told(
        "a storage-based lock file without a lock",
        _add(f".hoodie/.locks/{storage_based.FILE_NAME}", content=b"{}"),
        kinds.LOCK_DAMAGED,
        before=SECOND,
    ),
    _unseen(
        "half-written temporary files",
        _add("city=sf/.tmp-0000", ".hoodie/timeline/.tmp-0001"),
        kinds.LEFTOVER_TEMPORARY,
    ),
]
