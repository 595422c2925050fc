"""Every type, awkward value and awkward path survives a write and a read, on every engine."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TIME_ZONE, Lane, session_with, trips
from tests.support.rows import assert_same_rows
from tests.support.tables import table_of

HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
TYPES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("flag", pa.bool_()),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("money", pa.decimal128(9, 2)),
        pa.field("large", pa.decimal128(38, 18)),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("nest", pa.struct([("x", pa.int64()), ("inner", pa.struct([("é", pa.string())]))])),
        pa.field("items", pa.list_(pa.field("element", pa.struct([("n", pa.int32())])))),
        pa.field("dict", pa.map_(pa.string(), pa.list_(pa.float64()))),
    ]
)
VALUES = table_of(
    TYPES,
    ("low", False, -(2**31), -(2**63), -math.inf, -math.inf, Decimal("-9999999.99"), Decimal("-1e-18"), "", b"",
     date(1582, 1, 1), datetime(1883, 11, 18, 12, 3, 57, 999999, tzinfo=UTC), datetime(1, 1, 1),
     {"x": None, "inner": None}, [], []),
    ("high", True, 2**31 - 1, 2**63 - 1, math.inf, 1.7976931348623157e308, Decimal("9999999.99"), Decimal("1e19"),
     "日本 🎉\n\t'\"\\", bytes(range(256)), date(9999, 12, 31), datetime(2262, 4, 12, tzinfo=UTC),
     datetime(9999, 12, 31, 23, 59, 59, 999999),
     {"x": 1, "inner": {"é": None}}, [None, {"n": None}, {"n": 7}], [("k", [math.nan, None]), ("null", None)]),
    ("nan", None, 0, 0, math.nan, math.nan, Decimal("0.00"), Decimal("0"), "nan", b"\0", date(1969, 12, 31),
     datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 1),
     {"x": 0, "inner": {"é": ""}},
     None, None),
    ("none", *[None] * 15),
)  # fmt: skip


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_all_types_and_extreme_values_survive(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.create(TYPES, ordering="l", properties=properties)
    data = lane.data(VALUES)
    table.bulk_insert(data)
    assert_same_rows(table.to_arrow(columns=TYPES.names), VALUES, key="id")
    table.upsert(data)
    found = lane.read(lane.open())
    assert_same_rows(found, VALUES, key="id")
    kinds = {child.name: child.type for child in TYPES if not pa.types.is_nested(child.type)}
    kinds.pop("at")
    assert {name: found.schema.field(name).type for name in kinds} == kinds
    assert_same_rows(table.to_arrow(columns=TYPES.names), VALUES, key="id")


def test_an_ancient_day_and_a_zone_of_the_session_change_no_value(lane: Lane) -> None:
    with session_with(lane.session, {TIME_ZONE: "America/St_Johns"}):
        table, data = lane.create(TYPES, partition_by="day"), lane.data(VALUES)
        table.upsert(data)
        table.upsert(data, properties=ON_WORKERS)
        found, ancient = lane.read_each(table, {}, {"where": "day < DATE '1600-01-01'"})
        assert_same_rows(found, VALUES, key="id")
        assert ancient["id"].to_pylist() == ["low"]


def test_column_names_that_hudi_cannot_store_are_refused(lane: Lane) -> None:
    for name in ("dot.ted", "with space", "1st"):
        with pytest.raises(hoodie.SchemaMismatchError, match=name):
            lane.create(pa.schema([("id", pa.string()), (name, pa.string())]))
    assert not hoodie.exists(lane.path)


def test_large_arrow_types_and_small_batches_change_nothing(lane: Lane) -> None:
    large = pa.schema([("id", pa.large_string()), ("v", pa.large_list(pa.large_binary())), ("n", pa.int16())])
    rows = table_of(large, *((f"k{number:02}", [b"x" * number, None], number) for number in range(30)))
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}
    if lane.session is not None and hasattr(type(lane.session.range(0)), "toArrow"):
        settings["spark.sql.execution.arrow.useLargeVarTypes"] = "true"
    small = pa.schema([("id", pa.string()), ("v", pa.list_(pa.binary())), ("n", pa.int32())])
    with session_with(lane.session, settings):
        table = lane.create(small, index="global_simple")
        table.upsert(lane.data(rows.cast(small)) if lane.session is not None else rows)
        table.bulk_insert(lane.data(table_of(small, ("z", None, None))), sort="global")
    assert_same_rows(
        lane.read(table), pa.concat_tables([rows.cast(small), table_of(small, ("z", None, None))]), key="id"
    )


KEYS = ["plain", "with space", "a/b", "100%", "%41", "[x]", "{y}", "*", "?", "k=v"]
KEYS += ["a:b", "a,b", "日本", "🎉", "\t", "#", "'\"\\"]


def test_keys_may_hold_any_character(lane: Lane) -> None:
    rows = trips(*((key, 1, float(number), "sf") for number, key in enumerate(KEYS)))
    table = lane.table(partition_by="city")
    data = lane.data(rows)
    table.upsert(data)
    table.update({"ts": "2"}, where="fare >= 3")
    expected = trips(*((key, 2 if number >= 3 else 1, float(number), "sf") for number, key in enumerate(KEYS)))
    assert_same_rows(lane.read(table), expected, key="id")
    assert lane.arrow(table.read_keys(KEYS)).num_rows == len(KEYS)
    assert table.delete(data).deleted == len(KEYS)
    assert table.count() == 0


CITIES = ["sf", "san jose", "100%", "%41", "[x]", "[", "{a,b}", "{", "a*", "b?", "k=v"]
CITIES += ["日本", "🎉", "_hidden", ".dot", "#", "\\", "é"]


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("hive_style", ["true", "false"])
@pytest.mark.parametrize("encoded", ["false", "true"])
def test_partition_values_may_hold_special_characters(lane: Lane, hive_style: str, encoded: str) -> None:
    cities = [*CITIES, *(["a/b", "..", "x:y", "/"] if encoded == "true" else []), None, ""]
    cities = [city for city in cities if city != ".."] if hive_style == "false" else cities
    rows = trips(*((f"k{number}", 1, 1.0, city) for number, city in enumerate(cities)))
    table, data = lane.create(partition_by="city", properties={HIVE: hive_style, ENCODE: encoded}), lane.data(rows)
    table.upsert(data)
    result = table.upsert(data)
    assert (result.inserted, result.updated) == (0, len(cities))
    wheres = [f"city = '{city}'" for city in cities[:9]]
    found, empty, *one_each = lane.read_each(
        table, {}, {"where": "city IS NULL OR city = ''"}, *({"where": where} for where in wheres)
    )
    assert_same_rows(found, rows, key="id")
    assert sorted(empty["id"].to_pylist()) == sorted(f"k{number}" for number, city in enumerate(cities) if not city)
    assert [one["id"].to_pylist() for one in one_each] == [[f"k{number}"] for number in range(len(wheres))]
    table.delete_where("city IN ('a*', '{') OR city IS NULL")
    assert table.count() == len(cities) - 3


def test_a_partition_value_that_leaves_the_folder_is_refused(lane: Lane) -> None:
    table = lane.table(partition_by="city", properties={HIVE: "false"})
    for city in ("../escaped", ".hoodie"):
        with pytest.raises(hoodie.PartitionPathError):
            table.upsert(lane.data(trips(("a", 1, 1.0, city))))
    assert_same_rows(lane.read(table), trips())


def test_several_partition_columns_of_several_types(lane: Lane) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("day", pa.date32()), ("n", pa.int32()), ("flag", pa.bool_()), ("v", pa.string())]
    )
    rows = table_of(
        schema,
        (1, date(2024, 1, 1), 5, True, "a"),
        (2, date(1950, 1, 1), -5, False, "b"),
        (3, None, None, None, None),
    )
    table = lane.create(schema, partition_by=["day", "n", "flag"])
    table.upsert(lane.data(rows))
    wheres = ("n < 0 AND NOT flag", "day IS NULL", "day > DATE '2000-01-01'")
    found, *parts = lane.read_each(table, {}, *({"where": where} for where in wheres))
    assert_same_rows(found, rows, key="id")
    assert [part["id"].to_pylist() for part in parts] == [[2], [3], [1]]


def test_nested_key_and_ordering_columns(lane: Lane) -> None:
    schema = pa.schema([("who", pa.struct([("id", pa.string()), ("zone", pa.string())])), ("ts", pa.int64())])
    stored = table_of(schema, ({"id": "a", "zone": "x"}, 1), ({"id": "b", "zone": "y"}, 1))
    table = lane.table(stored, schema=schema, record_key="who.id", partition_by="who.zone", ordering="ts")
    table.upsert(lane.data(table_of(schema, ({"id": "a", "zone": "x"}, 2), ({"id": "b", "zone": "y"}, 0))))
    found = lane.read(table, columns=["_hoodie_record_key", "ts"]).to_pylist()
    assert sorted((row["_hoodie_record_key"], row["ts"]) for row in found) == [("a", 2), ("b", 1)]
