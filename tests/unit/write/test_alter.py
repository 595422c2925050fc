"""Columns that are changed: what reads and writes of before and after return, and which changes are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.table import Table
from tests.support.steps import once_at

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("a", pa.int32()),
        ("b", pa.string()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("ts", pa.int64()),
        ("p", pa.string()),
    ]
)
BOTH = pytest.mark.parametrize("table_type", ["cow", "mor"])


def _rows(number: int, ts: int = 1, **changed: Any) -> pa.Table:
    row = {"id": f"k{number}", "a": number, "b": f"b{number}", "s": {"x": number, "y": f"y{number}"}} | changed
    return pa.Table.from_pylist([{**row, "ts": ts, "p": "p"}], SCHEMA)


def _table(path: Path, table_type: str = "cow", **options: Any) -> Table:
    t = hoodie.create(
        path / "t", SCHEMA, record_key="id", partition_by="p", ordering="ts", type=table_type, spark=False, **options
    )
    t.upsert(_rows(1))
    t.upsert(_rows(2))
    t.upsert(_rows(1, 2, b="b1u"))
    return t


def _values(t: Table, *columns: str, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = t.to_arrow(columns=["id", *columns], **options).sort_by("id").to_pylist()
    return rows


@BOTH
def test_a_renamed_column_keeps_its_values(tmp_path: Path, table_type: str) -> None:
    t = _table(tmp_path, table_type)
    before = t.timeline.completed().instants[-1].requested_time
    result = t.alter.rename_column("b", "c")
    assert result.changes == ("column b renamed to c",)
    assert "hoodie.schema.on.read.enable=true" in result.notes[0]
    t.alter.rename_column("s.y", "z")
    t.alter.add_column("b", "bigint", after="id")
    assert t.schema.names == ["id", "b", "a", "c", "s", "ts", "p"]
    expected = [
        {"id": "k1", "b": None, "c": "b1u", "s": {"x": 1, "z": "y1"}},
        {"id": "k2", "b": None, "c": "b2", "s": {"x": 2, "z": "y2"}},
    ]
    assert _values(t, "b", "c", "s") == expected
    assert _values(t, "c", where="b is null and c = 'b2' and s.z = 'y2'") == [{"id": "k2", "c": "b2"}]
    assert _values(t, "b", as_of=before) == [{"id": "k1", "b": "b1u"}, {"id": "k2", "b": "b2"}]
    row = {"id": "k2", "b": 7, "a": 2, "c": "c2", "s": {"x": 2, "z": "z2"}, "ts": 9, "p": "p"}
    t.upsert(pa.Table.from_pylist([row], t.schema))
    assert _values(t, "b", "c")[1] == {"id": "k2", "b": 7, "c": "c2"}
    assert t.verify(full=True).ok


@BOTH
def test_a_dropped_column_does_not_come_back(tmp_path: Path, table_type: str) -> None:
    t = _table(tmp_path, table_type)
    t.alter.drop_column("a")
    t.alter.drop_column("s.x")
    result = t.alter.add_column("a", "int")
    assert "another column had this name" in result.notes[0]
    assert _values(t, "a", "s") == [
        {"id": "k1", "a": None, "s": {"y": "y1"}},
        {"id": "k2", "a": None, "s": {"y": "y2"}},
    ]
    if table_type == "mor":
        t.schedule_compaction(strategy=None)
        t.compact()
    t.cluster("ts")
    assert _values(t, "a", "b") == [{"id": "k1", "a": None, "b": "b1u"}, {"id": "k2", "a": None, "b": "b2"}]


def test_a_struct_keeps_a_field_of_its_files(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.alter.add_column("s.z", "int")
    t.alter.drop_column("s.x")
    with pytest.raises(SchemaMismatchError, match="'s': a struct keeps a field"):
        t.alter.drop_column("s.y")
    t.alter.drop_column("s")
    t.alter.add_column("s", "struct<z: int>")
    assert _values(t, "s") == [{"id": "k1", "s": None}, {"id": "k2", "s": None}]


@BOTH
def test_a_changed_type_converts_stored_values(tmp_path: Path, table_type: str) -> None:
    t = _table(tmp_path, table_type)
    assert t.alter.change_type("s.x", pa.int64()).notes == ()
    assert len(t.alter.change_type("a", "string").notes) == 1
    assert _values(t, "a", "s", where="a = '2'") == [{"id": "k2", "a": "2", "s": {"x": 2, "y": "y2"}}]
    assert t.schema.field("s").type.field("x").type == pa.int64()


def test_names_are_enough_for_many_changes(tmp_path: Path) -> None:
    t = _table(tmp_path)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: t.alter.add_column("c", "map<string, int>", comment="counts", first=True),
        lambda: t.alter.change_type("a", "bigint"),
        lambda: t.alter.move_column("p", after="c"),
        lambda: t.alter.set_comment("id", "the key"),
        lambda: t.alter.allow_null("b"),
    )
    assert all(call().notes == () for call in calls)
    assert not list((tmp_path / "t/.hoodie/.schema").glob("*"))
    rows = t.to_arrow().select([*t.schema.names])
    t.upsert(rows.append_column("new", pa.array([1, 2])))
    assert t.schema.names == ["c", "p", "id", "a", "b", "s", "ts", "new"]
    comments = {child.name: child.metadata for child in t.schema if child.metadata}
    assert comments == {"c": {b"doc": b"counts"}, "id": {b"doc": b"the key"}}


def test_a_table_without_commits_gets_no_ids(tmp_path: Path) -> None:
    t = hoodie.create(tmp_path / "t", SCHEMA, record_key="id", spark=False)
    assert t.alter.drop_column("b").notes == ()
    assert t.alter.rename_column("a", "b").notes != ()  # the first change is a commit
    t.upsert({"id": ["x"], "b": [1], "s": [None], "ts": [1], "p": ["p"]})
    assert _values(t, "b") == [{"id": "x", "b": 1}]


def test_a_new_column_goes_in_front_of_partition_columns(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.alter.add_column("n", "int")
    t.alter.add_column("o", "int", after="p")
    t.alter.add_column("q", "int")
    assert t.schema.names == ["id", "a", "b", "s", "ts", "n", "p", "o", "q"]


def test_several_changes_are_one_commit(tmp_path: Path) -> None:
    from hoodie.format.schema.alterations import AddColumn, RenameColumn

    t = _table(tmp_path)
    before = len(t.timeline)
    result = t.alter.run([RenameColumn("b", "c"), AddColumn("b", pa.int32()), RenameColumn("c", "d")])
    assert len(t.timeline) == before + 1
    assert len(result.changes) == 3
    assert _values(t, "b", "d")[1] == {"id": "k2", "b": None, "d": "b2"}
    assert t.history(1)["operation"].to_pylist() == ["alter_schema"]


def test_nothing_to_do_is_no_commit(tmp_path: Path) -> None:
    t = _table(tmp_path)
    result = t.alter.change_type("a", "int")
    assert (result.instant, result.changes, str(result).splitlines()[0]) == (None, (), "alter: nothing to do")


@pytest.mark.parametrize("name", ["id", "ts", "p"])
@pytest.mark.parametrize("method", ["drop_column", "rename_column", "change_type"])
def test_columns_of_keys_stay(tmp_path: Path, name: str, method: str) -> None:
    t = _table(tmp_path)
    more = {"drop_column": (), "rename_column": ("new",), "change_type": ("string",)}[method]
    with pytest.raises(UnsupportedError, match=rf"'{name}' of .* is part of the"):
        getattr(t.alter, method)(name, *more)


def test_types_without_ids_are_refused(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.alter.add_column("local", "timestamp_ntz")
    with pytest.raises(UnsupportedError, match="cannot read the ids of a table"):
        t.alter.rename_column("b", "c")


def test_names_in_statistics_are_not_used_again(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.index.build("column_stats")
    t.alter.rename_column("b", "c")
    assert _values(t, where="c = 'b2'") == [{"id": "k2"}]
    with pytest.raises(SchemaMismatchError, match="another column had this name"):
        t.alter.rename_column("a", "b")
    t.index.drop("column_stats")
    t.alter.rename_column("a", "b")
    assert _values(t, where="b = 2") == [{"id": "k2"}]


def test_a_rollback_takes_the_change_back(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.alter.rename_column("b", "c")
    instant = t.alter.rename_column("c", "d").instant
    assert instant is not None
    t.rollback(instant)
    assert _values(t, "c")[1] == {"id": "k2", "c": "b2"}
    t.alter.add_column("d", "int")
    assert _values(t, "c", "d")[1] == {"id": "k2", "c": "b2", "d": None}


@BOTH
def test_a_restore_takes_the_change_back(tmp_path: Path, table_type: str) -> None:
    t = _table(tmp_path, table_type)
    saved = t.savepoint().instant
    t.alter.rename_column("b", "c")
    t.restore(str(saved))
    assert _values(t, "b")[1] == {"id": "k2", "b": "b2"}
    t.upsert(_rows(1, 5, b="again"))
    t.alter.rename_column("b", "d")
    assert [row["d"] for row in _values(t, "d")] == ["again", "b2"]


def test_data_that_changes_columns_with_ids_is_refused(tmp_path: Path) -> None:
    t = _table(tmp_path)
    t.alter.rename_column("b", "c")
    with pytest.raises(UnsupportedError, match=r"the data changes 'b'.*t\.alter"):
        t.upsert(_rows(1, 5).append_column("c", pa.array(["c"])))


def test_a_write_that_runs_meanwhile_conflicts(tmp_path: Path) -> None:
    t = _table(tmp_path)
    with once_at(Step.LOCATED, lambda: t.alter.rename_column("b", "c")), pytest.raises(CommitConflictError):
        hoodie.open(tmp_path / "t", spark=False).upsert(_rows(1, 5))
    assert _values(t, "c")[0] == {"id": "k1", "c": "b1u"}


def test_a_write_that_began_later_and_ended_first_delays_the_change(tmp_path: Path) -> None:
    t = _table(tmp_path)
    other = hoodie.open(tmp_path / "t", spark=False)
    with once_at(Step.LOCATED, lambda: other.upsert(_rows(3))):
        result = t.alter.rename_column("b", "c")
    assert result.notes[0].startswith("retried once")
    assert [row["c"] for row in _values(t, "c")] == ["b1u", "b2", "b3"]


def test_arguments(tmp_path: Path) -> None:
    t = _table(tmp_path)
    with pytest.raises(InvalidConfigError, match="found both"):
        t.alter.add_column("n", "int", first=True, after="a")
    with pytest.raises(InvalidConfigError, match="expected after="):
        t.alter.move_column("a")
    with pytest.raises(InvalidConfigError, match="a type of Spark SQL"):
        t.alter.add_column("n", "int, m int")
    with pytest.raises(InvalidConfigError, match="pyarrow DataType"):
        t.alter.add_column("n", int)
    with pytest.raises(SchemaMismatchError, match="Avro"):
        t.alter.add_column("n-1", "int")


def test_statistics_that_are_built_later_leave_out_no_row(tmp_path: Path) -> None:
    t = _table(tmp_path, "mor")
    t.alter.change_type("a", "string")
    t.alter.rename_column("b", "c")
    t.index.build("column_stats")
    assert _values(t, where="a = '2'") == [{"id": "k2"}]
    assert _values(t, where="c = 'b2'") == [{"id": "k2"}]
