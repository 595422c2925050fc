"""The archived timeline: appended, merged, cleaned up, and found again after a crash at any call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.instants.archive import (
    ArchivedInstant,
    ArchiveFile,
    ArchiveFileName,
    ArchiveManifest,
    archived_to_bytes,
)
from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.timeline import (
    Action,
    ArchiveLimits,
    ArchiveReader,
    LayoutV2,
    TimelineArchive,
    archive_instants,
    create_completed,
    create_inflight,
    create_requested,
    load_timeline,
)
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.tables import copy_of

LAYER_FILES_MAX = ArchiveLimits().layer_files
MANIFESTS_KEPT = ArchiveLimits().manifests

GOLDEN = Path(__file__).parents[2] / "golden" / "archive"
LAYOUT = LayoutV2(zone=TimelineZone.UTC)


def instant(number: int, action: str = "commit") -> ArchivedInstant:
    return ArchivedInstant(
        requested_time=f"{number:04d}", completion_time=f"{number:04d}5", action=action, metadata=b"done"
    )


def archive() -> TimelineArchive:
    return TimelineArchive(MemoryStore(), ".hoodie/timeline/history")


def archive_with(file: ArchiveFileName, rows: list[ArchivedInstant], **options: Any) -> TimelineArchive:
    """An archive of one file with this name."""
    found = TimelineArchive(MemoryStore(), ".hoodie/timeline/history", **options)
    data = archived_to_bytes(rows)
    manifest = ArchiveManifest((ArchiveFile(file.name, len(data)),)).to_bytes()
    for name, content in {file.name: data, "manifest_1": manifest, "_version_": b"1"}.items():
        found.store.replace(f"{found.folder}/{name}", content)
    return found


def numbers(found: TimelineArchive) -> list[int]:
    return [int(archived.requested_time) for archived in found.instants()]


def names(found: TimelineArchive) -> list[str]:
    return [info.name for info in found.store.list(found.folder)]


def test_an_archive_that_was_never_written_is_empty() -> None:
    assert archive().instants() == []
    assert archive().completion_times({"1"}) == {}
    assert archive().snapshot().version == 0


def test_instants_of_one_time_are_read_from_the_files_with_their_range() -> None:
    store = FaultStore(MemoryStore(), count_reads=True)
    found = TimelineArchive(store, ".hoodie/timeline/history")
    for first in (1, 11, 21):
        found.append([instant(first), instant(first + 5), instant(first + 5, "clean")])
    del store.calls[:]
    assert found.instants("0016") == [instant(16, "clean"), instant(16)]
    read = [call.path.rpartition("/")[2] for call in store.calls if call.path.endswith(".parquet")]
    assert read == ["0011_0016_0.parquet"]
    assert found.instants("0017") == []


def test_the_archive_of_the_jvm() -> None:
    found = TimelineArchive(LocalStore(str(GOLDEN.parent)), "archive")
    assert found.snapshot().version == 6
    instants = found.instants()
    assert len(instants) > 15
    wanted = {archived.requested_time for archived in instants[:3] if archived.action == "commit"}
    times = {archived.requested_time: archived.completion_time for archived in instants}
    assert found.completion_times(wanted) == {time: times[time] for time in wanted}


def test_what_is_appended_is_found() -> None:
    found = archive()
    found.append([])
    found.append([instant(2), instant(1)])
    found.append([instant(3), instant(4, "clean")])
    assert numbers(found) == [1, 2, 3, 4]
    assert names(found) == ["0001_0002_0.parquet", "0003_0004_0.parquet", "_version_", "manifest_1", "manifest_2"]
    # A clean of the same time is no write.
    assert found.completion_times({"0003", "0004", "0009"}) == {"0003": "00035"}


def test_what_is_there_is_not_appended_twice() -> None:
    found = archive()
    found.append([instant(1), instant(2)])
    found.append([instant(1), instant(2)])
    assert found.snapshot().version == 1
    found.append([instant(2), instant(3)])
    assert [file.name for file in found.snapshot().manifest.files] == ["0001_0002_0.parquet", "0003_0003_0.parquet"]


def test_layers_are_merged_and_old_files_go() -> None:
    found = archive()
    total = 2 * LAYER_FILES_MAX**2
    for number in range(total):
        found.append([instant(number)])
        found.compact()
        layers = [file.parsed_name.layer for file in found.snapshot().manifest.files]
        assert all(layers.count(layer) < LAYER_FILES_MAX for layer in layers)
    assert numbers(found) == list(range(total))
    assert [file.parsed_name.layer for file in found.snapshot().manifest.files] == [2, 2]
    manifests = [name for name in names(found) if name.startswith("manifest_")]
    assert MANIFESTS_KEPT <= len(manifests) <= MANIFESTS_KEPT + 2
    assert len(names(found)) < 4 * LAYER_FILES_MAX


def test_a_reader_without_version_file_goes_by_the_manifests() -> None:
    found = archive()
    for number in range(3):
        found.append([instant(number)])
    found.store.delete(f"{found.folder}/_version_")
    assert numbers(found) == [0, 1, 2]
    found.append([instant(3)])
    assert numbers(found) == [0, 1, 2, 3]


def test_lost_files_are_told() -> None:
    found = archive()
    found.append([instant(1)])
    found.store.delete(f"{found.folder}/0001_0001_0.parquet")
    with pytest.raises(CorruptFileError, match="0001_0001_0"):
        found.instants()
    found.store.delete(f"{found.folder}/manifest_1")
    with pytest.raises(CorruptFileError, match="manifest_1"):
        found.snapshot()


@pytest.mark.parametrize("crash_point", list(CrashPoint), ids=lambda point: point.value)
def test_a_crash_at_any_call_loses_nothing(crash_point: CrashPoint) -> None:
    found = archive()
    for number in range(LAYER_FILES_MAX - 1):
        found.append([instant(number)])

    def step(store: Store) -> None:
        again = TimelineArchive(store, found.folder)
        again.append([instant(LAYER_FILES_MAX)])
        again.compact()

    for call in range(1, 100):
        copied = copy_of(found.store)
        try:
            step(FaultStore(copied, call, crash_point=crash_point, count_reads=True))
        except CrashError:
            left = numbers(TimelineArchive(copied, found.folder))
            assert left[: LAYER_FILES_MAX - 1] == list(range(LAYER_FILES_MAX - 1))
            step(copied)
            assert numbers(TimelineArchive(copied, found.folder)) == [*range(LAYER_FILES_MAX - 1), LAYER_FILES_MAX]
        else:
            break
    assert call > 20


def timeline_of(*actions: Action) -> MemoryStore:
    """Instants 1001, 1002, … of these actions, with their three files."""
    store = MemoryStore()
    for number, action in enumerate(actions, 1001):
        plan = b"plan" if action in (Action.COMPACTION, Action.CLEAN) else b""
        create_requested(store, LAYOUT, str(number), action, plan)
        create_inflight(store, LAYOUT, str(number), action)
        create_completed(store, LAYOUT, str(number), action, b"done", completion_time=f"{number}5")
    return store


def test_instants_move_with_plan_and_result() -> None:
    store = timeline_of(Action.DELTA_COMMIT, Action.COMPACTION, Action.CLEAN, Action.LOG_COMPACTION, Action.COMMIT)
    instants = load_timeline(store, LAYOUT).instants
    archive_instants(store, LAYOUT, instants[:4])
    assert load_timeline(store, LAYOUT).instants == instants[4:]
    moved = TimelineArchive.of(store, LAYOUT).instants()
    assert [(found.requested_time, found.action, found.plan) for found in moved] == [
        ("1001", "deltacommit", None),
        ("1002", "commit", b"plan"),
        ("1003", "clean", b"plan"),
        ("1004", "deltacommit", None),
    ]
    assert {found.metadata for found in moved} == {b"done"}
    assert [found.completion_time for found in moved] == ["10015", "10025", "10035", "10045"]


def test_the_plan_of_a_replace_commit_is_what_its_inflight_file_says() -> None:
    store = MemoryStore()
    create_requested(store, LAYOUT, "1001", Action.REPLACE_COMMIT, b"requested")
    create_inflight(store, LAYOUT, "1001", Action.REPLACE_COMMIT, b"inflight")
    create_completed(store, LAYOUT, "1001", Action.REPLACE_COMMIT, b"done", completion_time="1002")
    archive_instants(store, LAYOUT, load_timeline(store, LAYOUT).instants)
    (moved,) = TimelineArchive.of(store, LAYOUT).instants()
    assert moved.plan == b"inflight"


@pytest.mark.parametrize("crash_point", list(CrashPoint), ids=lambda point: point.value)
def test_a_move_that_dies_is_believed_and_can_be_repeated(crash_point: CrashPoint) -> None:
    actions = [Action.DELTA_COMMIT, Action.COMPACTION, Action.DELTA_COMMIT, Action.DELTA_COMMIT]
    times = ["1001", "1002", "1003", "1004"]
    for call in range(1, 100):
        store = timeline_of(*actions)
        instants = load_timeline(store, LAYOUT).instants
        try:
            archive_instants(FaultStore(store, call, crash_point=crash_point), LAYOUT, instants[:3])
        except CrashError:
            left = load_timeline(store, LAYOUT)
            assert all(left.contains_or_before_start(time) for time in times)
            assert not left.pending().instants
            archive_instants(store, LAYOUT, [found for found in left if found.requested_time < "1004"])
        else:
            break
    assert call > 10
    assert [found.requested_time for found in load_timeline(store, LAYOUT)] == ["1004"]
    moved = TimelineArchive.of(store, LAYOUT).instants()
    assert [found.requested_time for found in moved] == ["1001", "1002", "1003"]
    assert all(ArchiveFileName.parse(name) or "_" in name for name in names(TimelineArchive.of(store, LAYOUT)))


UNKNOWN = archived_to_bytes([ArchivedInstant(requested_time="0001", completion_time="0002", action="commjt")])
CORRUPT: dict[str, list[tuple[str, bytes]]] = {
    "number of a manifest": [("_version_", text) for text in (b"x", b"-1", b"9" * 5000, b"1.0", b"\xff")],
    "first instant": [
        ("manifest_1", ArchiveManifest((ArchiveFile(name, 1),)).to_bytes())
        for name in ("../../x.parquet", "/etc/passwd", "", "1_2_0.parquet/x")
    ],
    "commjt": [("0001_0001_0.parquet", UNKNOWN)],
}


@pytest.mark.parametrize(
    ("words", "file", "content"), [(words, *one) for words, cases in CORRUPT.items() for one in cases]
)
def test_a_file_with_other_content_is_corrupt(words: str, file: str, content: bytes) -> None:
    """A version without a number, names in a manifest that lead elsewhere, and an action that nobody knows."""
    found = archive()
    found.append([instant(1)])
    found.store.replace(f"{found.folder}/{file}", content)
    with pytest.raises(CorruptFileError, match=words):
        found.completion_times({"0001"})


def test_a_file_that_an_upgrade_of_the_jvm_named_by_its_first_and_last_row() -> None:
    """Its rows are not in order, so that its name tells no range (docs/format/table.md §8)."""
    rows = [instant(number) for number in (30, 31, 32, 10, 11, 12)]
    found = archive_with(ArchiveFileName("0030", "0012"), rows)
    reader = ArchiveReader(found)
    assert [i.requested_time for i in reader.find(["0011", "0031"])] == ["0011", "0031"]
    assert (reader.oldest_time(), reader.newest_time(), found.newest_time()) == ("0010", "0032", "0032")
    assert [i.requested_time for i in reader.completed(until="00125")] == ["0010", "0011", "0012"]
    assert {content.requested_time for content in reader.all_contents()} == {row.requested_time for row in rows}
    assert found.instants("0010") == [instant(10)]
    assert found.completion_times({"0011"}) == {"0011": "00115"}
    found.append([instant(11), instant(40)])
    assert numbers(found) == [10, 11, 12, 30, 31, 32, 40]
    for number in range(50, 50 + LAYER_FILES_MAX):
        found.append([instant(number)])
    found.compact()
    merged = max(name for name in names(found) if name.endswith("_1.parquet"))
    assert merged.startswith("0010_")
    assert numbers(found)[:7] == [10, 11, 12, 30, 31, 32, 40]


def test_files_that_the_jvm_merged_after_its_upgrade_have_names_that_are_no_ranges() -> None:
    """`0014_0109_1` has the instants 1 and 110 (docs/format/table.md §8): its range comes from the footer."""
    name = ArchiveFileName("0014", "0109", 1)
    found = archive_with(name, [instant(number) for number in (14, 1, 110, 109)], names_are_ranges=False)
    reader = ArchiveReader(found)
    assert [i.requested_time for i in reader.find(["0001", "0110", "0050"])] == ["0001", "0110"]
    assert (reader.oldest_time(), reader.newest_time()) == ("0001", "0110")
    assert [i.requested_time for i in reader.completed(until="00015")] == ["0001"]
    assert found.completion_times({"0001"}) == {"0001": "00015"}
    assert found.instants("0110") == [instant(110)]
    found.store.delete(f"{found.folder}/{name.name}")
    with pytest.raises(CorruptFileError, match="missing"):
        TimelineArchive(found.store, found.folder, names_are_ranges=False).completion_times({"0001"})
