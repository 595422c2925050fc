"""Savepoints, restores and rollbacks of completed commits by us and by the JVM: the other engine reads and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.format.instants.service_metadata import SavepointMetadata
from hoodie.timeline import Action, read_instant
from tests.interop.judges import Jvm
from tests.interop.shared_trips import SCHEMA, TYPES, both_go_on, check_both, jvm_write, new_table, newest_of, trips
from tests.support.rows import assert_same_rows


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TYPES)
def test_our_savepoint_restore_and_rollback(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = new_table(path, table_type)
    table.upsert(trips(range(10), 1))
    saved = table.savepoint(user="ann", comment="kept").instant
    assert saved is not None
    shown = jvm.sql(f"CALL show_savepoints(path => '{path}')")
    assert shown["savepoint_time"].to_pylist() == [saved]
    table.upsert(trips(range(4), 2))
    jvm_write(jvm, path, table_type, trips(range(3, 12), 3))
    if table_type == "merge_on_read":
        table.schedule_compaction()
        table.compact()
    table.insert_overwrite(trips(range(2), 4))
    table.restore(saved)
    check_both(jvm, path, newest_of({1: range(10)}))
    assert jvm.read(path, options={"as.of.instant": saved}).num_rows == 10
    both_go_on(jvm, path, table_type, {1: range(10)}, jvm_first=True)
    table.delete_savepoint(saved)
    assert jvm.sql(f"CALL show_savepoints(path => '{path}')").num_rows == 0
    before = table.to_arrow(SCHEMA.names)
    jvm_write(jvm, path, table_type, trips(range(5, 20), 200))
    theirs = table.timeline.completed().writes().latest()
    assert theirs is not None
    table.upsert(trips(range(5, 20), 201))
    table.rollback(theirs.requested_time, chain=True)
    check_both(jvm, path, before)
    known = {1: range(10), 100: range(12), 101: range(1, 13), 102: range(2, 14)}
    both_go_on(jvm, path, table_type, known, jvm_first=True)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvms_savepoint_restore_and_rollback(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = new_table(path, table_type)
    table.upsert(trips(range(10), 1))
    first = table.timeline.completed().writes().instants[-1]
    jvm.sql(f"CALL create_savepoint(path => '{path}', commit_time => '{first.requested_time}', user => 'ann')")
    (saved,) = table.savepoints()
    assert (saved.user, saved.instant) == ("ann", first.requested_time)
    view = table.view()
    found = view.timeline.get(first.requested_time, Action.SAVEPOINT)
    assert found is not None
    theirs = SavepointMetadata.parse(read_instant(view.store, view.layout, found))
    table.delete_savepoint(saved.instant)
    table.savepoint(saved.instant, user="ann")
    (ours,) = table.savepoints()
    assert {path: set(names) for path, names in ours.files.items()} == {
        path: set(part.savepoint_data_file) for path, part in theirs.partition_metadata.items()
    }
    table.upsert(trips(range(4), 2))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved.instant}')")
    check_both(jvm, path, newest_of({1: range(10)}), has_index=False)
    table.upsert(trips(range(4), 3))
    newest = table.timeline.completed().writes().instants[-1].requested_time
    with jvm.named(path) as name:
        jvm.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{newest}')")
    check_both(jvm, path, newest_of({1: range(10)}), has_index=False)
    # The JVM has filled statistics in the call that rolled back: they lack rows, and our write drops them.
    with pytest.warns(hoodie.HoodieWarning, match="partition_stats were dropped"):
        both_go_on(jvm, path, table_type, {1: range(10)}, jvm_first=False)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TYPES)
def test_half_done_restores_are_taken_up_by_the_other_engine(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = new_table(path, table_type)
    table.upsert(trips(range(10), 1))
    saved = table.savepoint().instant
    assert saved is not None
    table.upsert(trips(range(4), 2))

    def die(step: Step) -> None:
        if step is Step.CHECKED:
            raise RuntimeError("the process dies")

    with pytest.raises(RuntimeError, match="dies"), watching(die):
        table.restore(saved)
    assert [found.action for found in table.timeline.pending()].count(Action.RESTORE) == 1
    with pytest.raises(Exception, match="pending restore"):
        jvm_write(jvm, path, table_type, trips(range(2), 3))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved}')")
    assert list(table.timeline.pending()) == []
    check_both(jvm, path, newest_of({1: range(10)}), has_index=False)
    jvm_write(jvm, path, table_type, trips(range(4), 4))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved}')")
    restored = [found for found in table.timeline if found.action is Action.RESTORE][-1]
    name = f"{restored.requested_time}_{restored.completion_time}.restore"
    for file in (name, f".{name}.crc"):
        (path / ".hoodie/timeline" / file).unlink()
    with pytest.raises(hoodie.UnsupportedError, match=rf"t\.restore\('{saved}'\)"):
        table.upsert(trips(range(2), 5))
    table.restore(saved)
    assert list(table.timeline.pending()) == []
    check_both(jvm, path, newest_of({1: range(10)}), has_index=False)
    both_go_on(jvm, path, table_type, {1: range(10)}, jvm_first=False)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_savepoint_of_the_jvm_is_read_behind_a_clean(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """The JVM refuses every instant before the last clean's earliest commit, also one with a savepoint."""
    path = tmp_path / "trips"
    table = new_table(path, table_type)
    table.upsert(trips(range(10), 1))
    jvm_write(jvm, path, table_type, trips(range(4), 2))
    saved = table.timeline.writes().instants[-1].requested_time
    jvm.sql(f"CALL create_savepoint(path => '{path}', commit_time => '{saved}')")
    for ts in (3, 4, 5):
        table.upsert(trips(range(12), ts))
        if table_type == "merge_on_read":
            table.schedule_compaction()
            table.compact()
    assert table.clean(properties={"hoodie.clean.commits.retained": "1"}).readable_savepoints == (saved,)
    expected = newest_of({1: range(10), 2: range(4)})
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(SCHEMA.names, as_of=saved), expected, key="id")
    with pytest.raises(Exception, match="Cleaner cleaned up the timestamp of interest"):
        jvm.read(path, options={"as.of.instant": saved})


def test_the_jvm_deletes_a_savepoint_whose_later_commits_are_archived(jvm: Jvm, tmp_path: Path) -> None:
    """Our reads have the rows of the archived commits; those of the JVM have not."""
    path = tmp_path / "trips"
    beyond = {
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.archive.automatic": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
        "hoodie.metadata.compact.max.delta.commits": "2",
    }
    table = hoodie.create(
        path, SCHEMA, record_key="id", partition_by="id", ordering="ts", name="trips", spark=False, properties=beyond
    )  # fmt: skip
    table.upsert(trips(range(1), 1))
    saved = table.savepoint().instant
    for number in range(1, 8):
        table.upsert(trips(range(number, number + 1), 1))
    assert table.archive().counts["commits"] > 0
    jvm.sql(f"CALL delete_savepoint(path => '{path}', instant_time => '{saved}')")
    assert hoodie.open(path, spark=False).timeline.start == saved
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(SCHEMA.names), trips(range(8), 1), key="id")
    assert jvm.read(path, SCHEMA.names).num_rows < 8
