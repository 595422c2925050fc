"""Columns that SQL renamed, dropped and added again are read by their ids, from base files and from log files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, UnsupportedError
from tests.support.altered import Columns, alter
from tests.unit.read.counted import counting

_BEFORE: Columns = {"id": (5, "string"), "a": (6, "string"), "b": (7, "string"), "n": (8, "int")}
_RENAMED: Columns = {"id": (5, "string"), "a": (6, "string"), "c": (7, "string"), "n": (8, "int")}
_ADDED: Columns = {"id": (5, "string"), "c": (7, "string"), "n": (8, "long"), "b": (9, "string"), "a": (10, "string")}
_SCHEMA = pa.schema([("id", pa.string()), ("a", pa.string()), ("b", pa.string()), ("n", pa.int32())])
_COLUMNS = ["id", "c", "n", "b", "a"]


@pytest.fixture(params=["copy_on_write", "merge_on_read"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hoodie.Table:
    """Two rows, one of them updated, before the columns change."""
    made = hoodie.create(tmp_path / "t", _SCHEMA, record_key="id", type=request.param, spark=False)
    made.upsert(pa.table([["k1", "k2"], ["a1", "a2"], ["b1", "b2"], [1, 2]], schema=_SCHEMA))
    made.upsert(pa.table([["k2"], ["a2"], ["b2u"], [20]], schema=_SCHEMA))
    return made


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


def test_such_a_table_is_not_written(table: hoodie.Table) -> None:
    alter(table.view(), [_BEFORE, _RENAMED])
    before = sorted(Path(table.path.removeprefix("file://")).rglob("*"))
    with pytest.raises(UnsupportedError, match="columns SQL renamed"):
        table.upsert(pa.table({"id": ["k3"], "a": ["a3"], "c": ["c3"], "n": pa.array([3], pa.int32())}))
    assert sorted(Path(table.path.removeprefix("file://")).rglob("*")) == before
    if table.inspect.slices()["log_files"].to_pylist() != [0]:
        with pytest.raises(UnsupportedError, match="columns SQL renamed"):
            table.compact()


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
        counted.table.upsert(pa.table([["k3"], ["a3"], ["b3"], [3]], schema=_SCHEMA))
        counted.table.to_arrow()
        assert (first, counted.listings(".hoodie/.schema")) == (1, 1)
