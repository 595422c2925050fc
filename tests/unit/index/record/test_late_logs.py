"""Log files that come late: a task of a cancelled job writes on after its instant was undone, or nobody undid them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.filenames import LogFileName
from hoodie.index.record.entries import EntryStage, EntryWriter, write_entries
from hoodie.index.record.state import record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.table import Table
from hoodie.timeline import archive_instants
from tests.support.index_check import check_index
from tests.support.tables import PLAIN, new_table, plain, values_of

FOLDER = ".hoodie/metadata/record_index"
KEYS = [f"k{number}" for number in range(30)]


@pytest.fixture
def table() -> Table:
    first = plain(*((key, 1, "sf") for key in KEYS))
    return new_table(PLAIN, first, partition_by="city", ordering="ts")


def write_logs(table: Table) -> set[str]:
    """Log files of a dead write after the newest instant: it deleted keys, and moved others to a file that is gone."""
    latest = table.timeline.latest()
    assert latest is not None
    instant_time = str(int(latest.requested_time) + 1)
    store, state = table.view().store, record_index(table.view())
    assert state is not None
    with stage_folder(store) as folder:
        writer = EntryWriter(store, EntryStage(folder, KeyGroups(len(state.file_groups))), TaskContext(0, 0, 0))
        writer.delete(pa.array(KEYS[:10]), "city=sf")
        writer.put(pa.array(KEYS[10:20]), "city=la", "00000000-0000-0000-0000-000000000000-0")
        entries = writer.close()
        assert entries is not None
        given: dict[str, Any] = {"instant_time": instant_time, "instant_ms": 1, "file_ids": state.file_ids}
        write_entries(LocalEngine(), store.spec, [entries], **given)
    return {name for name in store.names(FOLDER) if f"_{instant_time}.log" in name}


def check_all_are_found(table: Table) -> None:
    result = table.upsert(plain(*((key, 2, "la") for key in KEYS)))
    assert (result.inserted, result.updated) == (0, len(KEYS))
    assert [key for (key,) in values_of(table, "id") if key in KEYS] == sorted(KEYS)


def test_nobody_believes_logs_of_an_instant_that_is_on_no_timeline(table: Table) -> None:
    assert write_logs(table)
    check_all_are_found(table)


def test_nobody_believes_them_when_the_timeline_begins_later(table: Table) -> None:
    """As after a JVM rolled the instant back, which leaves them, and archived what is around it."""
    late = write_logs(table)
    for number in range(3):
        table.upsert(plain((f"other {number}", 1, "nyc")))
    view = table.view()
    folder = MetadataFolder(view.store, view.config)
    older = folder.timeline().instants[:-1]
    archive_instants(view.store, folder.layout, older)
    reopened = Table(view.store)
    start = folder.timeline().start
    assert start is not None
    assert {str(parsed.instant_time) < start for name in late if (parsed := LogFileName.parse(name))} == {True}
    assert reopened.record_locations(KEYS).column("partition_path").to_pylist() == ["city=sf"] * len(KEYS)
    check_all_are_found(reopened)


def test_a_build_deletes_them(table: Table) -> None:
    late = write_logs(table)
    table.index.build("record", buckets=3)
    assert not late & {*table.view().store.names(FOLDER)}
    check_index(table.view())
