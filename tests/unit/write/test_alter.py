"""Columns that are changed: what reads and writes of before and after return, and which changes are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, HoodieError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.alterations import AddColumn, RenameColumn
from hoodie.metadata.kinds.column_stats import statistics_columns
from hoodie.table import Table
from tests.support.steps import once_at
from tests.support.tables import TYPES, copy_of, new_table, table_of, values_of
from tests.unit.write.tables import untouched

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
BOTH = pytest.mark.parametrize("t", TYPES, indirect=True)


def _row(number: int, ts: int = 1, b: str | None = None) -> pa.Table:
    s = {"x": number, "y": f"y{number}"}
    return table_of(SCHEMA, (f"k{number}", number, b or f"b{number}", s, ts, "p"))


@pytest.fixture
def t(request: pytest.FixtureRequest) -> Table:
    """A table with the rows 1 and 2, of which the first has `b` from a later commit."""
    named: dict[str, Any] = {"partition_by": "p", "ordering": "ts", "type": getattr(request, "param", "copy_on_write")}
    return new_table(SCHEMA, _row(1), _row(2), _row(1, 2, "b1u"), **named)


@BOTH
def test_a_renamed_column_keeps_its_values(t: Table) -> None:
    before = t.timeline.completed().instants[-1].requested_time
    result = t.alter.rename_column("b", "c")
    assert result.changes == ("column b renamed to c",)
    assert "hoodie.schema.on.read.enable=true" in result.notes[0]
    t.alter.rename_column("s.y", "z")
    t.alter.add_column("b", "bigint", after="id")
    assert t.schema.names == ["id", "b", "a", "c", "s", "ts", "p"]
    first = ("k1", None, "b1u", {"x": 1, "z": "y1"})
    assert values_of(t, "id", "b", "c", "s") == [first, ("k2", None, "b2", {"x": 2, "z": "y2"})]
    assert values_of(t, "id", "c", where="b is null and c = 'b2' and s.z = 'y2'") == [("k2", "b2")]
    assert values_of(t, "id", "b", as_of=before) == [("k1", "b1u"), ("k2", "b2")]
    t.upsert(table_of(t.schema, ("k2", 7, 2, "c2", {"x": 2, "z": "z2"}, 9, "p")))
    assert values_of(t, "id", "b", "c") == [("k1", None, "b1u"), ("k2", 7, "c2")]
    assert t.verify(full=True).ok


STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}


@pytest.mark.parametrize("at_once", [False, True])
def test_a_renamed_column_gets_no_statistics(at_once: bool) -> None:
    """JVM Hudi takes files without a range of a column for files without its values: it skips the earlier files."""
    t = new_table(SCHEMA, _row(1), partition_by="p", properties=STATISTICS)
    if at_once:
        result = t.alter.run([RenameColumn("b", "c"), AddColumn("n", pa.int64())])
    else:
        result = t.alter.rename_column("b", "c")
        t.alter.add_column("n", "bigint")
    assert any("column c: no statistics from now on" in note for note in result.notes)
    renamed = t.schema.remove(t.schema.get_field_index("n"))
    t.upsert(table_of(renamed, ("k2", 2, "c2", {"x": 2, "y": "y2"}, 9, "q")).append_column("n", pa.array([7])))
    columns = statistics_columns(t.view().store, t.view().config.version) or ()
    assert ("n" in columns) is not at_once  # a new name may be an old column
    assert "c" not in columns
    assert values_of(t, "id", where="c = 'b1'") == [("k1",)]
    t.index.drop("column_stats")
    with pytest.raises(SchemaMismatchError, match="older files have it under another name"):
        t.index.build("column_stats", columns=["c"])
    t.index.build("column_stats")
    columns = statistics_columns(t.view().store, t.view().config.version) or ()
    assert "n" in columns
    assert "c" not in columns
    assert t.verify(full=True).ok


def test_statistics_of_version_6_refuse_another_name() -> None:
    """Hudi 0.15 expects ranges of every column in every file."""
    t = new_table(SCHEMA, _row(1), partition_by="p", table_version=6, properties=STATISTICS)
    with untouched(t, r"column 'b': (?s:.*)drop them first", SchemaMismatchError):
        t.alter.rename_column("b", "c")
    t.index.drop("column_stats")
    t.alter.rename_column("b", "c")
    with pytest.raises(SchemaMismatchError, match=r"columns c under other names(?s:.*)Hudi 0\.15"):
        t.index.build("column_stats")
    assert values_of(t, "id", where="c = 'b1'") == [("k1",)]


@BOTH
def test_a_dropped_column_does_not_come_back(t: Table) -> None:
    t.alter.drop_column("a")
    t.alter.drop_column("s.x")
    assert "another column had this name" in t.alter.add_column("a", "int").notes[0]
    assert values_of(t, "id", "a", "s") == [("k1", None, {"y": "y1"}), ("k2", None, {"y": "y2"})]
    if t.view().config.table_type.value == "MERGE_ON_READ":
        t.schedule_compaction(strategy=None)
        t.compact()
    t.cluster("ts")
    assert values_of(t, "id", "a", "b") == [("k1", None, "b1u"), ("k2", None, "b2")]


def test_a_struct_keeps_a_field_of_its_files(t: Table) -> None:
    t.alter.add_column("s.z", "int")
    t.alter.drop_column("s.x")
    with pytest.raises(SchemaMismatchError, match="'s': a struct keeps a field"):
        t.alter.drop_column("s.y")
    t.alter.drop_column("s")
    t.alter.add_column("s", "struct<z: int>")
    assert values_of(t, "id", "s") == [("k1", None), ("k2", None)]


@BOTH
def test_a_changed_type_converts_stored_values(t: Table) -> None:
    assert t.alter.change_type("s.x", pa.int64()).notes == ()
    assert len(t.alter.change_type("a", "string").notes) == 1
    assert values_of(t, "id", "a", "s", where="a = '2'") == [("k2", "2", {"x": 2, "y": "y2"})]
    assert t.schema.field("s").type.field("x").type == pa.int64()


def test_names_are_enough_for_many_changes(t: Table) -> None:
    calls: tuple[Callable[[], Any], ...] = (
        lambda: t.alter.add_column("c", "map<string, int>", comment="counts", first=True),
        lambda: t.alter.change_type("a", "bigint"),
        lambda: t.alter.move_column("p", after="c"),
        lambda: t.alter.set_comment("id", "the key"),
        lambda: t.alter.allow_null("b"),
    )
    assert all(call().notes == () for call in calls)
    assert not t.view().store.list(".hoodie/.schema")
    rows = t.to_arrow().select([*t.schema.names])
    t.upsert(rows.append_column("new", pa.array([1, 2])))
    assert t.schema.names == ["c", "p", "id", "a", "b", "s", "ts", "new"]
    comments = {child.name: child.metadata for child in t.schema if child.metadata}
    assert comments == {"c": {b"doc": b"counts"}, "id": {b"doc": b"the key"}}


def test_a_table_without_commits_gets_no_ids() -> None:
    t = new_table(SCHEMA)
    assert t.alter.drop_column("b").notes == ()
    assert t.alter.rename_column("a", "b").notes != ()  # the first change is a commit
    t.upsert({"id": ["x"], "b": [1], "s": [None], "ts": [1], "p": ["p"]})
    assert values_of(t, "id", "b") == [("x", 1)]


def test_a_new_column_goes_in_front_of_partition_columns(t: Table) -> None:
    t.alter.add_column("n", "int")
    t.alter.add_column("o", "int", after="p")
    t.alter.add_column("q", "int")
    assert t.schema.names == ["id", "a", "b", "s", "ts", "n", "p", "o", "q"]


def test_several_changes_are_one_commit_and_none_is_none(t: Table) -> None:
    before = len(t.timeline)
    result = t.alter.change_type("a", "int")
    assert (result.instant, result.changes, str(result).splitlines()[0]) == (None, (), "alter: nothing to do")
    result = t.alter.run([RenameColumn("b", "c"), AddColumn("b", pa.int32()), RenameColumn("c", "d")])
    assert len(t.timeline) == before + 1
    assert len(result.changes) == 3
    assert values_of(t, "id", "b", "d")[1] == ("k2", None, "b2")
    assert t.history(1)["operation"].to_pylist() == ["alter_schema"]


def test_names_in_statistics_are_not_used_again(t: Table) -> None:
    t.index.build("column_stats")
    t.alter.rename_column("b", "c")
    assert values_of(t, "id", where="c = 'b2'") == [("k2",)]
    with pytest.raises(SchemaMismatchError, match="another column had this name"):
        t.alter.rename_column("a", "b")
    t.index.drop("column_stats")
    t.alter.rename_column("a", "b")
    assert values_of(t, "id", where="b = 2") == [("k2",)]


@pytest.mark.parametrize("t", ["merge_on_read"], indirect=True)
def test_statistics_that_are_built_later_leave_out_no_row(t: Table) -> None:
    t.alter.change_type("a", "string")
    t.alter.rename_column("b", "c")
    t.index.build("column_stats")
    assert values_of(t, "id", where="a = '2'") == values_of(t, "id", where="c = 'b2'") == [("k2",)]


def test_a_rollback_takes_the_change_back(t: Table) -> None:
    t.alter.rename_column("b", "c")
    instant = t.alter.rename_column("c", "d").instant
    assert instant is not None
    t.rollback(instant)
    assert values_of(t, "id", "c")[1] == ("k2", "b2")
    t.alter.add_column("d", "int")
    assert values_of(t, "id", "c", "d")[1] == ("k2", "b2", None)


@BOTH
def test_a_restore_takes_the_change_back(t: Table) -> None:
    saved = t.savepoint().instant
    t.alter.rename_column("b", "c")
    t.restore(str(saved))
    assert values_of(t, "id", "b")[1] == ("k2", "b2")
    t.upsert(_row(1, 5, "again"))
    t.alter.rename_column("b", "d")
    assert values_of(t, "d") == [("again",), ("b2",)]


def test_a_write_that_runs_meanwhile_conflicts(t: Table) -> None:
    with once_at(Step.LOCATED, lambda: t.alter.rename_column("b", "c")), pytest.raises(CommitConflictError):
        hoodie.open(t.path, spark=False).upsert(_row(1, 5))
    assert values_of(t, "id", "c")[0] == ("k1", "b1u")


def test_a_write_that_began_later_and_ended_first_delays_the_change(t: Table) -> None:
    other = hoodie.open(t.path, spark=False)
    with once_at(Step.LOCATED, lambda: other.upsert(_row(3))):
        result = t.alter.rename_column("b", "c")
    assert result.notes[0].startswith("retried once")
    assert values_of(t, "c") == [("b1u",), ("b2",), ("b3",)]


REFUSED: list[tuple[Callable[[Table], Any], type[HoodieError], str]] = [
    (lambda t: t.alter.add_column("n", "int", first=True, after="a"), InvalidConfigError, "found both"),
    (lambda t: t.alter.move_column("a"), InvalidConfigError, "expected after="),
    (lambda t: t.alter.add_column("n", "int, m int"), InvalidConfigError, "a type of Spark SQL"),
    (lambda t: t.alter.add_column("n", int), InvalidConfigError, "pyarrow DataType"),
    (lambda t: t.alter.add_column("n-1", "int"), SchemaMismatchError, "Avro"),
]


def test_what_is_refused(t: Table) -> None:
    """Wrong arguments, changes of the columns of keys, partitions and ordering, and what columns with ids exclude."""
    for call, error, match in REFUSED:
        with untouched(t, match, error):
            call(t)
    for name in ("id", "ts", "p"):
        for method, more in (("drop_column", ()), ("rename_column", ("new",)), ("change_type", ("string",))):
            with untouched(t, rf"'{name}' of .* is part of the", UnsupportedError):
                getattr(t.alter, method)(name, *more)
    other = Table(copy_of(t.view().store))
    other.alter.add_column("local", "timestamp_ntz")
    with untouched(other, "cannot read the ids of a table", UnsupportedError):
        other.alter.rename_column("b", "c")
    t.alter.rename_column("b", "c")
    with untouched(t, r"the data changes 'b'.*t\.alter", UnsupportedError):
        t.upsert(_row(1, 5).append_column("c", pa.array(["c"])))
