"""Restores to savepoints and commits: rows, metadata table and record index follow; dead restores are completed."""

from __future__ import annotations

import pytest

import hoodie
from hoodie.format.instants.service_metadata import RestoreMetadata
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, read_instant
from tests.crash.tables import check_tidy, deaths, new_table, rows_of, trips

ONE = {"a": (1, "sf"), "b": (1, "la")}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "2"}


def saved_table(table_type: str, *, properties: dict[str, str] | None = None) -> tuple[MemoryStore, str]:
    """A table with a savepoint of its first commit, and changes of every kind after it."""
    store = MemoryStore()
    new_table(store, table_type=table_type, properties=properties)
    table = Table(store)
    table.upsert(trips(ONE))
    saved = table.savepoint(user="ann").instant
    assert saved is not None
    table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")}))
    if table_type == "merge_on_read":
        table.schedule_compaction()
        table.compact()
    table.insert_overwrite(trips({"x": (1, "la")}))
    table.upsert(trips({"a": (3, "oslo")}))
    if table_type == "merge_on_read":
        table.schedule_compaction()
    return store, saved


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("properties", [None, COMPACTS], ids=["", "compacted metadata"])
def test_a_table_goes_back_to_its_savepoint(table_type: str, properties: dict[str, str] | None) -> None:
    store, saved = saved_table(table_type, properties=properties)
    table = Table(store)
    last = max(found.completion_time or found.requested_time for found in table.timeline)
    told = table.restore(saved, dry_run=True)
    done = table.restore(saved)
    assert done.counts == told.counts
    assert (properties is None) == (done.notes == ())
    assert rows_of(store) == ONE
    check_tidy(store)
    table = Table(store)
    assert [found.requested_time for found in table.timeline.writes()] == [saved]
    (restored,) = [found for found in table.timeline if found.action is Action.RESTORE]
    assert restored.requested_time > last
    content = RestoreMetadata.parse(read_instant(store, table.view().layout, restored))
    assert content.instants_to_rollback == tuple(content.hoodie_restore_metadata)[: len(content.instants_to_rollback)]
    assert table.to_arrow(as_of=saved).num_rows == len(ONE)
    table.upsert(trips({"a": (4, "sf"), "z": (1, "sf")}))
    assert rows_of(store) == {**ONE, "a": (4, "sf"), "z": (1, "sf")}
    check_tidy(store)
    assert sorted(table.changes(since=saved).column("id").to_pylist()) == ["a", "z"]


def test_any_commit_of_the_active_timeline_will_do() -> None:
    store, _ = saved_table("copy_on_write")
    table = Table(store)
    second = table.timeline.completed().writes().instants[1].requested_time
    table.restore(second)
    assert rows_of(store) == {**ONE, "a": (2, "sf"), "c": (2, "nyc")}
    assert table.restore(second).counts == {}
    check_tidy(store)


def test_what_is_refused() -> None:
    store, saved = saved_table("copy_on_write")
    table = Table(store)
    later = table.savepoint().instant
    files = [info.path for info in store.list("", recursive=True)]
    with pytest.raises(hoodie.InstantNotFoundError, match=rf"savepoints are: {saved}"):
        table.restore("123")
    with pytest.raises(hoodie.UnsupportedError, match=rf"t\.delete_savepoint\('{later}'\)"):
        table.restore(saved)
    assert [info.path for info in store.list("", recursive=True)] == files
    table.delete_savepoint(str(later))
    (found,) = table.savepoints()
    path, names = next(iter(found.files.items()))
    store.delete(f"{path}/{names[0]}")
    table.index.rebuild()
    with pytest.raises(hoodie.UnsupportedError, match="missing in partition"):
        table.restore(saved)


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_dead_restore_is_completed(table_type: str) -> None:
    store, saved = saved_table(table_type)
    for death in deaths(store, lambda table: table.restore(saved), since=".restore.requested", keep=6):
        table = Table(death.store)
        pending = [found for found in table.timeline.pending() if found.action is Action.RESTORE]
        if pending:
            with pytest.raises(hoodie.UnsupportedError, match=rf"t\.restore\('{saved}'\)"):
                table.upsert(trips({"z": (1, "sf")}))
        table.restore(saved)
        assert rows_of(death.store) == ONE, str(death)
        Table(death.store).upsert(trips({"z": (1, "sf")}))
        assert rows_of(death.store) == {**ONE, "z": (1, "sf")}, str(death)
        check_tidy(death.store)
