"""Tables whose files do not have all columns of their rows: the JVM and we write them in turns.

Without meta fields, files lack the record keys. The skeleton files of a bootstrapped table have nothing else. After
each write both see the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.table import Table
from tests.interop.judges import HIVE, Jvm
from tests.support.rows import META_COLUMNS, assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int32()), ("ts", pa.int64()), ("p", pa.string())])
TABLE_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
BARE = {"hoodie.populate.meta.fields": "false"}


@dataclass
class Turns:
    """One table of both, and the values of `v` by key that it has. A key begins with its partition."""

    jvm: Jvm
    path: Path
    kind: str
    version: int
    options: Mapping[str, str]
    expected: dict[str, int] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table, opened anew."""
        return hoodie.open(self.path, spark=False)

    def theirs(self, operation: str, rows: pa.Table, **changes: int | None) -> None:
        """A write of the JVM."""
        self.jvm.write(
            rows, self.path, table_name="t", key="id", partition="p", ordering="ts", operation=operation,
            table_type=TABLE_TYPES[self.kind], table_version=self.version,
            options={"hoodie.compact.inline": "false", **self.options},
        )  # fmt: skip
        self.check(**changes)

    def ours(self, operation: str, rows: pa.Table, **changes: int | None) -> None:
        """A write of ours."""
        getattr(self.table, operation)(rows)
        self.check(**changes)

    def check(self, **changes: int | None) -> None:
        """Both see the rows of before with these changes; None for a deleted one."""
        rows = {**self.expected, **changes}
        self.expected = {key: v for key, v in rows.items() if v is not None}
        theirs, ours = self.jvm.read(self.path), self.table.to_arrow()
        assert dict(zip(theirs["id"].to_pylist(), theirs["v"].to_pylist(), strict=True)) == self.expected
        names = [name for name in theirs.column_names if name not in META_COLUMNS]
        assert_same_rows(ours.select(names), theirs.select(names))


def row(key: str, v: int, ts: int) -> pa.Table:
    """A row of the partition that the key begins with."""
    return pa.Table.from_pylist([{"id": key, "v": v, "ts": ts, "p": key[0]}], schema=SCHEMA)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
@pytest.mark.parametrize("index", ["simple", "global_simple"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_tables_without_meta_fields(jvm: Jvm, tmp_path: Path, version: int, index: str, is_ours: bool) -> None:
    turns = Turns(jvm, tmp_path / "t", "cow", version, {**BARE, "hoodie.index.type": index.upper()})
    first = pa.concat_tables([row("a1", 1, 1), row("b1", 2, 1)])
    if is_ours:
        properties = {**BARE, "hoodie.datasource.write.hive_style_partitioning": "false"}
        wanted: dict[str, Any] = {"index": index, "table_version": version, "properties": properties}
        hoodie.create(turns.path, SCHEMA, record_key="id", partition_by="p", ordering="ts", **wanted)
        turns.ours("bulk_insert", first, a1=1, b1=2)
    else:
        turns.theirs("bulk_insert", first, a1=1, b1=2)
    turns.ours("upsert", row("a1", 10, 2), a1=10)
    turns.theirs("upsert", row("a2", 4, 1), a2=4)
    turns.theirs("upsert", row("a1", 11, 3), a1=11)
    turns.ours("delete", row("a2", 4, 1), a2=None)
    turns.ours("insert", row("a3", 5, 1), a3=5)
    turns.theirs("delete", row("a3", 5, 1), a3=None)
    turns.ours("insert_overwrite", row("b1", 20, 1), b1=20)
    turns.ours("insert_overwrite_table", row("c1", 9, 1), a1=None, b1=None, c1=9)
    turns.theirs("upsert", row("c1", 90, 2), c1=90)
    assert turns.table.verify(full=True).ok
    assert turns.table.view().config.version.value == version


@pytest.mark.matrix(keep=4)
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
def test_bootstrapped_tables(jvm: Jvm, tmp_path: Path, is_ours: bool, kind: str, version: int) -> None:
    """Four skeletons, updated and deleted from by both."""
    source = tmp_path / "source"
    first = pa.concat_tables([row(f"{p}{n}", n, 1) for p in "abcd" for n in range(2)])
    jvm.frame(first).coalesce(1).write.partitionBy("p").parquet(str(source))
    options = {
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.mode.selector": (
            "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector"
        ),
        **HIVE,
    }
    turns = Turns(jvm, tmp_path / "t", kind, version, options)
    values = {f"{p}{n}": n for p in "abcd" for n in range(2)}
    if is_ours:
        wanted: dict[str, Any] = {"type": kind, "mode": "metadata_only", "table_version": version}
        hoodie.adopt(source, turns.path, record_key="id", ordering="ts", dry_run=False, **wanted)
        turns.check(**values)
    else:
        turns.theirs("bootstrap", first.slice(0, 0), **values)
    turns.ours("upsert", row("a0", 10, 2), a0=10)
    turns.theirs("upsert", row("b0", 20, 2), b0=20)
    turns.theirs("upsert", row("a1", 11, 2), a1=11)
    turns.ours("delete", row("b1", 1, 1), b1=None)
    turns.ours("delete", row("c0", 1, 1), c0=None)
    turns.ours("insert", row("e0", 5, 1), e0=5)
    if kind == "mor":
        _compact(turns, is_ours=is_ours)
    turns.theirs("upsert", row("a0", 100, 3), a0=100)
    assert turns.table.verify(full=True).ok
    assert turns.table.view().config.version.value == version


def _compact(turns: Turns, *, is_ours: bool) -> None:
    """Compact the logs beside skeletons by our plan, then those of another skeleton by the JVM's.

    In version 6 the JVM's procedure would change the version of the metadata table alone.
    """
    assert turns.table.schedule_compaction() is not None
    if is_ours and turns.version > 6:
        turns.jvm.compact(turns.path, "run")
    else:
        turns.table.compact()
    turns.check()
    turns.ours("upsert", row("d0", 40, 2), d0=40)
    if turns.version > 6:
        turns.jvm.compact(turns.path)
        turns.check()
