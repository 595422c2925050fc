"""Log files whose instants the JVM archived: the archive tells which file slice they belong to."""

from __future__ import annotations

import pytest

from hoodie.files.slices import latest_slices
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.instants import with_archived_logs
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.paths import METADATA_HISTORY, partition_folder
from hoodie.metadata.slices import slices_of
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, Instant, State, Timeline, TimelineArchive
from tests.support.fault_store import FaultStore

BASE = "files-0000-0_0-0-0_{}.hfile"
LOG = ".files-0000-0_{}.log.1_0-0-0"
ACTIVE = Timeline.of(
    Instant(requested_time=time, action=action, state=State.COMPLETED, completion_time=f"{time}5")
    for time, action in (("20", Action.COMMIT), ("30", Action.DELTA_COMMIT))
)


def archived(requested_time: str, completion_time: str) -> ArchivedInstant:
    return ArchivedInstant(requested_time=requested_time, completion_time=completion_time, action="deltacommit")


@pytest.fixture
def store() -> MemoryStore:
    """Two delta commits before the compaction 20; the second of them completed only after that was planned."""
    found = MemoryStore()
    for name in (LOG.format("12"), LOG.format("15"), BASE.format("20"), LOG.format("30")):
        found.create(f"{partition_folder('files')}/{name}", b"rows")
    TimelineArchive(found, METADATA_HISTORY).append([archived("12", "13"), archived("15", "21")])
    return found


def test_a_log_that_completed_after_the_compaction_was_planned_belongs_to_the_new_slice(store: MemoryStore) -> None:
    (found,) = slices_of(store, FilesKind(), ACTIVE)
    assert found.base_instant_time == "20"
    assert [log.name.instant_time for log in found.log_files] == ["15", "30"]


def test_what_was_looked_up_once_is_known(store: MemoryStore) -> None:
    counting = FaultStore(store, count_reads=True)
    names = [info.name for info in store.list(partition_folder("files"))]
    with_archived_logs(counting, ACTIVE, names, FilesKind())
    assert len(counting.calls) == 3
    del counting.calls[:]
    assert with_archived_logs(counting, ACTIVE, names, FilesKind()).archived == {"12": "13", "15": "21"}
    assert counting.calls == []


def test_nothing_is_read_without_doubt(store: MemoryStore) -> None:
    counting = FaultStore(store, count_reads=True)
    # Older than the active timeline, but of another file group, or younger than its base file.
    names = [LOG.format("15").replace("0000-0", "0001-0"), BASE.format("11"), LOG.format("12"), LOG.format("30")]
    assert with_archived_logs(counting, ACTIVE, names, FilesKind()) is ACTIVE
    assert with_archived_logs(counting, Timeline(), names, FilesKind()) == Timeline()
    assert counting.calls == []


def test_an_instant_in_no_archive_counts_as_completed_at_once() -> None:
    names = {LOG.format("15"): 1, BASE.format("20"): 1}
    timeline = with_archived_logs(MemoryStore(), ACTIVE, names, FilesKind())
    (found,) = latest_slices({"": names}, timeline, {}, version=TableVersion.NINE)
    assert found.log_files == ()
