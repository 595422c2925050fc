"""Tables of version 8: ours have what Hudi 1.0 reads and writes, and a table of another writer keeps all of it."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.metadata_table.column_stats import ColumnRange, StatsRow, column_prefix
from hoodie.format.metadata_table.metadata_record import RecordType, metadata_schema
from hoodie.format.metadata_table.value_types import UNTYPED_DECIMAL, ValueKind, ValueType
from hoodie.format.table import table_keys as keys
from hoodie.metadata.definitions import read_definition
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.statistics import joined
from hoodie.metadata.row_readers import StatsReader
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write.create_by_options import TableOptions
from tests.support.tables import TYPES, new_table, table_of, values_of

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("day", pa.string())])
PROPERTIES = ".hoodie/hoodie.properties"
ENCODING = "hoodie.write.complex.keygen.new.encoding"
MODEL = "org.apache.hudi.common.model."


def rows(ids: str, ts: int) -> pa.Table:
    return table_of(SCHEMA, *((key, ts, "sf", "d") for key in ids))


def found(table: Table) -> dict[str, int]:
    return dict(values_of(table, "id", "ts"))


def eight(*data: pa.Table, **options: Any) -> Table:
    return new_table(SCHEMA, *data, table_version=8, **options)


def change_properties(table: Table, *removed: str, **added: str) -> Table:
    """Take lines out of the properties, without regard to their checksum, and add others; return a new handle."""
    store = table.view().store
    kept = [line for line in store.read(PROPERTIES).decode().splitlines() if not line.startswith(removed)]
    store.replace(PROPERTIES, "\n".join([*kept, *(f"{key}={value}" for key, value in added.items()), ""]).encode())
    return hoodie.open(table.path)


@pytest.mark.parametrize("table_type", TYPES)
def test_the_properties_are_those_of_hudi_1_0(table_type: str) -> None:
    table = eight(rows("abc", 1), rows("bcd", 3), partition_by="city", ordering="ts", type=table_type)
    table.delete(rows("a", 1).select(["id", "city"]))
    if table_type == "merge_on_read":
        assert table.schedule_compaction()
        table.compact()
    table.cluster(by="ts")
    table.upsert(rows("d", 2))
    assert found(table) == {"b": 3, "c": 3, "d": 3}
    assert table.verify(full=True).ok
    raw = hoodie.open(table.path).view().config.raw
    expected = {
        keys.VERSION: "8",
        keys.INITIAL_VERSION: "8",
        keys.PRECOMBINE_FIELD: "ts",
        keys.MERGE_MODE: "EVENT_TIME_ORDERING",
        keys.PAYLOAD_CLASS: f"{MODEL}DefaultHoodieRecordPayload",
        keys.MERGE_STRATEGY_ID: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }
    assert {key: raw.get(key) for key in expected} == expected
    assert keys.ORDERING_FIELDS not in raw


@pytest.mark.parametrize("name", ["v8_cow", "v8_mor"])
def test_a_table_of_another_writer_keeps_its_version_and_its_properties(
    golden_tables: Path, tmp_path: Path, name: str
) -> None:
    root = Path(shutil.copytree(golden_tables / name, tmp_path / name))
    table = hoodie.open(root)
    before, stored = dict(table.view().config.raw), table.to_arrow()
    changed = stored.slice(0, 5).drop_columns(
        [column for column in stored.schema.names if column.startswith("_hoodie")]
    )
    table.upsert(changed.set_column(changed.schema.get_field_index("note"), "note", pa.array(["new"] * 5)))
    assert table.to_arrow()["note"].to_pylist().count("new") == 5
    after = dict(hoodie.open(root).view().config.raw)
    assert after == before
    assert before[keys.METADATA_PARTITIONS] == "bloom_filters,column_stats,files,partition_stats,record_index"
    report = table.verify(full=True)
    assert report.ok, report


STATISTICS = pa.schema(
    [
        ("id", pa.string()),
        ("x", pa.int32()),
        ("day", pa.date32()),
        ("money", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(20, 2)),
        ("late", pa.timestamp("ms")),
    ]
)


def stats_rows(numbers: range) -> pa.Table:
    day, moment = dt.date(1970, 1, 1), dt.datetime(1970, 1, 1)
    return table_of(
        STATISTICS,
        *((f"k{n}", n, day + dt.timedelta(n), Decimal(n) / 4, Decimal(n), moment + dt.timedelta(n)) for n in numbers),
    )


def test_column_statistics_have_the_form_of_the_version() -> None:
    """No type beside the bounds, all decimals with one scale, and no column of which Hudi 1.0 reads wrong bounds."""
    asked = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}
    data = (stats_rows(range(first, first + 3)) for first in (0, 10, 20))
    table = new_table(STATISTICS, *data, index="simple", table_version=8, properties=asked)
    store = table.view().store
    definition = read_definition(store, "column_stats") or {}
    assert definition["version"] == "V1"
    assert definition["sourceFields"][3:] == ["id", "x", "day", "money"]
    view = table.view()
    timeline = MetadataFolder(store, view.config).existing_timeline()
    stored = StatsReader(store, ColumnStatsKind(), visible_instants(timeline, view.whole_timeline()))
    found = {
        row.range.column: row.range
        for row in stored.rows_below([column_prefix("day"), column_prefix("money")]).values()
    }
    assert found["day"].type == ValueType(ValueKind.DATE)
    assert found["money"].type == ValueType(ValueKind.DECIMAL, "30,15")
    for where in ("x = 11", "day = DATE'1970-01-12'", "money = 2.75"):
        assert table.to_arrow("id", where=where)["id"].to_pylist() == ["k11"]
        assert table.explain(where).file_slices == 1
    assert table.explain("wide = 11").file_slices == 3
    assert table.verify(full=True).ok
    table.index.drop("column_stats")
    table.index.build("column_stats")
    assert table.explain("money = 2.75").file_slices == 1
    assert table.verify(full=True).ok


def test_decimals_that_a_compaction_of_hudi_1_0_stored_as_bytes() -> None:
    money = ValueType(ValueKind.DECIMAL, "10,2")
    bounds = [(number * 10**15).to_bytes(9, "big", signed=True) for number in (-3, 5)]
    stored = ColumnRange(column="c", type=ValueType(ValueKind.BYTES), low=bounds[0], high=bounds[1], values=2)
    found = joined(stored, ColumnRange(column="c", type=money, low=600, high=700, values=2))
    assert (found.type, found.low, found.high) == (UNTYPED_DECIMAL, -3 * 10**15, 7 * 10**15)
    written = StatsRow(name="f", range=found).to_bytes(RecordType.COLUMN_STATS, typed=False)
    again = StatsRow.parse(written, schema_json=metadata_schema(), path="test").range
    assert (again.low, again.high) == (-3 * 10**15, 7 * 10**15)


def test_bounds_without_types_are_rounded_outwards() -> None:
    """A column that became wider than Hudi 1.0 expects keeps its statistics."""
    tiny = ValueType(ValueKind.DECIMAL, "20,17")
    for low, high, expected in ((149, 151, (1, 2)), (-151, -149, (-2, -1)), (100, 200, (1, 2))):
        written = ColumnRange(column="c", type=tiny, low=low, high=high, values=2)
        value = StatsRow(name="f", range=written).to_bytes(RecordType.COLUMN_STATS, typed=False)
        found = StatsRow.parse(value, schema_json=metadata_schema(), path="test").range
        assert (found.low, found.high) == expected


@pytest.mark.parametrize(("encoding", "first"), [("true", "a"), ("false", "id:a")])
def test_complex_keys_of_one_field_are_written_as_the_stored_ones(encoding: str, first: str) -> None:
    """The option is needed once: for a table without rows. Stored rows decide then, whatever their file."""
    named: dict[str, Any] = {"partition_by": ["city", "day"], "type": "mor", "index": "bucket"}
    table = change_properties(eight(rows("ab", 1), **named, properties={ENCODING: encoding}), ENCODING)
    table.upsert(rows("ac", 2))
    table.delete(rows("b", 2).select(["id", "city", "day"]))
    assert found(table) == {"a": 2, "c": 2}
    assert table.to_arrow()["_hoodie_record_key"].to_pylist()[0] == first
    assert table.read_keys(rows("c", 0)).num_rows == 1
    assert table.to_arrow(where="id = 'a'").num_rows == 1
    opposite = {"true": "false", "false": "true"}[encoding]
    with pytest.raises(hoodie.InvalidConfigError, match="contradicts the stored keys"):
        table.upsert(rows("d", 2), properties={ENCODING: opposite})


def with_payload(payload: str, schema: pa.Schema = SCHEMA, ordering: str | None = "ts") -> Table:
    """An empty table with a payload class, stored as Hudi 1.0 does: of the mode CUSTOM."""
    removed = (keys.PAYLOAD_CLASS, keys.MERGE_MODE, keys.MERGE_STRATEGY_ID)
    values = (f"{MODEL}{payload}", "CUSTOM", "00000000-0000-0000-0000-000000000000")
    table = new_table(schema, ordering=ordering, index="simple", table_version=8)
    return change_properties(table, *removed, **dict(zip(removed, values, strict=True)))


@pytest.mark.parametrize(
    ("payload", "ordering", "column", "marker"),
    [
        ("AWSDmsAvroPayload", None, "Op", "D"),
        ("debezium.MySqlDebeziumAvroPayload", "ts", "_change_operation_type", "d"),
    ],
)
def test_payload_classes_of_a_table_are_honoured(payload: str, ordering: str | None, column: str, marker: str) -> None:
    """Rows that the class takes for deletes delete; the class stays in the properties."""
    table = with_payload(payload, pa.schema([*SCHEMA, (column, pa.string())]), ordering)
    table.upsert(rows("abc", 1).append_column(column, pa.array(["I", "I", "I"])))
    table.upsert(rows("abc", 1).append_column(column, pa.array(["U", marker, "U"])))
    assert sorted(found(table)) == ["a", "c"]
    assert table.view().config.raw[keys.PAYLOAD_CLASS] == f"{MODEL}{payload}"


def test_unknown_payload_classes_are_refused() -> None:
    with pytest.raises(hoodie.UnsupportedError, match="exists only in JVM Hudi"):
        with_payload("Own").upsert(rows("a", 1))


def test_an_option_of_the_data_source_chooses_the_version() -> None:
    given = {"record_key": "id", "hoodie.write.table.version": "8", "hoodie.write.auto.upgrade": "false"}
    options, _ = TableOptions.split(given)
    store = MemoryStore()
    assert options.ensure(store, SCHEMA, {}, may_create=True)
    assert Table(store).view().config.version.value == 8
    assert not options.ensure(store, SCHEMA, {}, may_create=True)
    assert options.defines(store, SCHEMA, {})
    assert TableOptions.split({"record_key": "id"})[0].defines(store, SCHEMA, {})
    other, _ = TableOptions.split({**given, "hoodie.write.table.version": "9"})
    with pytest.raises(hoodie.InvalidConfigError, match="table_version=8, but the call has 9"):
        other.ensure(store, SCHEMA, {}, may_create=True)
    alone, _ = TableOptions.split({"hoodie.write.table.version": "8"})
    with pytest.raises(hoodie.TableNotFoundError):
        alone.ensure(MemoryStore(), SCHEMA, {}, may_create=True)


def test_an_option_of_the_data_source_chooses_the_encoding_of_a_new_table() -> None:
    options, call = TableOptions.split(
        {"record_key": "id", "partition_by": "city,day", "hoodie.write.table.version": "8", ENCODING: "true"}
    )
    store = MemoryStore()
    with pytest.raises(hoodie.InvalidConfigError, match=ENCODING):
        options.ensure(store, SCHEMA, {}, may_create=True)
    assert options.ensure(store, SCHEMA, call, may_create=True)
    assert not options.ensure(store, SCHEMA, {}, may_create=True)
    assert options.defines(store, SCHEMA, {})
    Table(store).upsert(rows("a", 1))
    assert Table(store).to_arrow()["_hoodie_record_key"].to_pylist() == ["a"]
