"""Required fields inside of nested columns, with rows that have no values: null structs, and keys to delete."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.storage import MemoryStore
from tests.support.tables import TYPES


def _nested(*, required: bool) -> dict[str, pa.DataType]:
    """Each nesting of a required field, item and value; without `required` they allow null."""
    inner = pa.struct([("x", pa.int32()), pa.field("y", pa.string(), not required)])
    item, value = pa.field("element", inner, not required), pa.field("value", inner, not required)
    return {
        "s": inner,
        "ss": pa.struct([pa.field("in", inner, not required), pa.field("n", pa.decimal128(9, 2), not required)]),
        "ls": pa.list_(inner),
        "li": pa.list_(pa.field("element", pa.int32(), not required)),
        "sl": pa.struct([pa.field("l", pa.list_(item), not required)]),
        "m": pa.map_(pa.string(), value),
    }


KEYS = {"id": pa.string(), "ts": pa.int64(), "city": pa.string()}
SCHEMA, DECLARED = (pa.schema(list({**KEYS, **_nested(required=required)}.items())) for required in (True, False))
INDEXES = ("simple", "global_simple", "bloom", "global_bloom", "record", "bucket")
MIXING = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
Rows = dict[str, dict[str, Any]]


def _rows(*numbers: int, ts: int = 1, city: str = "sf") -> Rows:
    """One row for each number; rows of even numbers have no nested values."""
    inner = {"x": None, "y": "a"}
    full = {"s": inner, "ss": {"in": inner, "n": ts}, "ls": [inner, None], "li": [ts], "sl": {"l": [inner]}}
    nested = {0: dict.fromkeys(_nested(required=True)), 1: {**full, "m": [("k", inner)]}}
    return {f"k{n}": {"id": f"k{n}", "ts": ts, "city": city, **nested[n % 2]} for n in numbers}


class Model:
    """A table and the dict of rows that it must have."""

    def __init__(self, **options: Any) -> None:
        named = {"record_key": "id", "ordering": "ts", "partition_by": "city", **options}
        self.table = hoodie.create(MemoryStore().uri(""), SCHEMA, spark=False, **named)
        self.rows: Rows = {}

    def put(self, rows: Rows, operation: str = "upsert", schema: pa.Schema = SCHEMA) -> None:
        data = pa.Table.from_pylist([*rows.values()], schema)
        getattr(self.table, operation)(data if schema is SCHEMA else data.to_reader())
        self.rows |= rows
        self.check()

    def set(self, column: str, value: str, key: str) -> None:
        self.table.update({column: value}, f"id = '{key}'")
        self.rows[key] = {**self.rows[key], column: None}
        self.check()

    def check(self) -> None:
        found = self.table.to_arrow(SCHEMA.names)
        pq.write_table(found, io.BytesIO())  # It refuses null in a required field, also of a null struct.
        model = pa.Table.from_pylist([self.rows[key] for key in sorted(self.rows)], SCHEMA)
        assert found.sort_by("id").to_pylist() == model.to_pylist()
        assert self.table.schema.field("sl").type == SCHEMA.field("sl").type


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("table_type", TYPES)
def test_every_operation_keeps_the_rows(table_type: str, index: str) -> None:
    model = Model(type=table_type, index=index)
    model.put(_rows(*range(9)))
    model.put(_rows(1, 2, ts=2))
    if index in ("global_simple", "global_bloom", "record"):
        model.put(_rows(3, 4, ts=2, city="la"))
    model.table.delete(pa.table({"id": ["k5", "k6"], "city": ["sf", "sf"]}))
    model.table.delete_where("id = 'k7'")
    model.rows = {key: row for key, row in model.rows.items() if key not in ("k5", "k6", "k7")}
    model.check()
    model.set("s", "NULL", "k1")
    model.set("sl", "CASE WHEN ts < 0 THEN sl END", "k1")
    names = {"t": model.table, "new": pa.Table.from_pylist([*_rows(1, 2, 10, 11, ts=3).values()], SCHEMA)}
    hoodie.sql(
        None,
        "MERGE INTO t USING new ON t.id = new.id AND t.city = new.city WHEN MATCHED AND new.id = 'k1' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        tables=names,
    )
    model.rows = {**model.rows, **_rows(2, 10, 11, ts=3)}
    del model.rows["k1"]
    if table_type == "merge_on_read" and model.table.schedule_compaction():
        model.table.compact()
        model.check()
    if index != "bucket":
        model.table.cluster()
        model.check()
    model.put(_rows(2, 11, ts=4))


@pytest.mark.parametrize("index", ["simple", "record", "bucket"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("table_type", TYPES)
def test_streams_that_declare_the_fields_nullable(table_type: str, operation: str, index: str) -> None:
    """Their rows are staged before it is known whether a field has a null; change data has the types of the table."""
    model = Model(type=table_type, index=index, properties={"hoodie.table.cdc.enabled": "true"})
    model.put(_rows(*range(4)), schema=DECLARED)
    new = range(2 if operation == "upsert" else 4, 8)
    model.put(_rows(*new, ts=2), operation, DECLARED)
    model.table.delete_where("id = 'k1'")
    pq.write_table(model.table.changes(mode="cdc"), io.BytesIO())


def test_a_stream_is_mixed_with_stored_rows() -> None:
    model = Model(ordering=None, index="simple", properties={"hoodie.datasource.write.payload.class": MIXING})
    model.put(_rows(1, 2), schema=DECLARED)
    empty, full = {**_rows(2, ts=2)["k2"], "id": "k1"}, {**_rows(1, ts=2)["k1"], "id": "k2"}
    model.table.upsert(pa.Table.from_pylist([empty, full], DECLARED).to_reader())
    model.rows = {"k1": {**_rows(1)["k1"], "ts": 2}, "k2": full}
    model.check()


def test_deletes_of_a_stream_may_lack_required_values() -> None:
    deleted = pa.field("_hoodie_is_deleted", pa.bool_())
    table = hoodie.create(MemoryStore().uri(""), SCHEMA.append(deleted), spark=False, record_key="id", index="simple")
    gone = {**_rows(1)["k1"], "s": {"x": 1, "y": None}, "ls": [{"x": 1, "y": None}], "_hoodie_is_deleted": True}
    table.upsert(pa.Table.from_pylist([*_rows(1, 3).values()], SCHEMA.append(deleted)))
    table.upsert(pa.Table.from_pylist([gone, _rows(2)["k2"]], DECLARED.append(deleted)).to_reader())
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == ["k2", "k3"]
    assert table.schema.field("s").type == SCHEMA.field("s").type


@pytest.mark.parametrize("table_type", TYPES)
def test_a_merge_function_returns_null_structs(table_type: str) -> None:
    def without(older: pa.Table, newer: pa.Table) -> pa.Table:
        place = newer.schema.get_field_index("ss")
        return newer.set_column(place, "ss", pa.nulls(newer.num_rows, newer.schema.field("ss").type))

    model = Model(type=table_type, ordering=None, index="simple", merge_mode=without)
    model.put(_rows(1, 2))
    for ts in (2, 3):
        model.table.upsert(pa.Table.from_pylist([*_rows(1, ts=ts).values()], SCHEMA))
        model.rows["k1"] = {**_rows(1, ts=ts)["k1"], "ss": None}
        model.check()


def test_deletes_of_automatic_keys() -> None:
    model = Model(record_key=None, ordering=None)
    model.put(_rows(1, 2, 3), "insert")
    model.table.delete_where("id = 'k1'")
    del model.rows["k1"]
    model.set("s", "NULL", "k3")
