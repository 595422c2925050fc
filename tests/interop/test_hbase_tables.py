"""JVM Hudi 1.2.0 has no HBase index: it reads such tables, and refuses to write to them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.files.table_properties import update_table_config
from tests.interop.judges import HIVE, Jvm, create_trips
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
ROWS = pa.Table.from_pylist([{"id": "a", "ts": 1, "city": "sf"}, {"id": "b", "ts": 1, "city": "la"}], schema=SCHEMA)
HBASE = {"hoodie.index.type": "HBASE", "hoodie.index.hbase.table": "t", "hoodie.python.index.hbase.id": "0"}


def test_the_jvm_reads_such_a_table_and_does_not_write_to_it(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="simple", spark=False)
    table.upsert(ROWS)
    update_table_config(table.view().store, {**HBASE})
    assert_same_rows(jvm.read(path).select(SCHEMA.names), ROWS, key=["id"])
    with pytest.raises(Exception, match=r"No enum constant .*IndexType\.HBASE"):
        jvm_writes(jvm, path)
    with pytest.raises(Exception, match=r"Config conflict[^$]*hoodie\.index\.type:\s+GLOBAL_SIMPLE\s+HBASE"):
        jvm_writes(jvm, path, **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert len(table.view().timeline) == 1


def jvm_writes(jvm: Jvm, path: Path, **options: str) -> None:
    jvm.write_trips(ROWS.slice(0, 1), path, operation="upsert", options={**HIVE, **options})
