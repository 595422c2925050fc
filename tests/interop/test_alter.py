"""Columns that `t.alter` changes: the JVM reads and continues the table after each change, and we after its changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.schema.alterations import AddColumn, RenameColumn
from hoodie.records.sql.types import type_named
from hoodie.table import Table
from hoodie.table.alter import TableAlter
from hoodie.write.result import AlterResult
from tests.interop.judges import QUICK_OPTIONS, Jvm, assert_read_alike, read_with_hudi_rs

_QUICK = {**QUICK_OPTIONS, "hoodie.clean.automatic": "false"}
_EVOLUTION = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    # The JVM's vectorised reader refuses structs whose fields changed.
    "spark.sql.parquet.enableVectorizedReader": "false",
}
_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("a", pa.int32()),
        pa.field("b", pa.string()),
        pa.field("n", pa.decimal128(10, 2)),
        pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        pa.field("m", pa.map_(pa.string(), pa.struct([("u", pa.int32()), ("w", pa.int32())]))),
        pa.field("l", pa.list_(pa.struct([("v", pa.int32()), ("w", pa.int32())]))),
        pa.field("ts", pa.int64()),
        pa.field("p", pa.string()),
    ]
)


def _row(number: int, ts: int = 1) -> dict[str, Any]:
    below = {"u": number, "w": 0}
    return {"id": f"k{number}", "a": number, "b": f"b{number}", "n": number, "s": {"x": number, "y": f"y{number}"}} | {
        "m": [("q", below)],
        "l": [{"v": number, "w": 0}],
        "ts": ts,
        "p": f"p{number % 2}",
    }


def _table(path: Path, table_type: str) -> Table:
    t = hoodie.create(
        path, _SCHEMA, record_key="id", partition_by="p", ordering="ts", type=table_type, index="simple",
        properties={"hoodie.clean.automatic": "false"}, spark=False,
    )  # fmt: skip
    for rows in ([_row(0), _row(1)], [_row(2)], [_row(0, 2) | {"b": "b0u"}]):
        t.upsert(pa.Table.from_pylist(rows, _SCHEMA))
    return t


@pytest.fixture
def quick(jvm: Jvm) -> Iterator[Jvm]:
    """The JVM as it is by default."""
    with jvm.configured(_QUICK) as made:
        yield made


@pytest.fixture
def evolving(jvm: Jvm) -> Iterator[Jvm]:
    """The JVM with schema evolution on read."""
    with jvm.configured({**_QUICK, **_EVOLUTION}) as made:
        yield made


_CHANGES = (
    ("add_column", "c", "int"),
    ("rename_column", "b", "d"),
    ("rename_column", "s.y", "z"),
    ("rename_column", "s", "t"),
    ("rename_column", "m.value.u", "uu"),
    ("rename_column", "l.element.v", "vv"),
    ("drop_column", "a"),
    ("change_type", "n", "decimal(12,4)"),
    ("change_type", "t.x", "bigint"),
    ("add_column", "t.more", "struct<o: int, d: decimal(5,1)>"),
    ("change_type", "c", "string"),
)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_the_jvm_continues_after_each_change(evolving: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "t"
    t = _table(path, table_type)
    instants: list[str | None] = [t.timeline.completed().instants[-1].requested_time]
    for name, *arguments in _CHANGES:
        result = getattr(t.alter, name)(*arguments)
        instants.append(result.instant)
        assert_read_alike(evolving, path)
    for instant in instants:
        assert_read_alike(evolving, path, instant)
    # names of a renamed and of a dropped column
    t.alter.add_column("b", "string", comment="new", after="id")
    t.alter.add_column("a", "int")
    assert_read_alike(evolving, path)
    name = f"altered_{table_type}"
    evolving.sql(f"create table {name} using hudi location '{path}'")
    evolving.sql(f"update {name} set d = 'by jvm', ts = 7, c = '5' where id = 'k1'")
    assert_read_alike(evolving, path)
    rows = [row | {"d": "by us", "ts": 8} for row in t.to_arrow(where="id = 'k2'").select(t.schema.names).to_pylist()]
    t.upsert(pa.Table.from_pylist(rows, t.schema))
    assert_read_alike(evolving, path)
    evolving.sql(f"alter table {name} rename column d to e")
    assert_read_alike(evolving, path)
    t.alter.drop_column("c")
    assert_read_alike(evolving, path)
    if table_type == "mor":
        t.schedule_compaction(strategy=None)
        t.compact()
        assert_read_alike(evolving, path)
    t.cluster("ts")
    assert_read_alike(evolving, path)
    assert t.verify(full=True).ok
    for instant in instants:
        assert_read_alike(evolving, path, instant)


def test_ids_are_those_that_the_jvm_gives(evolving: Jvm, tmp_path: Path) -> None:
    """The same changes by SQL and by us leave the same columns, with the same ids, types and comments."""
    texts = []
    for name in ("jvm", "ours"):
        evolving.sql(_CREATE.format(name=f"ids_{name}", path=tmp_path / name))
        evolving.sql(_INSERT.format(name=f"ids_{name}"))
    t = hoodie.open(tmp_path / "ours", spark=False)
    for statement, ours in _PAIRS:
        evolving.sql(f"alter table ids_jvm {statement}")
        ours(t.alter)
        views = [hoodie.open(tmp_path / name, spark=False).view() for name in ("jvm", "ours")]
        texts = [view.commit_metadata(view.completed_writes()[-1]).extra_metadata for view in views]
        records = [_record(text["latest_schema"]) for text in texts]
        for record in records:
            del record["version_id"]
        assert records[0] == records[1], statement
        assert texts[0]["schema"] == texts[1]["schema"].replace("ids_ours", "ids_jvm"), statement
    first = [_oldest(tmp_path / name) for name in ("jvm", "ours")]
    assert first[0] == first[1]


_CREATE = """create table {name} (id string, i int comment 'number', f float, bi binary, da date, tm timestamp,
    de decimal(10,2), st struct<x:int,y:struct<u:int>>, m map<string,struct<u:int,w:int>>, l array<struct<v:int,w:int>>,
    mm map<string,array<decimal(5,1)>>, ts long not null) using hudi
    tblproperties (type='cow', primaryKey='id', preCombineField='ts') location '{path}'"""
_INSERT = """insert into {name} (id, i, ts) values ('k1', 1, 1)"""
_PAIRS: tuple[tuple[str, Callable[[TableAlter], object]], ...] = (
    (
        "add columns (c1 int comment 'one', c2 struct<x:int,y:decimal(4,2)>, c3 map<string,array<string>>)",
        lambda alter: alter.run(
            [
                RenameColumn("i", "i2"),
                RenameColumn("i2", "i"),
                AddColumn("c1", pa.int32(), "one"),
                AddColumn("c2", type_named("struct<x:int,y:decimal(4,2)>")),
                AddColumn("c3", type_named("map<string,array<string>>")),
            ]
        ),
    ),
    ("add columns (st.y.w string after u)", lambda alter: alter.add_column("st.y.w", "string", after="u")),
    ("add columns (st.z int first)", lambda alter: alter.add_column("st.z", "int", first=True)),
    ("add columns (l.element.n timestamp)", lambda alter: alter.add_column("l.element.n", "timestamp")),
    ("add columns (cb date after id)", lambda alter: alter.add_column("cb", "date", after="id")),
    ("rename column m.value.u to uu", lambda alter: alter.rename_column("m.value.u", "uu")),
    ("rename column st to su", lambda alter: alter.rename_column("st", "su")),
    ("drop column su.x", lambda alter: alter.drop_column("su.x")),
    ("drop column c3", lambda alter: alter.drop_column("c3")),
    ("add columns (c3 int)", lambda alter: alter.add_column("c3", "int")),
    ("alter column de type decimal(12,2)", lambda alter: alter.change_type("de", "decimal(12,2)")),
    ("alter column l.element.v type string", lambda alter: alter.change_type("l.element.v", "string")),
    ("alter column i comment 'changed'", lambda alter: alter.set_comment("i", "changed")),
    ("alter column i after bi", lambda alter: alter.move_column("i", after="bi")),
    ("alter column ts drop not null", lambda alter: alter.allow_null("ts")),
)


def _oldest(path: Path) -> object:
    (file, *_) = sorted((path / ".hoodie/.schema").glob("*.schemacommit"), reverse=True)
    return _record(file.read_text())["schemas"][-1]


def _record(text: str) -> Any:
    """Parse ids. JVM Hudi 1.2 writes texts of decimals that older releases cannot parse; ours are the older ones."""
    return json.loads(re.sub(r"decimal_fixed(\(\d+, \d+\))\[\d+\]", r"decimal\1", text))


def _assert_read_by_hudi_rs(path: Path) -> None:
    """hudi-rs reads a new column; it refuses log blocks whose columns have another type or other fields."""
    rows = read_with_hudi_rs(path)
    assert sorted(rows["id"].to_pylist()) == ["k0", "k1", "k2"]
    assert rows["c"].to_pylist() == [None] * 3


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_columns_stay_without_ids_as_long_as_names_do(quick: Jvm, tmp_path: Path, table_type: str) -> None:
    """The JVM needs no setting, and hudi-rs reads the new columns too."""
    path = tmp_path / "t"
    t = _table(path, table_type)
    calls: tuple[Callable[[], AlterResult], ...] = (
        lambda: t.alter.add_column("c", "int", comment="new", after="id"),
        lambda: t.alter.add_column("s.z", "array<string>", first=True),
        lambda: t.alter.add_column("l.element.n", "date"),
        lambda: t.alter.move_column("b", first=True),
    )
    for number, call in enumerate(calls):
        assert call().notes == ()
        assert_read_alike(quick, path)
        if number == 0:
            _assert_read_by_hudi_rs(path)
    for column, wider in (("a", "bigint"), ("n", "decimal(12,2)")):
        assert t.alter.change_type(column, wider).notes == ()
        assert_read_alike(quick, path)
    name = f"added_{table_type}"
    quick.sql(f"create table {name} using hudi location '{path}'")
    comments = {row["col_name"]: row["comment"] for row in quick.sql(f"describe {name}").to_pylist()}
    assert comments["c"] == "new"
    quick.sql(f"update {name} set c = 5, ts = 5 where id = 'k1'")
    assert_read_alike(quick, path)
    quick.sql(f"alter table {name} add columns (more int)")
    rows = [row | {"more": 7, "ts": 8} for row in t.to_arrow(where="id = 'k2'").select(t.schema.names).to_pylist()]
    t.upsert(pa.Table.from_pylist(rows, t.schema))
    assert t.schema.field("c").metadata == {b"doc": b"new"}
    assert_read_alike(quick, path)
