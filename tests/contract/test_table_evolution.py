"""Old files under a newer schema: the same rows on every engine, and the same refusals."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, trips
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

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


@pytest.mark.surface
@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_old_files_are_read_with_the_new_schema(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.table(OLD_ROWS, schema=OLD, partition_by="city", properties=properties)
    first = table.timeline.instants[0].requested_time
    result = table.upsert(lane.data(table_of(NEW, ("a", 1 << 40, 0.1, "sf", ["new"]), ("d", 2, 0.1, "la", None))))
    assert result.notes == (
        "column n: int32 -> int64",
        "column x: float -> double",
        "column tags added: list<element: string>",
    )
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
    older = lane.read(table, as_of=first, columns=OLD.names)
    assert_same_rows(older, OLD_ROWS, key="id")
    assert older.schema.field("n").type == pa.int32()
    with pytest.raises(hoodie.SchemaMismatchError, match=r"hoodie\.write\.set\.null\.for\.missing\.columns=true"):
        table.upsert(lane.data(OLD_ROWS))


def test_files_of_three_schemas_are_read_together(lane: Lane) -> None:
    schema = pa.schema([("id", pa.string()), ("city", pa.string())])
    table = lane.table(table_of(schema, ("a", "one")), schema=schema, partition_by="city")
    with_int = schema.append(pa.field("n", pa.int32()))
    table.upsert(lane.data(table_of(with_int, ("b", "two", 7))))
    with_long = schema.append(pa.field("n", pa.int64()))
    table.upsert(lane.data(table_of(with_long, ("c", "three", 1 << 40))))
    expected = table_of(with_long, ("a", "one", None), ("b", "two", 7), ("c", "three", 1 << 40))
    assert_same_rows(lane.read(lane.open()), expected, key="id")


Widening = tuple[pa.DataType, pa.DataType, Any, Any]
WIDENINGS: list[Widening] = [
    (pa.decimal128(6, 2), pa.decimal128(12, 2), Decimal("1234.56"), Decimal("1234.56")),
    (pa.decimal128(12, 2), pa.decimal128(30, 2), Decimal("-1234.56"), Decimal("-1234.56")),
    (pa.struct([("n", pa.int32())]), pa.struct([("n", pa.int64())]), {"n": 5}, {"n": 5}),
    (pa.struct([("n", pa.int32())]), pa.struct([("n", pa.int32()), ("m", pa.bool_())]), {"n": 5}, {"n": 5, "m": None}),
    (pa.float32(), pa.float64(), 0.6, 0.6),
    (pa.float32(), pa.float64(), math.nan, math.nan),
    (pa.list_(pa.float32()), pa.list_(pa.float64()), [0.6, None], [0.6, None]),
    (pa.struct([("x", pa.float32())]), pa.struct([("x", pa.float64())]), {"x": 0.1}, {"x": 0.1}),
    (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), [("k", 0.1)], [("k", 0.1)]),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [("k", 1)], [("k", 1)]),
]
"""Types of a column before and after, a value, and how it is read; each is a column of one table."""
ONLY_OF_THE_JVM: list[Widening] = [
    (pa.int32(), pa.float64(), 7, 7.0),
    (pa.int32(), pa.float32(), 7, 7.0),
    (pa.int64(), pa.float64(), (1 << 53) + 1, float(1 << 53)),
]


def schemas_of(widenings: list[Widening]) -> tuple[pa.Schema, pa.Schema]:
    """The schemas of a table before and after: the key, the partition, and a column for each widening."""
    own = [("id", pa.string()), ("city", pa.string())]
    types = zip(*((old, new) for old, new, _, _ in widenings), strict=True)
    before, after = (pa.schema([*own, *((f"v{n}", one) for n, one in enumerate(found))]) for found in types)
    return before, after


def test_every_widening_the_writer_accepts_can_be_read(lane: Lane) -> None:
    before, after = schemas_of(WIDENINGS)
    none, values, expected = [None] * len(WIDENINGS), [one[2] for one in WIDENINGS], [one[3] for one in WIDENINGS]
    table = lane.create(before, partition_by="city")
    table.upsert(lane.data(table_of(before, ("a", "sf", *values), ("b", "sf", *none))))
    table.upsert(lane.data(table_of(after, ("c", "nyc", *none))))
    wanted = table_of(after, ("a", "sf", *expected), ("b", "sf", *none), ("c", "nyc", *none))
    assert_same_rows(lane.read(table), wanted, key="id")


def test_what_only_the_jvm_does_to_a_column_can_be_read(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = schemas_of(ONLY_OF_THE_JVM)
    values, expected = [one[2] for one in ONLY_OF_THE_JVM], [one[3] for one in ONLY_OF_THE_JVM]
    table = lane.table(table_of(before, ("a", "sf", *values)), schema=before, partition_by="city")
    for number in range(len(ONLY_OF_THE_JVM)):
        changed = before.set(2 + number, after.field(2 + number))
        with pytest.raises(hoodie.SchemaMismatchError, match=f"'v{number}'"):
            table.upsert(lane.data(table_of(changed, ("b", "nyc", *[None] * len(values)))))
    monkeypatch.setattr("hoodie.write.options.evolve", lambda *_, **__: after)
    table.upsert(lane.data(table_of(after, ("b", "nyc", *[None] * len(values)))))
    wanted = table_of(after, ("a", "sf", *expected), ("b", "nyc", *[None] * len(values)))
    assert_same_rows(lane.read(table), wanted, key="id")


def test_narrower_data_in_any_order_is_widened_to_the_table(lane: Lane) -> None:
    table = lane.create(NEW, partition_by="city")
    narrow = OLD.append(pa.field("tags", pa.list_(pa.string())))
    rows = table_of(narrow, ("a", 1, 0.5, "sf", ["t"])).select(["city", "tags", "x", "n", "id"])
    table.upsert(lane.data(rows))
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


OTHER_SCHEMAS = {
    "type": (TRIPS.set(2, pa.field("fare", pa.string())), "fare"),
    "type of the key": (TRIPS.set(0, pa.field("id", pa.int64())), "id"),
    "missing": (TRIPS.remove(2), "fare"),
    "case": (TRIPS.set(2, pa.field("FARE", pa.float64())), "FARE"),
}


def test_any_other_schema_is_refused_by_the_name_of_the_column(lane: Lane) -> None:
    """Missing columns are filled where the writer asks for it."""
    table = lane.table(trips(("a", 1, 1.0, "sf")), partition_by="city")
    for schema, column in OTHER_SCHEMAS.values():
        data = lane.data(table_of(schema))
        for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite):
            with pytest.raises(hoodie.SchemaMismatchError, match=column):
                write(data)
    assert len(table.timeline.instants) == 1
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


@pytest.mark.parametrize("index", ["simple", "global_simple"])
def test_required_fields_of_null_structs(lane: Lane, index: str) -> None:
    """Spark declares them nullable, and makes them null when it exchanges rows."""
    inner = pa.struct([("x", pa.int32()), pa.field("y", pa.string(), nullable=False)])
    schema = pa.schema([("id", pa.string()), ("s", inner), ("items", pa.list_(inner))])
    stored = table_of(schema, ("a", {"x": 1, "y": "b"}, [None]), ("b", None, None), ("c", None, [{"x": 1, "y": "b"}]))
    table = lane.create(schema, index=index, properties=ON_WORKERS)
    table.upsert(lane.data(stored))
    table.upsert(lane.data(stored.slice(0, 2)))
    table.delete(lane.data(stored.select(["id"]).slice(1, 1)))
    table.update({"s": "NULL"}, "id = 'a'")
    expected = table_of(schema, ("a", None, [None]), ("c", None, [{"x": 1, "y": "b"}]))
    assert_same_rows(lane.read(table), expected, key="id")
    assert lane.open().schema.equals(schema)
