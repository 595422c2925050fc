"""Which index a table has, what its properties say of it, which index serves a write, and what indexes read for it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.config import indexes
from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.errors import InvalidConfigError
from hoodie.files.table_properties import update_table_config
from hoodie.index import INDEXES, RECORD, Index, index_kind, index_of, record
from hoodie.index.record.index import RecordIndex
from hoodie.index.record.state import record_index
from hoodie.metadata.table import MetadataTable
from hoodie.table import Table
from hoodie.view.table_view import TableView
from hoodie.write.options import checked_options
from tests.support.index_check import check_index
from tests.support.tables import PLAIN, new_table, plain, values_of

TYPE = indexes.INDEX_TYPE_KEY
MOVES = indexes.RECORD_UPDATE_PARTITION_PATH.key
ENABLED = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}


def serving(table: Table, properties: dict[str, str] | None = None) -> Index:
    """The index that serves a write with these options."""
    view = table.view()
    return index_of(view, checked_options(view.config, properties or {}))


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
def test_what_a_new_table_stores(index: str, expected: dict[str, str]) -> None:
    """JVM writers drop a record index of which one of the two is not stored: the type, or the switch."""
    table = new_table(PLAIN, partition_by="city", index=index)
    raw = table.view().config.raw
    told = {key: value for key, value in raw.items() if "index" in key and ".metadata.partitions" not in key}
    assert told == expected
    assert index_kind(index).stored_properties({}) == expected
    assert serving(table).name == index
    table.upsert(plain(("a", 1, "sf")))
    assert serving(table).name == index


def test_moves_are_stored_as_asked_for() -> None:
    assert RECORD.stored_properties({MOVES: "false"})[MOVES] == "false"
    assert RECORD.stored_properties({}, moves_by_default=False)[MOVES] == "false"
    assert RECORD.stored_properties({MOVES: "true"}, moves_by_default=False)[MOVES] == "true"


def test_every_index_is_found_by_all_its_names() -> None:
    for kind in INDEXES:
        assert {index_kind(name) for name in (kind.name, *kind.types)} == {kind}
    assert len({name for kind in INDEXES for name in kind.names}) == sum(len(kind.names) for kind in INDEXES)
    for name in ("record", "RECORD_INDEX", "Global_Record_Level_Index", " record_index "):
        assert index_kind(name) is RECORD
    with pytest.raises(InvalidConfigError, match="expected one of simple"):
        index_kind("btree")


@pytest.mark.parametrize("index", ["record", "partitioned_record", "global_simple", "global_bloom"])
@pytest.mark.parametrize("asked", ["SIMPLE", "GLOBAL_SIMPLE", "RECORD_INDEX", "RECORD_LEVEL_INDEX"])
def test_a_write_finds_records_as_the_table_says(index: str, asked: str) -> None:
    """With an index that looks into one partition a key of another one would be a second row."""
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city", ordering="ts", index=index)
    if index_kind(asked).name == index:
        assert serving(table, {TYPE: asked.lower()}).name == index
        return
    with pytest.raises(InvalidConfigError, match="remove the option"):
        table.upsert(plain(("a", 2, "la")), properties={TYPE: asked})
    assert len(table.timeline) == 1


def test_a_table_that_names_no_index_leaves_writes_the_choice() -> None:
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city", index="simple")
    assert serving(table, {TYPE: "GLOBAL_SIMPLE"}).is_global
    with pytest.raises(InvalidConfigError, match=r't.index.build\("record"\)'):
        serving(table, {TYPE: "RECORD_INDEX"})


@pytest.mark.parametrize(("moves", "expected"), [("true", [("a", 2, "la")]), ("false", [("a", 2, "sf")])])
def test_where_the_record_index_was_dropped_keys_stay_unique(moves: str, expected: list[tuple[str, int, str]]) -> None:
    """A JVM writer may drop it; the files are searched then, and records move as before."""
    first = plain(("a", 1, "sf"))
    table = new_table(PLAIN, first, partition_by="city", ordering="ts", properties={MOVES: moves})
    store = table.view().store
    update_table_config(store, {"hoodie.table.metadata.partitions": "files"})
    MetadataTable(store, table.view().config).drop_partitions({"record_index"})
    assert serving(table).name == "global_simple"
    table.upsert(plain(("a", 2, "la")))
    found = values_of(table, "_hoodie_record_key", "ts", "_hoodie_partition_path")
    assert [(key, ts, path.removeprefix("city=")) for key, ts, path in found] == expected
    table.delete(pa.table({"id": ["a"]}))
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("way", ["auto", "seek", "scan"])
def test_the_way_to_look_up_is_an_option_of_the_write(way: str) -> None:
    table = new_table(PLAIN, partition_by="city")
    index = serving(table, {indexes.RECORD_INDEX_LOOK_UP.key: way})
    assert isinstance(index, RecordIndex)
    assert index.look_up == (None if way == "auto" else way)


def test_other_options_of_the_index_belong_to_the_table() -> None:
    table = new_table(PLAIN, partition_by="city")
    with pytest.raises(InvalidConfigError, match="fixed when the table is created"):
        table.upsert(plain(("a", 1, "sf")), properties={MOVES: "false"})
    with pytest.raises(InvalidConfigError, match="use the arguments index="):
        new_table(PLAIN, properties={TYPE: "SIMPLE"})


def test_what_several_ask_for_is_read_once() -> None:
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city")
    view, calls = table.view(), [0]

    def counted(view: TableView) -> int:
        calls[0] += 1
        return len(view.timeline)

    assert [view.fact(counted), view.fact(counted)] == [1, 1]
    assert calls == [1]
    assert view.fact(record_index) is view.fact(record_index)


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_write_lists_the_record_index_once(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    table = new_table(PLAIN, plain(("a", 1, "sf")), partition_by="city")
    views: list[TableView] = []
    list_files = record.state.index_history

    def counted(view: TableView) -> object:
        views.append(view)
        return list_files(view)

    monkeypatch.setattr(record.state, "index_history", counted)
    write: Callable[..., object] = getattr(table, operation)
    write(plain(("b", 1, "sf")))
    # Writes that look up keys also count the groups by which keys are staged, before the write begins.
    assert len(views) == 1 + (operation in ("upsert", "insert"))
    check_index(table.view())


def test_the_record_index_is_kept_if_another_index_serves_the_write() -> None:
    """A JVM writer may store another type beside a record index, which stays true to the data all the same."""
    table = new_table(PLAIN, plain(("a", 1, "sf"), ("b", 1, "nyc")), partition_by="city", ordering="ts")
    update_table_config(table.view().store, {INDEX_TYPE_KEY: "GLOBAL_SIMPLE"})
    assert table.upsert(plain(("a", 2, "la"), ("c", 1, "sf"))).look_up is None
    check_index(table.view())
    table.delete(plain(("b", 1, "nyc")).select(["id"]))
    check_index(table.view())
    assert table.to_arrow().num_rows == 2
