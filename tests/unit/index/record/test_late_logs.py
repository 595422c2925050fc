"""Log files that come late: a task of a cancelled job writes on after its instant was undone, or nobody undid them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.filenames import LogFileName
from hoodie.index.record import EntryStage, EntryWriter, write_entries
from hoodie.index.record.state import record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.paths import METADATA_HOODIE_FOLDER
from hoodie.table import Table
from hoodie.timeline import archive_instants
from tests.support.index_check import check_index
from tests.unit.write.tables import SCHEMA, trips

KEYS = [f"k{number}" for number in range(30)]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    found = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", ordering="ts", spark=False)
    found.upsert(trips(*((key, 1, 0.0, "sf") for key in KEYS)))
    return found


def write_logs(table: Table, instant_time: str) -> list[Path]:
    """Log files of a dead write at that instant: it deleted some keys, and moved others to a file that is gone."""
    store, state = table.view().store, record_index(table.view())
    assert state is not None
    with stage_folder(store) as folder:
        writer = EntryWriter(store, EntryStage(folder, KeyGroups(len(state.file_groups))), TaskContext(0, 0, 0))
        writer.delete(pa.array(KEYS[:10]), "city=sf")
        writer.put(pa.array(KEYS[10:20]), "city=la", "00000000-0000-0000-0000-000000000000-0")
        entries = writer.close()
        assert entries is not None
        given = {"instant_time": instant_time, "instant_ms": 1, "file_ids": state.file_ids}
        write_entries(LocalEngine(), store.spec, [entries], **given)  # type: ignore[arg-type]
    folder_path = Path(store.uri("").removeprefix("file://")) / ".hoodie/metadata/record_index"
    return sorted(folder_path.glob(f"*_{instant_time}.log*"))


def check_all_are_found(table: Table) -> None:
    result = table.upsert(trips(*((key, 2, 0.0, "la") for key in KEYS)))
    assert (result.inserted, result.updated) == (0, len(KEYS))
    found = table.to_arrow(columns=["id"])["id"].to_pylist()
    assert sorted(key for key in found if key in KEYS) == sorted(KEYS)


def test_nobody_believes_logs_of_an_instant_that_is_on_no_timeline(table: Table) -> None:
    latest = table.timeline.latest()
    assert latest is not None
    assert write_logs(table, str(int(latest.requested_time) + 1)) != []
    check_all_are_found(table)


def test_nobody_believes_them_when_the_timeline_begins_later(table: Table, tmp_path: Path) -> None:
    """As after a JVM rolled the instant back, which leaves them, and archived what is around it."""
    latest = table.timeline.latest()
    assert latest is not None
    late = write_logs(table, str(int(latest.requested_time) + 1))
    for number in range(3):
        table.upsert(trips((f"other {number}", 1, 0.0, "nyc")))
    view = table.view()
    folder = MetadataFolder(view.store, view.config)
    older = folder.timeline().instants[:-1]
    archive_instants(view.store, folder.layout, older, folder=METADATA_HOODIE_FOLDER)
    reopened = hoodie.open(tmp_path, spark=False)
    start = folder.timeline().start
    assert start is not None
    assert {str(parsed.instant_time) < start for path in late if (parsed := LogFileName.parse(path.name))} == {True}
    assert reopened.record_locations(KEYS).column("partition_path").to_pylist() == ["city=sf"] * len(KEYS)
    check_all_are_found(reopened)


def test_a_build_deletes_them(table: Table) -> None:
    latest = table.timeline.latest()
    assert latest is not None
    late = write_logs(table, str(int(latest.requested_time) + 1))
    table.index.build("record", buckets=3)
    assert [path for path in late if path.exists()] == []
    check_index(table.view())
