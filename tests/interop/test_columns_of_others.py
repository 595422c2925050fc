"""Tables whose files do not have the table's columns as they are now: the JVM makes them, we read the same rows.

SQL with `hoodie.schema.on.read.enable` renames, drops, adds, moves and widens columns without rewriting files. With
`hoodie.datasource.write.drop.partition.columns` files lack the partition columns. With
`hoodie.populate.meta.fields=false` they lack the record keys.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MissingFileError, UnsupportedError
from tests.interop.judges import HIVE, QUICK_OPTIONS, Jvm, assert_read_alike
from tests.support.rows import META_COLUMNS, assert_same_rows

_SQL_CONFS = {
    **QUICK_OPTIONS,
    "hoodie.schema.on.read.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    # The JVM's vectorised reader refuses structs whose fields changed.
    "spark.sql.parquet.enableVectorizedReader": "false",
}
_CREATE = """create table {name} (
    id string, a int, b string, s struct<x:int,y:string>, m map<string,struct<u:int,w:int>>,
    l array<struct<v:int,w:int>>, ts long, p string
) using hudi tblproperties (type='{kind}', primaryKey='id', preCombineField='ts') partitioned by (p)
location '{path}'"""
_INSERT = """insert into {name} select 'k{n}', {n}, 'b{n}', named_struct('x', {n}, 'y', 'y{n}'),
    map('q', named_struct('u', {n}, 'w', 0)), array(named_struct('v', {n}, 'w', 0)), 1L, 'p{n}'"""
_INSERT_AFTER = """insert into {name} (id, c, t, m, l, ts, b, a, p) select 'k3', 'c3', named_struct('x', 3L, 'z', 'z3'),
    map('q', named_struct('uu', 3, 'w', 0)), array(named_struct('vv', 3, 'w', 0)), 1L, 'new b', 33, 'p1'"""
_CHANGES = (
    "rename column b to c",
    "rename column s.y to z",
    "rename column s to t",
    "rename column m.value.u to uu",
    "rename column l.element.v to vv",
    "drop column a",
    # The names of a renamed and of a dropped column: other columns than those of before.
    "add columns (b string, a int)",
    "alter column t.x type bigint",
    "alter column c after id",
)


TABLE_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}


@pytest.fixture
def sql(jvm: Jvm) -> Iterator[Jvm]:
    """The JVM, whose SQL gives columns ids."""
    with jvm.configured(_SQL_CONFS):
        yield jvm


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_are_read_by_their_ids(sql: Jvm, tmp_path: Path, kind: str) -> None:
    name, path = f"ids_{kind}", tmp_path / kind
    sql.sql(_CREATE.format(name=name, kind=kind, path=path))
    for number in (1, 2):
        sql.sql(_INSERT.format(name=name, n=number))
    # In the merge-on-read table, a log file from before the changes.
    sql.sql(f"update {name} set b = 'b1u', ts = 2 where id = 'k1'")
    for change in _CHANGES:
        sql.sql(f"alter table {name} {change}")
    assert_read_alike(sql, path)
    sql.sql(f"update {name} set c = 'c2u', ts = 5 where id = 'k2'")
    sql.sql(_INSERT_AFTER.format(name=name))
    assert_read_alike(sql, path)
    _check_other_reads(sql, path)
    completed = [instant.requested_time for instant in sql.timeline(path) if instant.is_completed]
    # After the second insert, after the first, fourth and seventh change.
    for number in (1, 3, 6, 9):
        assert_read_alike(sql, path, completed[number])


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_our_writes_keep_the_ids(sql: Jvm, tmp_path: Path, kind: str) -> None:
    name, path = f"written_{kind}", tmp_path / kind
    sql.sql(_CREATE.format(name=name, kind=kind, path=path))
    for number in (1, 2):
        sql.sql(_INSERT.format(name=name, n=number))
    for change in _CHANGES:
        sql.sql(f"alter table {name} {change}")
    table = hoodie.open(path, spark=False)
    rows = table.to_arrow(where="id = 'k2'")
    columns = [field for field in table.schema if field.name not in META_COLUMNS]
    changed = rows.select([field.name for field in columns]).to_pylist()[0] | {"c": "c2", "b": "b2", "ts": 5}
    table.upsert(pa.Table.from_pylist([changed, changed | {"id": "k3", "a": 3}], schema=pa.schema(columns)))
    assert_read_alike(sql, path)
    if kind == "mor":
        table.schedule_compaction(strategy=None)
        table.compact()
        assert_read_alike(sql, path)
    # The JVM goes on with the history that our commits kept.
    sql.sql(f"alter table {name} rename column c to cc")
    sql.sql(f"update {name} set cc = 'c1u', ts = 6 where id = 'k1'")
    assert_read_alike(sql, path)
    read = {row["id"]: (row["cc"], row["b"], row["t"]["z"]) for row in sql.read(path).to_pylist()}
    assert read == {"k1": ("c1u", None, "y1"), "k2": ("c2", "b2", "y2"), "k3": ("c2", "b2", "y2")}


_TYPES = {
    "int": ("string", "decimal(20,3)"),
    "bigint": ("double", "string", "decimal(25,3)"),
    "float": ("string", "decimal(20,6)"),
    "double": ("string", "decimal(30,10)"),
    "date": ("string",),
    "decimal(10,2)": ("string", "decimal(20,2)", "decimal(20,4)"),
    "string": ("date", "decimal(10,2)"),
}
_VALUES = {"int": (1, -2147483648), "bigint": (1, -(2**53) - 1), "float": (0.25, -3), "double": (0.1, 1e-7)} | {
    "date": ("2024-01-02", "1900-03-04"),
    "decimal(10,2)": (1.5, -0.07),
}
_TEXTS = {"date": ("2024-01-02", "2000-02-29"), "decimal(10,2)": ("12.345", "-3")}


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_types_that_sql_changed(sql: Jvm, tmp_path: Path, kind: str) -> None:
    name, path = f"types_{kind}", tmp_path / kind
    changes = [(f"c{n}", before, after) for n, (before, after) in enumerate(_pairs())]
    columns = ", ".join(f"{column} {before}" for column, before, _ in changes)
    sql.sql(
        f"create table {name} (id string, {columns}, ts long) using hudi "
        f"tblproperties (type='{kind}', primaryKey='id', preCombineField='ts') location '{path}'"
    )
    for row in (0, 1):
        values = [
            f"cast('{(_TEXTS[after] if before == 'string' else _VALUES[before])[row]}' as {before})"
            for _, before, after in changes
        ]
        sql.sql(f"insert into {name} select 'k{row}', {', '.join(values)}, 1L")
    sql.sql(f"insert into {name} select 'k2', {', '.join(['null'] * len(changes))}, 1L")
    sql.sql(f"update {name} set ts = 2 where id = 'k1'")
    for column, _, after in changes:
        sql.sql(f"alter table {name} alter column {column} type {after}")
    assert_read_alike(sql, path)


def _pairs() -> Iterator[tuple[str, str]]:
    for before, afters in _TYPES.items():
        yield from ((before, after) for after in afters)


def _check_other_reads(jvm: Jvm, path: Path) -> None:
    table = hoodie.open(path, spark=False)
    first, *_ = (instant for instant in jvm.timeline(path) if instant.is_completed)
    assert first.completion_time is not None
    changed = table.changes(since=first.completion_time)
    assert_same_rows(changed, jvm.read_incremental(path, first.completion_time))
    assert_same_rows(table.to_arrow(view="read_optimized"), jvm.read_optimized(path))
    chosen = table.to_arrow(columns=["id", "m"], where="c = 'b1u' and b is null and t.z = 'y1'")
    assert chosen.to_pylist() == [{"id": "k1", "m": [("q", {"uu": 1, "w": 0})]}]
    assert table.to_arrow(columns=["id"], where="b = 'b2'").num_rows == 0
    found = table.read_keys(["k2", "k3"])
    assert {row["id"]: (row["c"], row["b"]) for row in found.to_pylist()} == {
        "k2": ("c2u", None),
        "k3": ("c3", "new b"),
    }


_ROWS = pa.table(
    {
        "id": ["k1", "k2", "k3"],
        "v": pa.array([1, 2, 3], pa.int32()),
        "ts": pa.array([1, 1, 1], pa.int64()),
        "p": ["a", "b b", None],
        "n": pa.array([1, 2, 2], pa.int32()),
        "d": pa.array([datetime.date(2024, 1, 2)] * 3),
    }
)
_UPDATE = (
    _ROWS.slice(1, 1).set_column(1, "v", pa.array([20], pa.int32())).set_column(2, "ts", pa.array([2], pa.int64()))
)


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("hive_style", ["true", "false"])
@pytest.mark.parametrize("partition", ["p", "n,d"])
def test_partition_columns_of_the_path(jvm: Jvm, tmp_path: Path, partition: str, hive_style: str) -> None:
    path, fields = tmp_path / "t", partition.split(",")
    generator = "ComplexKeyGenerator" if len(fields) > 1 else "SimpleKeyGenerator"
    options = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": hive_style,
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
    }
    for rows in (_ROWS, _UPDATE):
        jvm.write(rows, path, table_name="t", key="id", partition=fields, ordering="ts", options=options)
        assert_read_alike(jvm, path)
    table = hoodie.open(path, spark=False)
    assert table.to_arrow(columns=[fields[0], "id"], where="id = 'k2'").to_pylist() == [
        {fields[0]: {"p": "b b", "n": "2"}[fields[0]], "id": "k2"}
    ]
    assert table.to_arrow(columns=fields, where=f"{fields[0]} = '{'2' if fields[0] == 'n' else 'a'}'").num_rows > 0
    # Both go on in turns; our data has the types of before.
    again = (
        _ROWS.slice(0, 1).set_column(1, "v", pa.array([10], pa.int32())).set_column(2, "ts", pa.array([3], pa.int64()))
    )
    new = _ROWS.slice(0, 1).set_column(0, "id", pa.array(["k7"]))
    assert table.upsert(again).updated == 1
    assert table.insert(new).inserted == 1
    assert table.delete(_ROWS.slice(2)).deleted == 1
    assert_read_alike(jvm, path)
    for rows, operation in ((new, "delete"), (_ROWS.slice(2), "upsert"), (again, "insert_overwrite")):
        jvm.write(
            rows, path, table_name="t", key="id", partition=fields, ordering="ts", operation=operation, options=options
        )
        assert_read_alike(jvm, path)
    table.bulk_insert(new)
    assert_read_alike(jvm, path)
    assert table.verify(full=True).ok


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("hive_style", ["true", "false"])
@pytest.mark.parametrize("partition", ["p", "n,d"])
def test_our_table_of_partition_columns_in_the_path(jvm: Jvm, tmp_path: Path, partition: str, hive_style: str) -> None:
    path, fields = tmp_path / "t", partition.split(",")
    options = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": hive_style,
    }
    table = hoodie.create(
        path, _ROWS.schema, record_key=["id", "ts"], partition_by=fields, properties=options, index="simple"
    )
    table.insert(_ROWS)
    assert_read_alike(jvm, path)
    for number, rows in enumerate((_UPDATE, _ROWS.slice(2))):
        jvm.write(rows, path, table_name="t", key=["id", "ts"], partition=fields, options=options)
        assert_read_alike(jvm, path)
        table.upsert(_ROWS.slice(number, 1))
        assert_read_alike(jvm, path)
    assert table.verify(full=True).ok


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_version", [6, 8, 9])
@pytest.mark.parametrize("key", ["id", "id,n"])
def test_merged_rows_without_stored_keys(jvm: Jvm, tmp_path: Path, key: str, table_version: int) -> None:
    path, fields = tmp_path / "t", key.split(",")
    generator = "ComplexKeyGenerator" if len(fields) > 1 else "SimpleKeyGenerator"
    options = {
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
    }

    def write(rows: pa.Table, operation: str) -> None:
        jvm.write(
            rows, path, table_name="t", key=fields, partition="d", ordering="ts", operation=operation,
            table_type="MERGE_ON_READ", table_version=table_version, options=options,
        )  # fmt: skip
        assert_read_alike(jvm, path)

    write(_ROWS, "bulk_insert")
    write(_UPDATE, "upsert")
    write(_ROWS.slice(2), "delete")
    rows = hoodie.open(path, spark=False).to_arrow(columns=["_hoodie_record_key", "v"], where="v > 1")
    assert rows.to_pylist() == [{"_hoodie_record_key": None, "v": 20}]
    if table_version == 9:
        _assert_refused(path, "merge-on-read tables without meta fields")


def _assert_refused(path: Path, reason: str) -> None:
    """A write is refused for this reason, without a trace."""
    table = hoodie.open(path, spark=False)
    before = sorted(path.rglob("*"))
    with pytest.raises(UnsupportedError, match=reason):
        table.upsert(table.to_arrow())
    assert sorted(path.rglob("*")) == before


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_version", [6, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("partition", ["p", ""])
def test_bootstrapped_tables(jvm: Jvm, tmp_path: Path, partition: str, kind: str, table_version: int) -> None:
    path, source = tmp_path / "t", tmp_path / "source"
    rows = _ROWS.slice(0, 2).select(["id", "v", "ts", "p"])
    writer = jvm.frame(rows).coalesce(1).write
    (writer.partitionBy("p") if partition else writer).parquet(str(source))
    generator = "SimpleKeyGenerator" if partition else "NonpartitionedKeyGenerator"
    options = {
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector": (
            "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
        ),
        **HIVE,
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
    }

    def write(data: pa.Table, operation: str) -> None:
        jvm.write(
            data, path, table_name="t", key="id", partition=partition, ordering="ts", operation=operation,
            table_type=TABLE_TYPES[kind], table_version=table_version, options=options,
        )  # fmt: skip
        assert_read_alike(jvm, path)

    write(rows.slice(0, 0), "bootstrap")
    write(_UPDATE.select(rows.column_names), "upsert")
    table = hoodie.open(path, spark=False)
    assert table.to_arrow(columns="p", where="v < 20 and p = 'a'").to_pylist() == [{"p": "a"}]
    assert_same_rows(table.to_arrow(view="read_optimized"), jvm.read_optimized(path))
    assert table.read_keys(["k1"])["v"].to_pylist() == [1]
    if kind == "cow" and not partition:
        # The only file group has an ordinary base file now.
        shutil.rmtree(source)
        assert_same_rows(table.to_arrow(), jvm.read(path))
        return
    (file,) = source.rglob("p=a/*.parquet") if partition else source.rglob("*.parquet")
    file.unlink()
    with pytest.raises(MissingFileError, match=file.name):
        table.to_arrow(where="v < 20")
