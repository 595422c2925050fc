"""A table of the JVM gets a record index of ours; the JVM goes on with it, before and after it is built anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.files.table_properties import update_table_config
from hoodie.index.record.state import record_index
from hoodie.table import Table
from hoodie.timeline import Action
from tests.interop.judges import HIVE, Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows
from tests.support.steps import once_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
BY_INDEX = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
Model = dict[str, tuple[int, str]]


def _rows(model: Model) -> pa.Table:
    rows = [{"id": key, "ts": ts, "city": city} for key, (ts, city) in model.items()]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _jvm(jvm: Jvm, path: Path, rows: Model, operation: str = "upsert") -> None:
    jvm.write_trips(_rows(rows), path, operation=operation, options=HIVE)


def _check(jvm: Jvm, table: Table, path: Path, model: Model, buckets: int) -> None:
    """Two readers see the rows; the index is there, with its buckets, and is the data; the JVM finds keys by it."""
    expected = _rows(model)
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), expected, key="id")
    state = record_index(table.view())
    assert state is not None
    assert len(state.file_groups) == buckets
    report = table.index.verify()
    assert report.ok, str(report)
    assert report.checked["entries"] == len(model)
    wanted = [key for key in ("k007", "k013", "é😀", "gone") if key in model]
    frame = jvm.spark.read.format("hudi").options(**BY_INDEX).load(str(path))
    found = {row["id"] for row in frame.where(f"id in ({', '.join(map(repr, (*wanted, 'gone')))})").collect()}
    assert found == set(wanted)


def test_the_jvm_goes_on_with_an_index_that_we_built(jvm: Jvm, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    model: Model = {f"k{n:03}": (1, ("sf", "nyc")[n % 2]) for n in range(40)}
    model |= {"é😀": (1, "sf"), "é\ufffd": (1, "nyc")}
    _jvm(jvm, path, model)
    table = hoodie.open(path, spark=spark)
    # All work goes to Spark.
    update_table_config(table.view().store, {"hoodie.python.local.bytes.max": "0"})
    _die_before_the_switch(table, 10)
    changes: Model = {"k007": (2, "nyc"), "k013": (2, "nyc"), "é😀": (2, "sf"), "new1": (1, "la")}
    model |= changes
    _jvm(jvm, path, changes)
    assert table.index.build("record").counts["entries"] == 43
    _check(jvm, table, path, model, 10)

    assert table.index.build("record", buckets=3).counts["buckets"] == 3
    _jvm(jvm, path, {"k001": (3, "sf")}, operation="delete")
    del model["k001"]
    ours: Model = {"k013": (4, "sf"), "new2": (4, "nyc")}
    model |= ours
    table.upsert(_rows(ours))
    _check(jvm, table, path, model, 3)

    _die_before_the_switch(table, 5)
    changes = {"k001": (5, "la"), "new2": (6, "sf"), "k020": (6, "la")}
    model |= changes
    _jvm(jvm, path, changes)
    _check(jvm, table, path, model, 3)
    assert table.index.build("record", buckets=5).counts["buckets"] == 5
    changes = {"k001": (7, "sf"), "new4": (7, "la")}
    model |= changes
    _jvm(jvm, path, changes)
    _check(jvm, table, path, model, 5)
    assert_same_rows(jvm.read(path, SCHEMA.names), _rows(model), key="id")


def _die_before_the_switch(table: Table, buckets: int) -> None:
    """A build that wrote all its files, and is pending: neither writers nor readers of the JVM may mind."""

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), once_at(Step.CHECKED, die):
        table.index.build("record", buckets=buckets)
    assert [instant.action for instant in table.timeline.pending()] == [Action.INDEXING]
