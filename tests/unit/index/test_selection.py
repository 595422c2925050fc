"""Which index a table has, what its properties say of it, and which index serves a write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config import indexes
from hoodie.errors import InvalidConfigError
from hoodie.files.table_properties import update_table_config
from hoodie.index import INDEXES, RECORD, Index, index_kind, index_of
from hoodie.index.record import RecordIndex
from hoodie.metadata.table import MetadataTable
from hoodie.table import Table
from hoodie.write.options import effective_options
from tests.unit.write.tables import SCHEMA, trips

TYPE = indexes.INDEX_TYPE_KEY
MOVES = indexes.RECORD_UPDATE_PARTITION_PATH.key
ENABLED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}


def serving(table: Table, properties: dict[str, str] | None = None) -> Index:
    """The index that serves a write with these options."""
    view = table.view()
    return index_of(view, effective_options(view.config, properties or {}))


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("record", {TYPE: "RECORD_INDEX", MOVES: "true", **ENABLED}),
        ("partitioned_record", {TYPE: "RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable": "true"}),
        ("global_simple", {TYPE: "GLOBAL_SIMPLE"}),
        ("simple", {}),
        ("bloom", {TYPE: "BLOOM"}),
        ("global_bloom", {TYPE: "GLOBAL_BLOOM"}),
    ],
)
def test_what_a_new_table_stores(tmp_path: Path, index: str, expected: dict[str, str]) -> None:
    """JVM writers drop a record index of which one of the two is not stored: the type, or the switch."""
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", index=index, spark=False)
    raw = table.view().config.raw
    told = {key: value for key, value in raw.items() if "index" in key and ".metadata.partitions" not in key}
    assert told == expected
    assert index_kind(index).stored_properties({}) == expected
    assert serving(table).name == index
    table.upsert(trips(("a", 1, 1.0, "sf")))
    assert serving(table).name == index


def test_moves_are_stored_as_asked_for() -> None:
    assert RECORD.stored_properties({MOVES: "false"})[MOVES] == "false"
    assert RECORD.stored_properties({}, moves_by_default=False)[MOVES] == "false"
    assert RECORD.stored_properties({MOVES: "true"}, moves_by_default=False)[MOVES] == "true"


@pytest.mark.parametrize("name", ["record", "RECORD_INDEX", "Global_Record_Level_Index", " record_index "])
def test_the_names_of_the_record_index(name: str) -> None:
    assert index_kind(name) is RECORD


def test_every_index_is_found_by_all_its_names() -> None:
    for kind in INDEXES:
        assert {index_kind(name) for name in (kind.name, *kind.types)} == {kind}
    assert len({name for kind in INDEXES for name in kind.names}) == sum(len(kind.names) for kind in INDEXES)


def test_names_that_are_none() -> None:
    with pytest.raises(InvalidConfigError, match="expected one of simple"):
        index_kind("btree")


@pytest.mark.parametrize("index", ["record", "partitioned_record", "global_simple", "global_bloom"])
@pytest.mark.parametrize("asked", ["SIMPLE", "GLOBAL_SIMPLE", "RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_a_write_finds_records_as_the_table_says(tmp_path: Path, index: str, asked: str) -> None:
    """With an index that looks into one partition a key of another one would be a second row."""
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", ordering="ts", index=index)
    table.upsert(trips(("a", 1, 1.0, "sf")))
    if index_kind(asked).name == index:
        assert serving(table, {TYPE: asked.lower()}).name == index
        return
    with pytest.raises(InvalidConfigError, match="remove the option"):
        table.upsert(trips(("a", 2, 1.0, "la")), properties={TYPE: asked})
    assert len(table.timeline) == 1


def test_a_table_that_names_no_index_leaves_writes_the_choice(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", index="simple", spark=False)
    table.upsert(trips(("a", 1, 1.0, "sf")))
    assert serving(table, {TYPE: "GLOBAL_SIMPLE"}).is_global
    with pytest.raises(InvalidConfigError, match=r't.index.build\("record"\)'):
        serving(table, {TYPE: "RECORD_INDEX"})


@pytest.mark.parametrize(("moves", "expected"), [("true", [("a", 2, "la")]), ("false", [("a", 2, "sf")])])
def test_where_the_record_index_was_dropped_keys_stay_unique(
    tmp_path: Path, moves: str, expected: list[tuple[str, int, str]]
) -> None:
    """A JVM writer may drop it; the files are searched then, and records move as before."""
    table = hoodie.create(
        tmp_path, SCHEMA, record_key="id", partition_by="city", ordering="ts", properties={MOVES: moves}, spark=False
    )
    table.upsert(trips(("a", 1, 1.0, "sf")))
    store = table.view().store
    update_table_config(store, {"hoodie.table.metadata.partitions": "files"})
    MetadataTable(store, table.view().config).drop_partitions({"record_index"})
    assert serving(table).name == "global_simple"
    table.upsert(trips(("a", 2, 1.0, "la")))
    found = table.to_arrow(columns=["_hoodie_record_key", "ts", "_hoodie_partition_path"])
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    assert [(key, ts, path.removeprefix("city=")) for key, ts, path in rows] == expected
    table.delete(pa.table({"id": ["a"]}))
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("way", ["auto", "seek", "scan"])
def test_the_way_to_look_up_is_an_option_of_the_write(tmp_path: Path, way: str) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", spark=False)
    index = serving(table, {indexes.RECORD_INDEX_LOOK_UP.key: way})
    assert isinstance(index, RecordIndex)
    assert index.look_up == (None if way == "auto" else way)


def test_other_options_of_the_index_belong_to_the_table(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", spark=False)
    with pytest.raises(InvalidConfigError, match="fixed when the table is created"):
        table.upsert(trips(("a", 1, 1.0, "sf")), properties={MOVES: "false"})
    with pytest.raises(InvalidConfigError, match="use the arguments index="):
        hoodie.create(tmp_path / "other", SCHEMA, record_key="id", properties={TYPE: "SIMPLE"})
