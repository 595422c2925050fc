"""Columns of tables of version 8 that `t.alter` changes: JVM Hudi 1.0.2 reads them, and changes them further."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import QUICK_OPTIONS, Jvm
from tests.support.rows import META_COLUMNS, assert_same_rows

RELEASES = ("1.0.2",)
_CONFS = {
    **QUICK_OPTIONS,
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    # The JVM's vectorised reader refuses structs whose fields changed.
    "spark.sql.parquet.enableVectorizedReader": "false",
}
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("a", pa.int32()),
        ("n", pa.decimal128(10, 2)),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("ts", pa.int64()),
    ]
)


@pytest.fixture
def evolving(older: Jvm) -> Iterator[Jvm]:
    """JVM Hudi 1.0.2 with schema evolution on read."""
    with older.configured(_CONFS):
        yield older


def _assert_same(older: Jvm, path: Path) -> None:
    expected = older.read(path)
    names = [name for name in expected.column_names if name not in META_COLUMNS]
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(names), expected.select(names))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_the_release_continues_after_each_change(evolving: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "t"
    t = hoodie.create(
        path, _SCHEMA, record_key="id", ordering="ts", type=table_type, index="simple", table_version=8, spark=False
    )
    rows = [{"id": f"k{n}", "a": n, "n": n, "s": {"x": n, "y": f"y{n}"}, "ts": 1} for n in range(3)]
    t.upsert(pa.Table.from_pylist(rows, _SCHEMA))
    t.upsert(pa.Table.from_pylist([rows[0] | {"a": 7, "ts": 2}], _SCHEMA))
    t.alter.add_column("c", "string")
    _assert_same(evolving, path)
    t.alter.rename_column("a", "b")
    _assert_same(evolving, path)
    t.alter.drop_column("s.x")
    t.alter.change_type("n", "decimal(12,4)")
    _assert_same(evolving, path)
    name = f"older_{table_type}"
    evolving.sql(f"create table {name} using hudi location '{path}'")
    evolving.sql(f"update {name} set b = 8, ts = 5 where id = 'k1'")
    _assert_same(evolving, path)
    evolving.sql(f"alter table {name} rename column b to d")
    t.alter.rename_column("s.y", "z")
    _assert_same(evolving, path)
    assert {row["id"]: row["d"] for row in t.to_arrow(["id", "d"]).to_pylist()} == {"k0": 7, "k1": 8, "k2": 2}
