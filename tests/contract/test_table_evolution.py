"""Old files under a newer schema: the same rows on every engine, and the same refusals."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, table_of, trips
from tests.support.rows import assert_same_rows

OLD = pa.schema([("id", pa.string()), ("n", pa.int32()), ("x", pa.float32()), ("city", pa.string())])
NEW = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("city", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)
OLD_ROWS = table_of(OLD, ("a", 1, 0.5, "sf"), ("b", -7, 1.6, "nyc"), ("c", None, None, "nyc"))


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_old_files_are_read_with_the_new_schema(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.create(OLD, partition_by="city", properties=properties)
    table.upsert(lane.data(OLD_ROWS))
    table.upsert(lane.data(table_of(NEW, ("a", 1 << 40, 0.1, "sf", ["new"]), ("d", 2, 0.1, "la", None))))
    expected = table_of(
        NEW,
        ("a", 1 << 40, 0.1, "sf", ["new"]),
        ("b", -7, 1.6, "nyc", None),
        ("c", None, None, "nyc", None),
        ("d", 2, 0.1, "la", None),
    )
    found = lane.read(table)
    assert_same_rows(found, expected, key="id")
    assert (found.schema.field("n").type, found.schema.field("x").type) == (pa.int64(), pa.float64())
    assert lane.read(table, where="n < 1000000 AND x > 1.25", columns=["id"])["id"].to_pylist() == ["b"]
    assert lane.read(table, where="tags IS NULL AND n = -7", columns=["id", "tags"]).num_rows == 1
    assert lane.arrow(table.read_keys(["b"])).select(NEW.names).to_pylist() == expected.slice(1, 1).to_pylist()


def test_an_older_snapshot_has_the_older_schema(lane: Lane) -> None:
    table = lane.create(OLD, partition_by="city")
    first = table.upsert(lane.data(OLD_ROWS))
    table.upsert(lane.data(table_of(NEW, ("d", 2, 0.1, "la", None))))
    found = lane.read(table, as_of=first.instant, columns=OLD.names)
    assert_same_rows(found, OLD_ROWS, key="id")
    assert found.schema.field("n").type == pa.int32()


def test_files_of_three_schemas_are_read_together(lane: Lane) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    table = lane.create(schema, partition_by="city")
    table.upsert(lane.data(table_of(schema, ("a", "one"))))
    with_int = schema.append(pa.field("n", pa.int32()))
    table.upsert(lane.data(table_of(with_int, ("b", "two", 7))))
    with_long = schema.append(pa.field("n", pa.int64()))
    table.upsert(lane.data(table_of(with_long, ("c", "three", 1 << 40))))
    expected = table_of(with_long, ("a", "one", None), ("b", "two", 7), ("c", "three", 1 << 40))
    assert_same_rows(lane.read(lane.open()), expected, key="id")


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        (pa.decimal128(6, 2), pa.decimal128(12, 2), Decimal("1234.56"), Decimal("1234.56")),
        (pa.decimal128(12, 2), pa.decimal128(30, 2), Decimal("-1234.56"), Decimal("-1234.56")),
        (pa.struct([("n", pa.int32())]), pa.struct([("n", pa.int64())]), {"n": 5}, {"n": 5}),
        (pa.struct([("n", pa.int32())]), pa.struct([("n", pa.int32()), ("m", pa.bool_())]), {"n": 5}, {"n": 5, "m": None}),  # noqa: E501
        (pa.float32(), pa.float64(), 0.6, 0.6),
        (pa.float32(), pa.float64(), math.nan, math.nan),
        (pa.list_(pa.float32()), pa.list_(pa.float64()), [0.6, None], [0.6, None]),
        (pa.struct([("x", pa.float32())]), pa.struct([("x", pa.float64())]), {"x": 0.1}, {"x": 0.1}),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), [("k", 0.1)], [("k", 0.1)]),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [("k", 1)], [("k", 1)]),
    ],
    ids=str,
)  # fmt: skip
def test_every_widening_the_writer_accepts_can_be_read(
    lane: Lane, old: pa.DataType, new: pa.DataType, value: Any, expected: Any
) -> None:
    before = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", old)])
    after = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", new)])
    table = lane.create(before, partition_by="city")
    table.upsert(lane.data(table_of(before, ("a", "sf", value), ("b", "sf", None))))
    table.upsert(lane.data(table_of(after, ("c", "nyc", None))))
    wanted = table_of(after, ("a", "sf", expected), ("b", "sf", None), ("c", "nyc", None))
    assert_same_rows(lane.read(table), wanted, key="id")


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        (pa.int32(), pa.float64(), 7, 7.0),
        (pa.int32(), pa.float32(), 7, 7.0),
        (pa.int64(), pa.float64(), (1 << 53) + 1, float(1 << 53)),
    ],
    ids=str,
)
def test_what_only_the_jvm_does_to_a_column_can_be_read(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, old: pa.DataType, new: pa.DataType, value: Any, expected: Any
) -> None:
    before = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", old)])
    after = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", new)])
    table = lane.create(before, partition_by="city")
    table.upsert(lane.data(table_of(before, ("a", "sf", value))))
    with pytest.raises(hoodie.SchemaMismatchError, match="'v'"):
        table.upsert(lane.data(table_of(after, ("b", "nyc", None))))
    monkeypatch.setattr("hoodie.write.options.evolve", lambda *_, **__: after)
    table.upsert(lane.data(table_of(after, ("b", "nyc", None))))
    assert_same_rows(lane.read(table), table_of(after, ("a", "sf", expected), ("b", "nyc", None)), key="id")


def test_narrower_data_is_widened_to_the_table(lane: Lane) -> None:
    table = lane.create(NEW, partition_by="city")
    narrow = OLD.append(pa.field("tags", pa.list_(pa.string())))
    table.upsert(lane.data(table_of(narrow, ("a", 1, 0.5, "sf", ["t"]))))
    assert_same_rows(lane.read(table), table_of(NEW, ("a", 1, 0.5, "sf", ["t"])), key="id")


def test_a_column_of_nulls_without_a_type_takes_the_type_of_the_table(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    rows = trips(("a", 1, None, "sf"))
    data = lane.data(rows.drop_columns("fare"))
    if lane.session is None:
        data = data.append_column("fare", pa.nulls(1))
    else:
        from pyspark.sql import functions as F

        data = data.withColumn("fare", F.lit(None))
    for write in (table.bulk_insert, table.upsert):
        assert write(data).notes == ()
    assert table.schema == TRIPS
    assert_same_rows(lane.read(table), rows, key="id")


def test_what_the_data_changes_in_the_schema_is_noted(lane: Lane) -> None:
    table = lane.create(OLD, partition_by="city")
    result = table.upsert(lane.data(table_of(NEW, ("a", 1, 0.5, "sf", ["t"]))))
    assert result.notes == (
        "column n: int32 -> int64",
        "column x: float -> double",
        "column tags added: list<element: string>",
    )
    with pytest.raises(hoodie.SchemaMismatchError, match=r"hoodie\.write\.set\.null\.for\.missing\.columns=true"):
        table.upsert(lane.data(OLD_ROWS))


def test_columns_come_in_any_order(lane: Lane) -> None:
    table = lane.create()
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf")).select(["city", "fare", "ts", "id"])))
    assert_same_rows(lane.read(table), trips(("a", 1, 1.0, "sf")), key="id")


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (TRIPS.set(2, pa.field("fare", pa.string())), "fare"),
        (TRIPS.set(0, pa.field("id", pa.int64())), "id"),
        (TRIPS.remove(2), "fare"),
        (TRIPS.set(2, pa.field("FARE", pa.float64())), "FARE"),
    ],
    ids=["type", "key-type", "missing", "case"],
)
def test_any_other_schema_is_refused_by_the_name_of_the_column(lane: Lane, schema: pa.Schema, column: str) -> None:
    table = lane.create(partition_by="city")
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"))))
    for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite):
        with pytest.raises(hoodie.SchemaMismatchError, match=column):
            write(lane.data(table_of(schema)))
    assert_same_rows(lane.read(table), trips(("a", 1, 1.0, "sf")), key="id")
    assert len(table.timeline.instants) == 1


def test_missing_columns_are_filled_where_the_writer_asks_for_it(lane: Lane) -> None:
    table = lane.create(partition_by="city")
    table.upsert(lane.data(trips(("a", 1, 1.0, "sf"))))
    fill = {"hoodie.write.set.null.for.missing.columns": "true"}
    table.upsert(lane.data(trips(("b", 2, None, "sf")).select(["id", "ts", "city"])), properties=fill)
    assert_same_rows(lane.read(table), trips(("a", 1, 1.0, "sf"), ("b", 2, None, "sf")), key="id")


def test_a_column_allows_no_null_until_a_row_has_one(lane: Lane) -> None:
    """Spark declares each column nullable: only values lift the rule of a column."""
    required = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    declared = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = lane.create(required)
    assert table.bulk_insert(lane.data(table_of(declared, ("a", 1), ("b", 2)))).notes == ()
    assert table.upsert(lane.data(table_of(declared, ("b", 3)))).notes == ()
    assert lane.open().schema.equals(required)
    with pytest.raises(hoodie.SchemaMismatchError, match="'n' allows no null"):
        table.upsert(lane.data(table_of(declared, ("b", None))), schema="strict")
    assert table.upsert(lane.data(table_of(declared, ("b", None)))).notes == ("column n: not null -> nullable",)
    assert [field.nullable for field in lane.open().schema] == [False, True]
    assert_same_rows(lane.read(table), table_of(declared, ("a", 1), ("b", None)), key="id")
