"""A service of the metadata table that dies at any storage call: readers see the same, and the next commit goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pyarrow as pa
import pytest

from hoodie.metadata.delta_commit import FileGroupDelta, write_delta_commit
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.files import FilesKind, file_group_id, rows_to_columns
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX, RecordIndexKind
from hoodie.metadata.partitions import create_file_groups
from hoodie.metadata.paths import METADATA_HISTORY, file_id_of
from hoodie.metadata.services.context import ServiceContext, ServiceLimits
from hoodie.metadata.slices import SliceReader
from hoodie.metadata.table import run_services
from hoodie.storage import Store
from hoodie.timeline import Action, Instant, TimelineArchive
from tests.support.fake_commits import FakeTable
from tests.support.fault_store import CrashError, CrashPoint, FaultStore
from tests.support.samples import sample_of
from tests.unit.metadata.conftest import copy_of

SMALL = ServiceLimits(delta_commits_to_compact=2, commits_retained=3, commits_kept_min=4, commits_kept_max=6)
STEADY = 24
"""Delta commits after which all services ran a few times."""
BUCKETS = [file_id_of(FILE_ID_PREFIX, number) for number in range(3)]


def commit(table: FakeTable, store: Store) -> None:
    """A delta commit that adds one file, and one key to a bucket of the record index, with the services before it."""
    folder = MetadataFolder(store, table.config)
    context = ServiceContext(
        folder=folder,
        kinds={"files": FilesKind(), "record_index": RecordIndexKind()},
        clock=table.clock,
        create_last=store.create,
        data_timeline=table.timeline,
        metadata_timeline=folder.timeline(),
        limits=SMALL,
    )
    timeline = run_services(context)
    instant_time = table.clock.next_time(timeline)
    keys, values = rows_to_columns({"city=sf": {f"{instant_time}.parquet": 7}})
    none = pa.array([], pa.string())
    entry = pa.array([f"{instant_time}.parquet"]), pa.array([b"location"])
    bucket = int(instant_time) % len(BUCKETS)
    write_delta_commit(
        folder,
        instant_time,
        [
            FileGroupDelta("files", file_group_id(), keys, values, none),
            FileGroupDelta("record_index", BUCKETS[bucket], *entry, none),
        ],
        clock=table.clock,
        create_last=store.create,
        data_timeline=table.timeline,
        metadata_timeline=timeline,
    )


def listing(table: FakeTable) -> set[str]:
    """Files that delta commits of this test added; the record index knows exactly those."""
    timeline = visible_instants(MetadataFolder(table.store, table.config).timeline(), table.timeline)
    buckets = SliceReader(table.store).read(RecordIndexKind(), timeline)
    assert len(buckets) == len(BUCKETS)
    indexed = {key for content in buckets for key in RecordIndexKind().compact(content, file_name="x")[0].to_pylist()}
    listed = table.metadata_table().listing(table.timeline, ["city=sf"])["city=sf"]
    assert indexed == {name for name, size_bytes in listed.items() if size_bytes == 7}
    return indexed


def instants(table: FakeTable) -> list[Instant]:
    return list(MetadataFolder(table.store, table.config).timeline())


def everything(table: FakeTable) -> set[tuple[str, str]]:
    """Requested time and action of all instants, active and archived."""
    archived = TimelineArchive(table.store, METADATA_HISTORY).instants()
    active = {(found.requested_time, found.action.value) for found in instants(table)}
    return active | {(found.requested_time, found.action) for found in archived}


@pytest.fixture
def steady(table: FakeTable) -> FakeTable:
    folder = MetadataFolder(table.store, table.config)
    create_file_groups(folder, "record_index", BUCKETS, "0" * 17, now=datetime.now(UTC))
    for _ in range(STEADY):
        commit(table, table.store)
    return table


def test_the_small_limits_bound_everything(steady: FakeTable) -> None:
    counts = set()
    for _ in range(12):
        commit(steady, steady.store)
        counts.add(len(instants(steady)))
    assert max(counts) < 20
    assert len(everything(steady)) > 45


@pytest.mark.parametrize(
    ("after", "crash_point"), sample_of(list(product(range(3), CrashPoint)), 2, "upkeep that dies")
)
def test_commits_that_die(steady: FakeTable, after: int, crash_point: CrashPoint) -> None:
    """Three commits in a row run a compaction, a clean and an archiving between them."""
    for _ in range(after):
        commit(steady, steady.store)
    before, known = listing(steady), everything(steady)
    for call in range(1, 200):
        copied = steady.over(copy_of(steady.store))
        try:
            commit(copied, FaultStore(copied.store, call, crash_point=crash_point))
        except CrashError:
            seen = listing(copied)
            # The delta commit itself may have completed as the last thing.
            assert len(seen - before) <= 1
            assert before <= seen
            assert known <= everything(copied)
            take_back_delta_commit(copied)
            for number in range(1, 4):
                commit(copied, copied.store)
                assert len(listing(copied)) == len(before) + (seen > before) + number
            assert all(found.is_completed for found in instants(copied))
            assert known <= everything(copied)
        else:
            break
    assert call > 4


def take_back_delta_commit(table: FakeTable) -> None:
    """What the rollback of the dead data write does."""
    folder = MetadataFolder(table.store, table.config)
    for found in folder.timeline().pending():
        if found.action is Action.DELTA_COMMIT:
            folder.undo(found.requested_time, Action.DELTA_COMMIT)
