"""Columns that SQL renamed, dropped and added again are read by their ids, from base files and from log files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, CorruptFileError, UnsupportedError
from hoodie.timeline import archive_instants
from hoodie.view.columns import column_history, visible_schemas
from tests.support.altered import Columns, add_without_ids, alter
from tests.support.steps import once_at
from tests.support.tables import TYPES, new_table, table_of
from tests.unit.read.counted import counting

_BEFORE: Columns = {"id": (5, "string"), "a": (6, "string"), "b": (7, "string"), "n": (8, "int")}
_RENAMED: Columns = {"id": (5, "string"), "a": (6, "string"), "c": (7, "string"), "n": (8, "int")}
_ADDED: Columns = {"id": (5, "string"), "c": (7, "string"), "n": (8, "long"), "b": (9, "string"), "a": (10, "string")}
_ROW = pa.table({"id": ["k3"], "a": ["a3"], "c": ["c3"], "n": pa.array([3], pa.int32())})
"""What writers give after the column `b` was renamed."""
_SCHEMA = pa.schema([("id", pa.string()), ("a", pa.string()), ("b", pa.string()), ("n", pa.int32())])


@pytest.fixture(params=TYPES)
def table(request: pytest.FixtureRequest) -> hoodie.Table:
    """Two rows, one of them updated, before the columns change."""
    first = table_of(_SCHEMA, ("k1", "a1", "b1", 1), ("k2", "a2", "b2", 2))
    return new_table(_SCHEMA, first, table_of(_SCHEMA, ("k2", "a2", "b2u", 20)), type=request.param)


def _rows(rows: pa.Table) -> list[dict[str, object]]:
    own = [name for name in rows.column_names if not name.startswith("_hoodie")]
    return sorted(rows.select(own).to_pylist(), key=str)


def test_renamed_dropped_and_added_columns(table: hoodie.Table) -> None:
    before = table.timeline.completed().instants[-1].requested_time
    renamed = alter(table.view(), [_BEFORE, _RENAMED])
    assert _rows(table.to_arrow()) == [
        {"id": "k1", "a": "a1", "c": "b1", "n": 1},
        {"id": "k2", "a": "a2", "c": "b2u", "n": 20},
    ]
    alter(table.view(), [_BEFORE, _RENAMED, _ADDED])
    now = [
        {"id": "k1", "c": "b1", "n": 1, "b": None, "a": None},
        {"id": "k2", "c": "b2u", "n": 20, "b": None, "a": None},
    ]
    assert _rows(table.to_arrow()) == _rows(hoodie.open(table.path, spark=False).to_arrow()) == now
    assert table.to_arrow(columns=["id", "b"], where="c = 'b2u' and b is null").to_pylist() == [{"id": "k2", "b": None}]
    assert table.to_arrow(columns="id", where="a = 'a1'").num_rows == table.to_arrow(where="b = 'b1'").num_rows == 0
    assert _rows(table.read_keys(["k2"])) == now[1:]
    assert _rows(table.changes(since=before)) == []
    assert [row["c"] for row in _rows(table.to_arrow(as_of=renamed))] == ["b1", "b2u"]
    assert [row["b"] for row in _rows(table.to_arrow(as_of=before))] == ["b1", "b2u"]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("is_logging", ["false", "true"])
def test_change_data_from_before_a_change_of_names(type: str, is_logging: str) -> None:
    logging = {
        "hoodie.table.cdc.enabled": is_logging,
        "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
    }
    table = new_table(_SCHEMA, table_of(_SCHEMA, ("k", "a1", "b1", 1)), type=type, properties=logging)
    since = table.timeline.completed().instants[-1].requested_time
    table.upsert(table_of(_SCHEMA, ("k", "a2", "b2", 2)))

    def images(where: str | None = None) -> list[object]:
        changes = table.changes(since, mode="cdc", where=where)
        return [(row["before"], row["after"]) for row in changes.to_pylist()]

    table.alter.rename_column("b", "c")
    assert images() == [({"id": "k", "a": "a1", "c": "b1", "n": 1}, {"id": "k", "a": "a2", "c": "b2", "n": 2})]
    table.alter.rename_column("a", "b")
    table.alter.drop_column("n")
    table.alter.add_column("n", "int")
    now = [({"id": "k", "b": "a1", "c": "b1", "n": None}, {"id": "k", "b": "a2", "c": "b2", "n": None})]
    assert images() == images("b = 'a2' and c = 'b2'") == now
    assert images("b = 'b2'") == images("n = 2") == []
    table.upsert({"id": ["k"], "b": ["b3"], "c": ["c3"], "n": pa.array([3], pa.int32())})
    assert images("n = 3") == [(now[0][1], {"id": "k", "b": "b3", "c": "c3", "n": 3})]


_NOW = pa.schema([("id", pa.string()), ("c", pa.string()), ("n", pa.int64()), ("b", pa.string()), ("a", pa.string())])


def test_writes_keep_the_ids(table: hoodie.Table) -> None:
    is_merge_on_read = table.inspect.slices()["log_files"].to_pylist() != [0]
    alter(table.view(), [_BEFORE, _RENAMED])
    planned = table.schedule_compaction() if is_merge_on_read else None
    alter(table.view(), [_BEFORE, _RENAMED, _ADDED])
    table.upsert(table_of(_NOW, ("k2", "c2", 22, "b2", None), ("k3", "c3", 3, "b3", "a3")))
    table.update({"n": "n + 100"}, where="c = 'b1'")
    expected = [
        {"id": "k1", "c": "b1", "n": 101, "b": None, "a": None},
        {"id": "k2", "c": "c2", "n": 22, "b": "b2", "a": None},
        {"id": "k3", "c": "c3", "n": 3, "b": "b3", "a": "a3"},
    ]
    assert _rows(table.to_arrow()) == expected
    if is_merge_on_read:
        # The first plan is older than the last change: its files have the columns of that time.
        table.compact(planned)
        assert _rows(hoodie.open(table.path, spark=False).to_arrow()) == expected
        table.schedule_log_compaction()
        table.compact()
        assert _rows(hoodie.open(table.path, spark=False).to_arrow()) == expected
        table.schedule_compaction()
        table.compact()
    table.delete(["k2"])
    assert _rows(hoodie.open(table.path, spark=False).to_arrow()) == [expected[0], expected[2]]
    assert table.index.verify().ok
    view = table.view()
    ids = [view.commit_facts(instant).column_version for instant in view.completed_writes()]
    renamed, added = (found.version for found in visible_schemas(view)[1:])
    assert ({*ids[2:]}, ids[-1]) == ({renamed, added}, added)
    # The newest commit has the history, which the JVM reads.
    last = view.completed_writes()[-1].requested_time
    (name,) = (name for name in view.store.names(".hoodie/.schema") if name.startswith(last))
    assert view.store.read(f".hoodie/.schema/{name}") == column_history(view).text


def test_histories_of_archived_instants_are_deleted(table: hoodie.Table) -> None:
    alter(table.view(), [_BEFORE, _RENAMED])
    for _ in range(4):
        table.upsert(_ROW)
    view = table.view()
    store, before = view.store, _rows(table.to_arrow())
    histories = sorted(store.names(".hoodie/.schema"))
    completed = [found for found in view.timeline.completed() if found.requested_time <= histories[2][:17]]
    # A history of a writer that died before its commit, and a file that is no history.
    store.create(f".hoodie/.schema/{view.clock.next_time(view.timeline)}_1.schemacommit", b"{}")
    store.create(".hoodie/.schema/0.txt", b"kept")
    died = max(store.names(".hoodie/.schema"))
    archive_instants(store, view.layout, completed)
    assert _rows(hoodie.open(table.path, spark=False).to_arrow()) == before
    table.upsert(_ROW)
    *left, newest = sorted(store.names(".hoodie/.schema"))
    assert left == ["0.txt", *histories[3:], died]
    last = table.view().completed_writes()[-1].requested_time
    assert newest.startswith(last)
    assert _rows(hoodie.open(table.path, spark=False).to_arrow()) == before


def test_data_does_not_change_columns_with_ids(table: hoodie.Table) -> None:
    alter(table.view(), [_BEFORE, _RENAMED])
    before = table.view().store.list("", recursive=True)
    with pytest.raises(UnsupportedError, match=r"columns have ids.*'more'.*ALTER TABLE"):
        table.upsert(_ROW.append_column("more", pa.array(["x"])))
    assert table.view().store.list("", recursive=True) == before


def test_columns_that_a_writer_without_ids_added(table: hoodie.Table) -> None:
    alter(table.view(), [_BEFORE, _RENAMED])
    # The JVM without the option: the commit has no ids, and `b` is not the column that `b` was before.
    add_without_ids(table.view(), {**_RENAMED, "b": (0, "string")})
    reopened = hoodie.open(table.path, spark=False)
    assert [(row["c"], row["b"]) for row in _rows(reopened.to_arrow())] == [("b1", None), ("b2u", None)]
    with pytest.raises(UnsupportedError, match="'b' has none"):
        reopened.delete(["k1"])


def test_a_change_of_ids_conflicts(table: hoodie.Table) -> None:
    """Dropped and added again: the same schema, and another column."""
    alter(table.view(), [_BEFORE, _RENAMED])
    other = {**_RENAMED, "n": (9, "int")}

    def change() -> None:
        alter(hoodie.open(table.path, spark=False).view(), [_BEFORE, _RENAMED, other])

    with once_at(Step.WRITTEN, change), pytest.raises(CommitConflictError, match="changed the schema"):
        table.upsert(_ROW)
    table.upsert(_ROW)
    assert [row["n"] for row in _rows(table.to_arrow())] == [None, None, 3]


def test_a_lost_history_is_damage(table: hoodie.Table) -> None:
    alter(table.view(), [_BEFORE, _RENAMED])
    view = hoodie.open(table.path, spark=False).view()
    (name,) = view.store.names(".hoodie/.schema")
    text = view.store.read(f".hoodie/.schema/{name}")
    view.store.delete(f".hoodie/.schema/{name}")
    with pytest.raises(CorruptFileError, match=r"history of the ids has \[\].*restore"):
        hoodie.open(table.path, spark=False).to_arrow()
    # A change that was never committed leaves a history that does not count.
    view.store.create(f".hoodie/.schema/{name}", text)
    view.store.create(".hoodie/.schema/99991231235959999.schemacommit", b"{")
    assert hoodie.open(table.path, spark=False).to_arrow()["c"].to_pylist() == ["b1", "b2u"]


def test_the_history_is_listed_once(table: hoodie.Table) -> None:
    with counting(table) as counted:
        counted.table.to_arrow()
        first = counted.listings(".hoodie/.schema")
        counted.table.to_arrow()
        counted.table.upsert(table_of(_SCHEMA, ("k3", "a3", "b3", 3)))
        counted.table.to_arrow()
        assert (first, counted.listings(".hoodie/.schema")) == (1, 1)
