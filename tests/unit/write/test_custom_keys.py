"""Tables of version 6 with a custom key generator: they store no types of their partition fields for the JVM."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.records.change import PARTITION_PATH
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.table.save import Save
from hoodie.write.create_by_options import JVM_DEFAULTS
from tests.support.tables import TYPES, made_once, new_table, table_of, values_of
from tests.unit.write.tables import untouched

TIME = "hoodie.keygen.timebased."
DAYS = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyy/MM/dd"}
WRITE = "hoodie.datasource.write"
FIELDS = f"{WRITE}.partitionpath.field"
TYPED = ["city:SIMPLE", "at:TIMESTAMP"]
NAMED_TYPES = {FIELDS: ",".join(TYPED)}
DAY = 86_400_000
OWN = "hoodie.python.partition.fields"


SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("at", pa.int64()), ("ts", pa.int64())])


def rows(**places: tuple[str | None, int]) -> pa.Table:
    """One row for each key: its city, and its day as a number."""
    return table_of(SCHEMA, *((key, city, day * DAY + 5, 1) for key, (city, day) in places.items()))


ROWS = rows(a=("sf", 1), b=("la", 1), c=(None, 40))
PATHS = ["city=__HIVE_DEFAULT_PARTITION__/at=1970/02/10", "city=la/at=1970/01/02", "city=sf/at=1970/01/02"]


def own_table(*data: pa.Table, table_type: str = "copy_on_write", version: int = 6) -> Table:
    named: dict[str, Any] = {"partition_by": TYPED, "key_generator": "custom", "ordering": "ts", "index": "simple"}
    return new_table(SCHEMA, *data, type=table_type, table_version=version, properties=DAYS, **named)


@made_once
def table_of_the_jvm(table_type: str = "copy_on_write") -> Table:
    """A table as Hudi 0.15 stores it, with rows: neither types nor time formats."""
    table = own_table(ROWS, table_type=table_type)
    update_table_config(table.view().store, dict.fromkeys([OWN, "hoodie.table.keygenerator.type", *DAYS]))
    return hoodie.open(table.path, spark=False)


def paths_of(table: Table) -> list[str]:
    return [path for (path,) in values_of(table, PARTITION_PATH)]


def test_misspelt_time_formats_are_refused_wherever_options_are() -> None:
    wrong = {**DAYS, TIME + "output.timezon": "Europe/Berlin"}
    match = f"unknown option '{TIME}output.timezon'; did you mean '{TIME}output.timezone'"
    table, store = own_table(ROWS), MemoryStore()
    with untouched(store, match, InvalidConfigError):
        hoodie.create(
            store.uri(""), SCHEMA, record_key="id", partition_by="at", key_generator="timestamp", properties=wrong
        )
    for call in (
        lambda: table.upsert(ROWS, properties=wrong),
        lambda: table.alter.set_property(TIME + "output.timezon", "UTC"),
        lambda: Save.of({**NAMED_TYPES, **wrong}, overwrites=False).checked(
            table.view().store, SCHEMA, ArrowDataset(ROWS.slice(0, 0))
        ),
    ):
        with untouched(table, "output.timezon", InvalidConfigError):
            call()


@pytest.mark.parametrize("named", [{}, {"key_generator": "custom", "partition_by": ["city:SIMPLE"]}], ids=str)
def test_time_formats_without_a_time_are_refused(named: dict[str, Any]) -> None:
    named = {"record_key": "id", "partition_by": "city", **named}
    store = MemoryStore()
    with untouched(store, "timestamp.type has no effect: no partition field", InvalidConfigError):
        hoodie.create(store.uri(""), SCHEMA, **named, properties=DAYS)
    table = new_table(SCHEMA, ROWS, **named)
    table.upsert(ROWS, properties=DAYS)  # a script sets the options of all its tables
    assert table.count() == ROWS.num_rows


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_of_ours_stores_the_types_and_needs_no_option(table_type: str) -> None:
    table = own_table(table_type=table_type)
    raw = table.view().config.raw
    assert (raw["hoodie.table.partition.fields"], raw[OWN]) == ("city,at", ",".join(TYPED))
    assert raw["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.CustomKeyGenerator"
    table.upsert(ROWS)
    assert table.upsert(ROWS, properties=NAMED_TYPES).updated == 3
    assert paths_of(table) == PATHS
    assert table.delete(ROWS.slice(2).select(["id", "city", "at"])).deleted == 1
    assert table.count("city = 'sf'") == table.count(f"at = {DAY + 5} AND city = 'sf'") == 1
    assert table.explain("city = 'sf'").file_slices == 2  # a null or empty text can be in the default partition
    with pytest.raises(hoodie.InvalidConfigError, match=f"{OWN} is fixed when the table is created"):
        table.upsert(ROWS, properties={OWN: "city:SIMPLE,at:SIMPLE"})


def test_other_fields_and_types_are_refused() -> None:
    table = own_table()
    others = ("city:SIMPLE,at:SIMPLE", "city:SIMPLE", "town:SIMPLE,at:TIMESTAMP", "city,at:TIMESTAMP", "city:A,at:B")
    for text in others:
        wanted = rf"expected city:SIMPLE,at:TIMESTAMP, as the table has these partition fields, found '{text}'"
        with untouched(table, wanted, hoodie.InvalidConfigError):
            table.upsert(ROWS, properties={FIELDS: text})


@pytest.mark.parametrize("table_type", TYPES)
def test_writes_into_a_table_of_the_jvm_take_the_types(table_type: str) -> None:
    table, given = table_of_the_jvm(table_type), {**NAMED_TYPES, **DAYS}
    wanted = r"SIMPLE or TIMESTAMP of each .*\(city, at\).* option hoodie\.datasource\.write\.partitionpath\.field"
    for write in (table.upsert, table.insert, table.bulk_insert, table.insert_overwrite, table.delete):
        with pytest.raises(hoodie.InvalidConfigError, match=wanted):
            write(ROWS)
    with pytest.raises(hoodie.InvalidConfigError, match=wanted):
        table.delete_where("id = 'a'")
    with pytest.raises(hoodie.InvalidConfigError, match="expected city:SIMPLE or TIMESTAMP,at:SIMPLE or TIMESTAMP"):
        table.upsert(ROWS, properties={FIELDS: "at:TIMESTAMP,city:SIMPLE"})
    assert table.upsert(ROWS, properties=given).updated == 3
    assert table.update({"ts": "ts + 1"}, "id = 'a'", properties=given).updated == 1
    assert table.delete_where("id = 'c'", properties=given).deleted == 1
    assert table.insert(rows(d=("sf", 1)), properties=given).inserted == 1
    assert table.insert_overwrite(rows(b=("la", 1)), properties=given).inserted == 1
    assert table.delete_partitions([{"city": "la", "at": DAY}], properties=given).deleted == 1
    assert table.delete(rows(d=("sf", 1)).select(["id", "city", "at"]), properties=given).deleted == 1
    assert paths_of(table) == ["city=sf/at=1970/01/02"]
    assert table.verify(full=True).ok


def test_types_and_formats_that_do_not_make_the_stored_paths_are_refused() -> None:
    table = table_of_the_jvm()
    for wrong, path in (
        ({FIELDS: "city:SIMPLE,at:SIMPLE"}, "at=86400005"),
        ({**NAMED_TYPES, **DAYS, TIME + "output.dateformat": "yyyyMMdd"}, "at=19700102"),
    ):
        with pytest.raises(hoodie.InvalidConfigError, match=rf"stored rows, such as 'city=.*/at=1970/.*{path}"):
            table.upsert(rows(a=("sf", 1)), properties=wrong)
    assert paths_of(table) == PATHS


@pytest.mark.parametrize("table_type", TYPES)
def test_reads_and_services_need_no_types(table_type: str) -> None:
    table = table_of_the_jvm(table_type)
    table.upsert(ROWS, properties={**NAMED_TYPES, **DAYS})
    assert table.count("city = 'sf'") == table.count(f"at = {DAY + 5} AND city = 'sf'") == 1
    assert table.read_keys(["a"])["id"].to_pylist() == ["a"]
    assert table.record_locations(["b"])["partition_path"].to_pylist() == ["city=la/at=1970/01/02"]
    if table_type == "merge_on_read":
        assert table.schedule_compaction("unbounded")
        assert table.compact().instant
    assert table.cluster("id").instant
    assert table.index.build("record").counts["entries"] == 3
    assert table.delete_partitions(["city=la/at=1970/01/02"]).deleted == 1
    assert paths_of(table) == [PATHS[0], PATHS[2]]
    assert table.verify(full=True).ok


def test_a_move_between_versions_keeps_the_types() -> None:
    table = own_table(ROWS, version=9)
    for version, own in ((6, True), (8, False), (9, False)):
        (table.downgrade if version == 6 else table.upgrade)(to=version, dry_run=False)
        raw = table.view().config.raw
        assert raw["hoodie.table.partition.fields"] == ("city,at" if own else ",".join(TYPED))
        assert raw.get(OWN) == (",".join(TYPED) if own else None)
        assert table.upsert(ROWS).updated == 3


def test_an_upgrade_needs_types_that_nothing_stores() -> None:
    table = table_of_the_jvm()
    (reason,) = table.upgrade(to=9).in_the_way
    assert f"name them in the option {FIELDS}, for example city:SIMPLE,at:SIMPLE" in reason
    (reason,) = table.upgrade(to=9, properties={FIELDS: "city:DAY,at:TIMESTAMP"}).in_the_way
    assert "found 'city:DAY,at:TIMESTAMP'" in reason
    table.upgrade(to=9, dry_run=False, properties=NAMED_TYPES)
    assert table.upsert(ROWS, properties=DAYS).updated == 3


def test_the_data_source_takes_the_options_of_hudi_0_15() -> None:
    options = {
        "hoodie.table.name": "t", f"{WRITE}.recordkey.field": "id", f"{WRITE}.precombine.field": "ts",
        f"{WRITE}.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{WRITE}.hive_style_partitioning": "true", "hoodie.write.table.version": "6", **NAMED_TYPES, **DAYS,
    }  # fmt: skip

    def save(table: Table, given: dict[str, str]) -> None:
        wanted = Save.of(given, overwrites=False, defaults=JVM_DEFAULTS)
        wanted.checked(table.view().store, SCHEMA, ArrowDataset(ROWS.slice(0, 0))).run(table, ROWS)

    jvm = table_of_the_jvm()
    update_table_config(jvm.view().store, {"hoodie.table.name": "t", "hoodie.table.checksum": None})
    jvm = hoodie.open(jvm.path, spark=False)
    with pytest.raises(hoodie.InvalidConfigError, match="writes take them in the option"):
        Save.of({}, overwrites=False).checked(jvm.view().store, SCHEMA, ArrowDataset(ROWS.slice(0, 0)))
    for table in (own_table(), jvm):
        named = {**options, "hoodie.table.name": table.view().config.name}
        save(table, named)
        save(table, {**NAMED_TYPES, **DAYS})
        assert paths_of(table) == PATHS
        with pytest.raises(hoodie.InvalidConfigError, match="partition"):
            save(table, {**named, FIELDS: "city:SIMPLE,ts:TIMESTAMP"})


@pytest.mark.parametrize("room", ["", "deltastreamer."])
def test_times_that_a_class_of_the_jvm_parses_are_read_and_not_written(room: str) -> None:
    parser = f"hoodie.{room}keygen.datetime.parser.class"
    table = own_table(ROWS, version=9)
    store = table.view().store
    update_table_config(store, {parser: "com.example.OurParser"})
    upsert, delete = partial(table.upsert, ROWS), partial(table.delete, ROWS.select(["id", "city", "at"]))
    for call in (upsert, delete):
        with untouched(table, "com.example.OurParser", UnsupportedError):
            call()
    assert table.count("city = 'sf'") == 1
    assert table.verify(full=True).ok
    update_table_config(store, {parser: "org.apache.hudi.keygen.parser.HoodieDateTimeParser"})
    assert table.upsert(ROWS).updated == 3
