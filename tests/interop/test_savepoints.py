"""Savepoints, restores and rollbacks of completed commits by us and by the JVM: the other engine reads and goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.format.instants.service_metadata import SavepointMetadata
from hoodie.timeline import Action, read_instant
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.index_check import check_index
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
TYPES = ["copy_on_write", "merge_on_read"]


def _trips(numbers: range, ts: int) -> pa.Table:
    rows = [{"id": f"k{n:03}", "ts": ts, "fare": n + ts / 8, "city": ("sf", "nyc")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _newest(changes: dict[int, range]) -> pa.Table:
    """The newest version of each key; a greater ts is newer."""
    newest = {number: ts for ts in sorted(changes) for number in changes[ts]}
    return pa.concat_tables([_trips(range(number, number + 1), ts) for number, ts in newest.items()])


def _table(path: Path, table_type: str) -> hoodie.Table:
    return hoodie.create(
        path, SCHEMA, record_key="id", partition_by="city", ordering="ts", name="trips", type=table_type, spark=False
    )  # fmt: skip


def _jvm_upsert(jvm: Jvm, path: Path, table_type: str, rows: pa.Table) -> None:
    jvm.write(
        rows, path, table_name="trips", key="id", partition="city", ordering="ts",
        table_type=table_type.upper(), options=HIVE,
    )  # fmt: skip


def _check(jvm: Jvm, path: Path, expected: pa.Table, *, has_index: bool = True) -> None:
    """Three readers agree, with and without metadata table, and the JVM's look-up in the record index is the data."""
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(SCHEMA.names), expected, key="id")
    for metadata in ("true", "false"):
        read = jvm.read(path, SCHEMA.names, options={"hoodie.metadata.enable": metadata})
        assert_same_rows(read, expected, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), expected, key="id")
    if not has_index:
        return
    table = hoodie.open(path, spark=False)
    check_index(table.view())
    keys = expected["id"].to_pylist()
    ours = table.record_locations(keys)
    names = ("_hoodie_record_key", "partition_path", "file_id")
    rows = zip(*(ours[name].to_pylist() for name in names), strict=True)
    assert jvm.locations(path, keys) == {key: (partition, file_id) for key, partition, file_id in rows}


def _goes_on(jvm: Jvm, path: Path, table_type: str, changes: dict[int, range], *, jvm_first: bool) -> None:
    """Both engines write in turn, and read the same."""
    known = dict(changes)
    for number, is_jvm in enumerate((jvm_first, not jvm_first, jvm_first)):
        ts = 100 + number
        rows = _trips(range(number, 12 + number), ts)
        if is_jvm:
            _jvm_upsert(jvm, path, table_type, rows)
        else:
            hoodie.open(path, spark=False).upsert(rows)
        known[ts] = range(number, 12 + number)
    _check(jvm, path, _newest(known))
    if table_type == "merge_on_read":
        jvm.compact(path)
        _check(jvm, path, _newest(known))


@pytest.mark.parametrize("table_type", TYPES)
def test_our_savepoint_restore_and_rollback(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = _table(path, table_type)
    table.upsert(_trips(range(10), 1))
    saved = table.savepoint(user="ann", comment="kept").instant
    assert saved is not None
    shown = jvm.sql(f"CALL show_savepoints(path => '{path}')")
    assert shown["savepoint_time"].to_pylist() == [saved]
    table.upsert(_trips(range(4), 2))
    _jvm_upsert(jvm, path, table_type, _trips(range(3, 12), 3))
    if table_type == "merge_on_read":
        table.schedule_compaction()
        table.compact()
    table.insert_overwrite(_trips(range(2), 4))
    table.restore(saved)
    _check(jvm, path, _newest({1: range(10)}))
    assert jvm.read(path, options={"as.of.instant": saved}).num_rows == 10
    _goes_on(jvm, path, table_type, {1: range(10)}, jvm_first=True)
    table.delete_savepoint(saved)
    assert jvm.sql(f"CALL show_savepoints(path => '{path}')").num_rows == 0
    before = table.to_arrow(SCHEMA.names)
    _jvm_upsert(jvm, path, table_type, _trips(range(5, 20), 200))
    theirs = table.timeline.completed().writes().latest()
    assert theirs is not None
    table.upsert(_trips(range(5, 20), 201))
    table.rollback(theirs.requested_time, chain=True)
    _check(jvm, path, before)
    known = {1: range(10), 100: range(12), 101: range(1, 13), 102: range(2, 14)}
    _goes_on(jvm, path, table_type, known, jvm_first=True)


@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvms_savepoint_restore_and_rollback(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = _table(path, table_type)
    table.upsert(_trips(range(10), 1))
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
    table.upsert(_trips(range(4), 2))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved.instant}')")
    _check(jvm, path, _newest({1: range(10)}), has_index=False)
    table.upsert(_trips(range(4), 3))
    newest = table.timeline.completed().writes().instants[-1].requested_time
    jvm.spark.sql(f"CREATE TABLE IF NOT EXISTS savepoints_{table_type} USING hudi LOCATION '{path}'")
    jvm.sql(f"CALL rollback_to_instant(table => 'savepoints_{table_type}', instant_time => '{newest}')")
    jvm.spark.sql(f"DROP TABLE savepoints_{table_type}")
    _check(jvm, path, _newest({1: range(10)}), has_index=False)
    _goes_on(jvm, path, table_type, {1: range(10)}, jvm_first=False)


@pytest.mark.parametrize("table_type", TYPES)
def test_half_done_restores_are_taken_up_by_the_other_engine(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    table = _table(path, table_type)
    table.upsert(_trips(range(10), 1))
    saved = table.savepoint().instant
    assert saved is not None
    table.upsert(_trips(range(4), 2))

    def die(step: Step) -> None:
        if step is Step.CHECKED:
            raise RuntimeError("the process dies")

    with pytest.raises(RuntimeError, match="dies"), watching(die):
        table.restore(saved)
    assert [found.action for found in table.timeline.pending()].count(Action.RESTORE) == 1
    with pytest.raises(Exception, match="pending restore"):
        _jvm_upsert(jvm, path, table_type, _trips(range(2), 3))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved}')")
    assert list(table.timeline.pending()) == []
    _check(jvm, path, _newest({1: range(10)}), has_index=False)
    _jvm_upsert(jvm, path, table_type, _trips(range(4), 4))
    jvm.sql(f"CALL rollback_to_savepoint(path => '{path}', instant_time => '{saved}')")
    restored = [found for found in table.timeline if found.action is Action.RESTORE][-1]
    name = f"{restored.requested_time}_{restored.completion_time}.restore"
    for file in (name, f".{name}.crc"):
        (path / ".hoodie/timeline" / file).unlink()
    with pytest.raises(hoodie.UnsupportedError, match=rf"t\.restore\('{saved}'\)"):
        table.upsert(_trips(range(2), 5))
    table.restore(saved)
    assert list(table.timeline.pending()) == []
    _check(jvm, path, _newest({1: range(10)}), has_index=False)
    _goes_on(jvm, path, table_type, {1: range(10)}, jvm_first=False)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_savepoint_of_the_jvm_is_read_behind_a_clean(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """The JVM refuses every instant before the last clean's earliest commit, also one with a savepoint."""
    path = tmp_path / "trips"
    table = _table(path, table_type)
    table.upsert(_trips(range(10), 1))
    _jvm_upsert(jvm, path, table_type, _trips(range(4), 2))
    saved = table.timeline.writes().instants[-1].requested_time
    jvm.sql(f"CALL create_savepoint(path => '{path}', commit_time => '{saved}')")
    for ts in (3, 4, 5):
        table.upsert(_trips(range(12), ts))
        if table_type == "merge_on_read":
            table.schedule_compaction()
            table.compact()
    assert table.clean(properties={"hoodie.clean.commits.retained": "1"}).readable_savepoints == (saved,)
    expected = _newest({1: range(10), 2: range(4)})
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(SCHEMA.names, as_of=saved), expected, key="id")
    with pytest.raises(Exception, match="Cleaner cleaned up the timestamp of interest"):
        jvm.read(path, options={"as.of.instant": saved})
