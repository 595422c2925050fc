"""Merged reading of file slices: what comes out, what is read for it, and what is held meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.files import base_file
from hoodie.files.logs.log_scan import ScanRule
from hoodie.files.merged_slice import SliceRead, deleted_keys, logged_keys, read_file_slice
from hoodie.files.slices import latest_slices
from hoodie.format.log.data_block import DataFormat
from hoodie.format.schema.table_schema import META_FIELDS, with_meta_fields
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.merging.merge import Overlay, RecordMerger, table_merger
from hoodie.storage import LocalStore, MemoryStore, open_store
from hoodie.timeline import Action, Instant, State, Timeline
from hoodie.view.listing import list_from_storage
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support.logged_slices import SliceBuilder
from tests.support.rollback_block import rollback_block

EVENT = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("ts",))
COMMIT = RecordMerger(MergeMode.COMMIT_TIME_ORDERING)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("ts", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
    ]
)


@pytest.fixture
def built() -> SliceBuilder:
    return SliceBuilder(MemoryStore(), SCHEMA)


def row(number: int, ts: int | None = 10, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": number, "ts": ts, "name": name, "tags": [str(name)], **more}


def reading(built: SliceBuilder, merger: RecordMerger = EVENT, columns: Sequence[str] = (), **more: Any) -> SliceRead:
    schema = built.full_schema
    return SliceRead(schema=schema, columns=tuple(columns or schema.names), merger=merger, **more)


def read(built: SliceBuilder, merger: RecordMerger = EVENT, columns: Sequence[str] = (), **more: Any) -> pa.Table:
    how = reading(built, merger, columns, **more)
    parts = list(read_file_slice(built.store, built.file_slice, how))
    assert all(part.schema.equals(how.output_schema, check_metadata=True) for part in parts)
    return pa.concat_tables(parts) if parts else how.output_schema.empty_table()


def named(table: pa.Table) -> dict[int, str]:
    keys = table["id"].to_pylist()
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, table["name"].to_pylist(), strict=True))


@pytest.mark.parametrize("data_format", list(DataFormat))
def test_updates_inserts_and_deletes(built: SliceBuilder, data_format: DataFormat) -> None:
    built.base([row(number, name="base") for number in range(10)])
    built.log([row(1, 11, "a"), row(2, 9, "late"), row(20, 5, "new")], deletes=["3", "99"], data_format=data_format)
    built.log([row(1, 11, "tie"), row(4, 20, "b")], deletes=["4"], data_format=data_format)
    table = read(built)
    expected = {number: "base" for number in (0, 2, 5, 6, 7, 8, 9)} | {1: "tie", 20: "new"}
    assert named(table) == expected
    rows = {found["id"]: found for found in table.to_pylist()}
    assert (rows[1]["_hoodie_commit_time"], rows[1]["tags"]) == ("102", ["tie"])
    assert rows[2]["_hoodie_commit_time"] == "100"
    # In the order of the base file, changed rows of each piece last; then what only logs have.
    assert table["id"].to_pylist() == [0, 2, 5, 6, 7, 8, 9, 1, 20]
    assert named(read(built, COMMIT)) == expected | {2: "late"}


def test_deletes_with_ordering_values(built: SliceBuilder) -> None:
    built.base([row(number, 10, "base") for number in range(4)])
    built.log(deletes=["0", "1", "2"], orderings=pa.array([9, 10, None], pa.int64()))
    assert named(read(built)) == {0: "base", 3: "base"}
    built.log([row(1, 5, "early"), row(2, 5, "back")])
    # The delete of 1 has ordering 10; that of 2 has none, gives way to the row, which loses against the stored one.
    assert named(read(built)) == {0: "base", 2: "base", 3: "base"}


def test_ordering_values_of_another_type_do_not_count(built: SliceBuilder) -> None:
    built.base([row(0, 10, "base")])
    built.log(deletes=["0"], orderings=pa.array([1], pa.int32()))
    assert named(read(built)) == {}


@pytest.mark.parametrize(("old", "new"), [(pa.int32(), pa.int64()), (pa.int64(), pa.float64())])
def test_ordering_values_of_deletes_are_widened_with_their_column(old: pa.DataType, new: pa.DataType) -> None:
    types = [pa.schema([("id", pa.int64()), ("ts", kind)]) for kind in (old, new)]
    built = SliceBuilder(MemoryStore(), types[1])
    built.base([{"id": number, "ts": 10} for number in range(3)], types[0])
    built.log(deletes=["0", "1"], orderings=pa.array([5, 15], old), schema=types[0])
    assert read(built)["id"].to_pylist() == [0, 2]


def test_several_ordering_fields(built: SliceBuilder) -> None:
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("ts", "name"))
    built.base([row(0, 10, "m"), row(1, 10, "m")])
    orderings = pa.StructArray.from_arrays([pa.array([10, 10]), pa.array(["l", "n"])], ["f0", "f1"])
    built.log(deletes=["0", "1"], orderings=orderings)
    assert named(read(built, merger)) == {0: "m"}


def test_rows_that_say_that_they_are_deletes() -> None:
    extra = [pa.field("_hoodie_is_deleted", pa.bool_()), pa.field("op", pa.string())]
    built = SliceBuilder(MemoryStore(), pa.schema([*SCHEMA, *extra]))
    built.base([row(number, 10, "base") for number in range(6)])
    gone: dict[str, Any] = {"_hoodie_is_deleted": True}
    built.log([row(0, 11, **gone), row(1, 9, **gone), row(2, 11, op="D"), row(3, 11, op="U"), row(4, None, **gone)])
    found = named(read(built, columns=["id", "name"], delete_field="op", delete_marker="D"))
    assert found == {1: "base", 3: None, 5: "base"}
    assert named(read(built, columns=["id", "name"])) == {1: "base", 2: None, 3: None, 5: "base"}


def test_a_zero_in_an_int_column_orders_nothing() -> None:
    schema = pa.schema([SCHEMA.field("id"), pa.field("ts", pa.int32()), *list(SCHEMA)[2:]])
    built = SliceBuilder(MemoryStore(), pa.schema([*schema, pa.field("_hoodie_is_deleted", pa.bool_())]))
    built.base([row(number, 10, "base") for number in range(3)])
    built.log([row(0, 0, _hoodie_is_deleted=True), row(1, 1, _hoodie_is_deleted=True)])
    assert named(read(built)) == {1: "base", 2: "base"}


def test_the_operation_column_tells_deletes() -> None:
    built = SliceBuilder(MemoryStore(), pa.schema([*SCHEMA, pa.field("_hoodie_operation", pa.string())]))
    built.base([row(number, 10, "base") for number in range(4)])
    operations = ["D", "-U", "U"]
    built.log([row(number, 11, "log", _hoodie_operation=text) for number, text in enumerate(operations)])
    assert named(read(built, columns=["name", "id"])) == {2: "log", 3: "base"}


def test_partial_blocks(built: SliceBuilder) -> None:
    built.base([row(number, 10, "base") for number in range(5)])
    built.log([{"id": 0, "ts": 11, "tags": ["x"]}, {"id": 1, "ts": 9, "tags": ["x"]}], columns=["ts", "tags"])
    built.log([{"id": 0, "ts": 12, "name": "y"}, {"id": 7, "ts": 1, "name": "y"}], columns=["id", "ts", "name"])
    built.log([row(2, 20, "full")])
    built.log([{"id": 2, "ts": 19, "name": "late"}, {"id": 3, "ts": 30, "name": None}], columns=["ts", "name"])
    rows = {found["id"]: found for found in read(built).to_pylist()}
    told = {number: (found["ts"], found["name"], found["tags"]) for number, found in rows.items()}
    assert told == {
        0: (12, "y", ["x"]),
        1: (10, "base", ["base"]),
        2: (20, "full", ["full"]),
        3: (30, None, ["base"]),
        4: (10, "base", ["base"]),
        7: (1, "y", None),
    }
    assert rows[0]["_hoodie_commit_time"] == "102"
    # Only the asked columns take part.
    assert sorted(filter(None, read(built, columns=["tags"])["tags"].to_pylist())) == [["base"]] * 3 + [["full"], ["x"]]
    late = {found["id"]: found["name"] for found in read(built, COMMIT).to_pylist()}
    assert late == {0: "y", 1: "base", 2: "late", 3: None, 4: "base", 7: "y"}


def test_partial_update_modes(built: SliceBuilder) -> None:
    built.base([row(0, 10, "base"), row(1, 10, None), row(2, 10, "base")])
    built.log([row(0, 11, None, tags=None), row(1, 9, "late"), row(2, 11, "?")])
    ignores, fills = Overlay(PartialUpdateMode.IGNORE_DEFAULTS), Overlay(PartialUpdateMode.FILL_UNAVAILABLE, "?")
    ignoring = read(built, replace(EVENT, overlay=ignores), ["id", "name"])
    assert named(ignoring) == {0: "base", 1: "late", 2: "?"}
    assert named(read(built, replace(EVENT, overlay=fills))) == {0: None, 1: None, 2: "base"}


def add_ts(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Add the two orderings; the rest is the newer row's."""
    assert older.column_names == newer.column_names == SCHEMA.names
    return newer.set_column(1, "ts", pc.add(older["ts"], newer["ts"]))


def test_a_python_merger_sees_all_data_columns(built: SliceBuilder) -> None:
    merger = RecordMerger(MergeMode.CUSTOM, ("ts",), add_ts)
    built.base([row(number, 10, "base") for number in range(3)])
    built.log([row(0, 1, "a"), row(1, 1, "a")])
    built.log([row(0, 2, "b"), row(9, 4, "b")], deletes=["1"])
    table = read(built, merger, ["_hoodie_commit_time", "ts"])
    assert [tuple(found.values()) for found in table.to_pylist()] == [("100", 10), ("102", 13), ("102", 4)]


def test_only_logs(built: SliceBuilder) -> None:
    built.log([row(1, name="a"), row(2, name="b")])
    built.log(deletes=["1"])
    assert named(read(built)) == {2: "b"}
    built.log(deletes=["2"])
    assert read(built).num_rows == 0


def test_as_of_an_instant(built: SliceBuilder) -> None:
    built.base([row(0, name="base")])
    built.log([row(0, name="a")])
    built.log([row(0, name="b")], deletes=["0"])
    assert [named(read(built, rule=ScanRule(latest_instant=time))) for time in ("100", "101", "102")] == [
        {0: "base"},
        {0: "a"},
        {},
    ]


def test_version_6_blocks_are_checked_one_by_one(built: SliceBuilder) -> None:
    built.base([row(0, name="base"), row(1, name="base")])
    built.log([row(0, name="a")])
    built.log([row(0, name="pending")])
    built.log([row(1, name="rolled back")])
    built.add("104", rollback_block(instant_time="104", target_instant_time="103"))
    states = {"100": State.COMPLETED, "101": State.COMPLETED, "102": State.INFLIGHT, "103": State.COMPLETED}
    timeline = Timeline.of(
        Instant(
            requested_time=time,
            action=Action.DELTA_COMMIT,
            state=state,
            completion_time=time if state is State.COMPLETED else None,
        )
        for time, state in states.items()
    )
    assert named(read(built, rule=ScanRule(timeline=timeline))) == {0: "a", 1: "base"}


def test_old_blocks_and_old_base_files_get_the_current_schema() -> None:
    old = pa.schema([SCHEMA.field("id"), pa.field("ts", pa.int32()), SCHEMA.field("name")])
    built = SliceBuilder(MemoryStore(), SCHEMA)
    built.base([row(number, 10, "base") for number in range(3)], old)
    built.log([row(0, 11, "a")], schema=old)
    built.log([row(1, 2**40, "b")])
    rows = {found["id"]: (found["ts"], found["name"], found["tags"]) for found in read(built).to_pylist()}
    assert rows == {0: (11, "a", None), 1: (2**40, "b", ["b"]), 2: (10, "base", None)}


@pytest.mark.parametrize("data_format", [DataFormat.AVRO, DataFormat.PARQUET])
@pytest.mark.parametrize("merger", ["event", "custom"])
@pytest.mark.parametrize("memory_bytes", [1, 1 << 27])
def test_a_new_struct_with_a_required_field_can_be_written(
    data_format: DataFormat, merger: str, memory_bytes: int
) -> None:
    place = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())])
    places = pa.list_(pa.field("element", place))
    new = pa.schema([SCHEMA.field("id"), SCHEMA.field("ts"), pa.field("place", place), pa.field("all", places)])
    old = pa.schema([SCHEMA.field("id"), SCHEMA.field("ts")])
    built = SliceBuilder(MemoryStore(), new)
    built.base([{"id": number, "ts": 10} for number in range(4)], old)
    there = {"x": 1, "y": "b"}
    built.log([{"id": 1, "ts": 20, "place": there, "all": [there]}, {"id": 2, "ts": 20}], data_format=data_format)
    built.log([{"id": 7, "ts": 20}], deletes=["3"], schema=old, data_format=data_format)
    rule = EVENT if merger == "event" else RecordMerger(MergeMode.CUSTOM, function=lambda _, newer: newer)
    merged = read(built, rule, memory_bytes=memory_bytes)
    sink = pa.BufferOutputStream()
    pq.write_table(merged, sink)
    written = pq.read_table(pa.BufferReader(sink.getvalue())).sort_by("id").select(list(new.names)).to_pylist()
    empty = {"ts": 20, "place": None, "all": None}
    assert written == [
        {"id": 0, **empty, "ts": 10},
        {"id": 1, "ts": 20, "place": there, "all": [there]},
        {"id": 2, **empty},
        {"id": 7, **empty},
    ]


def test_keys_of_deletes_and_of_logged_rows(built: SliceBuilder) -> None:
    built.base([row(number) for number in range(3)])
    built.log([row(0), row(5)], deletes=["1", "2"])
    built.log([row(0), row(1)], deletes=["2"])
    how = reading(built)
    assert deleted_keys(built.store, built.file_slice, how).to_pylist() == ["1", "2"]
    assert logged_keys(built.store, built.file_slice, how).to_pylist() == ["0", "5", "1"]
    first = replace(how, rule=ScanRule(latest_instant="101"))
    assert logged_keys(built.store, built.file_slice, first).to_pylist() == ["0", "5"]
    empty = replace(built.file_slice, log_files=())
    assert deleted_keys(built.store, empty, how).to_pylist() == []


def test_batches_that_no_log_names_come_out_as_they_are(built: SliceBuilder) -> None:
    built.row_group_rows = 10
    built.base([row(number, name="base") for number in range(30)])
    built.log([row(15, name="log")])
    parts = list(read_file_slice(built.store, built.file_slice, reading(built)))
    assert sum(part.num_rows for part in parts) == 30
    assert named(pa.concat_tables(parts))[15] == "log"


@pytest.fixture
def many(tmp_path: Path) -> SliceBuilder:
    built = SliceBuilder(MemoryStore(), SCHEMA, row_group_rows=100)
    built.base([row(number, 10, "base") for number in range(1000)])
    built.log([row(number, 9 + number % 3, "one") for number in range(0, 1200, 3)])
    built.log([row(number, 11, "two") for number in range(0, 1200, 7)], deletes=[str(n) for n in range(0, 900, 11)])
    built.log([{"id": number, "ts": 30, "tags": ["p"]} for number in range(0, 1300, 13)], columns=["ts", "tags"])
    return built


@pytest.mark.parametrize("merger", [EVENT, COMMIT, RecordMerger(MergeMode.CUSTOM, ("ts",), add_ts)])
def test_spilling_changes_nothing_but_the_order(many: SliceBuilder, tmp_path: Path, merger: RecordMerger) -> None:
    expected = read(many, merger)
    for memory_bytes in (0, 20_000):
        found = read(many, merger, memory_bytes=memory_bytes, spill_folder=str(tmp_path))
        assert found.sort_by("_hoodie_record_key").equals(expected.sort_by("_hoodie_record_key"))
    assert list(tmp_path.iterdir()) == []


def test_spilled_files_are_gone_whatever_ends_the_reading(many: SliceBuilder, tmp_path: Path) -> None:
    how = reading(many, memory_bytes=0, spill_folder=str(tmp_path))
    rows = read_file_slice(many.store, many.file_slice, how)
    next(rows)
    assert len(list(tmp_path.iterdir())) == 1
    rows.close()
    assert list(tmp_path.iterdir()) == []
    many.store.replace(f"p/{many.file_slice.base_file.name}" if many.file_slice.base_file else "", b"no Parquet")
    with pytest.raises(CorruptFileError):
        list(read_file_slice(many.store, many.file_slice, how))
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_slice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_file, "_BATCH_BYTES", 1 << 20)
    built = SliceBuilder(LocalStore(tmp_path / "table"), SCHEMA, row_group_rows=300)
    built.base([row(number, 10, f"{number}" * 200) for number in range(6_000)])
    for start in range(0, 6_000, 500):
        built.log([row(number, 11, f"{number}" * 200) for number in range(start, start + 500)])
    how = reading(built, memory_bytes=1 << 20, spill_folder=str(tmp_path))
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        rows = sum(part.num_rows for part in read_file_slice(built.store, built.file_slice, how))
    finally:
        pa.set_memory_pool(usual)
    assert rows == 6_000
    # Either side has 12 MB: names and tags of 800 characters.
    assert pool.max_memory() < 6 << 20


def filtered(
    built: SliceBuilder, where: pc.Expression, merger: RecordMerger = EVENT, **more: Any
) -> tuple[int, pa.Table]:
    """How many rows came out, and those that meet the condition, which are the ones that count."""
    found = read(built, merger, base_filter=where, **more)
    exact = found.filter(where).sort_by("id")
    assert exact.equals(read(built, merger).filter(where).sort_by("id"))
    return found.num_rows, exact


class TestSkippingRowGroups:
    """Ten row groups of 100 rows each, their keys and `ts` ascending."""

    @pytest.fixture
    def built(self) -> SliceBuilder:
        built = SliceBuilder(MemoryStore(), SCHEMA, row_group_rows=100)
        built.base([row(number, number, "base") for number in range(1000, 2000)])
        return built

    def test_without_logs(self, built: SliceBuilder) -> None:
        assert filtered(built, pc.field("ts") >= 1950)[0] == 100

    def test_event_time_keeps_row_groups_that_an_entry_may_meet(self, built: SliceBuilder) -> None:
        # Without the stored row the late one would come out, and would meet the condition.
        built.log([row(1550, 100, "late"), row(1250, 5000, "newer")])
        many, exact = filtered(built, pc.field("ts") < 1000)
        assert (many, exact.num_rows) == (200, 0)
        many, exact = filtered(built, pc.field("ts") > 3000)
        assert (many, named(exact)) == (200, {1250: "newer"})

    def test_commit_time_skips_whatever_the_logs_name(self, built: SliceBuilder) -> None:
        built.log([row(1550, 100, "late"), row(1250, 5000, "newer")], deletes=["1999"])
        many, exact = filtered(built, pc.field("ts") < 1000, COMMIT)
        assert (many, named(exact)) == (2, {1550: "late"})
        many, exact = filtered(built, pc.field("ts") >= 1950, COMMIT)
        assert many == 101
        assert exact.num_rows == 50

    def test_partial_blocks_need_the_stored_row(self, built: SliceBuilder) -> None:
        built.log([{"id": 1550, "name": "x"}], columns=["name"])
        many, exact = filtered(built, pc.field("name") == "x", COMMIT)
        assert (many, exact["ts"].to_pylist()) == (100, [1550])

    def test_conditions_on_keys(self, built: SliceBuilder) -> None:
        built.log([row(1550, 100, "late"), row(1250, 5000, "newer")])
        many, exact = filtered(built, pc.field("id") == 1251, base_filter_on_keys=True)
        assert (many, exact.num_rows) == (101, 1)

    def test_spilled(self, built: SliceBuilder) -> None:
        built.log([row(1550, 100, "late"), row(1250, 5000, "newer")])
        assert filtered(built, pc.field("ts") > 3000, memory_bytes=0)[1].num_rows == 1
        assert filtered(built, pc.field("ts") > 3000, COMMIT, memory_bytes=0)[0] == 2


def test_golden_tables_of_all_versions_have_the_same_rows(golden_tables: Path) -> None:
    six, eight, nine = (golden_rows(golden_tables / f"{version}_mor")[1] for version in ("v6", "v8", "v9"))
    data = ["_hoodie_record_key", *(name for name in six.column_names if name not in META_FIELDS)]
    assert six.num_rows == 340
    assert by_key(six.select(data)) == by_key(eight.select(data)) == by_key(nine.select(data))


@pytest.mark.parametrize("version", ["v6", "v8", "v9"])
def test_what_hudi_compacted_is_what_we_merge(golden_tables: Path, version: str) -> None:
    view, _ = golden_rows(golden_tables / f"{version}_mor")
    (compaction,) = (each for each in view.timeline.writes().completed() if each.action is Action.COMMIT)
    before = max(each.requested_time for each in view.timeline if each.requested_time < compaction.requested_time)
    _, merged = golden_rows(golden_tables / f"{version}_mor", as_of=before)
    _, compacted = golden_rows(golden_tables / f"{version}_mor", as_of=compaction.requested_time)
    kept = [name for name in merged.column_names if name != "_hoodie_file_name"]
    assert by_key(merged.select(kept)) == by_key(compacted.select(kept))


def golden_rows(path: Path, as_of: str | None = None) -> tuple[TableView, pa.Table]:
    store = open_store(path)
    view = TableView.load(TableState(store))
    version = view.config.version
    listing = list_from_storage(store, view.config, view.timeline, view.archive())
    slices = latest_slices(listing, view.timeline, {}, as_of=as_of, version=version)
    schema = with_meta_fields(view.schema().arrow)
    read = SliceRead(
        schema=schema,
        columns=tuple(schema.names),
        merger=table_merger(view.config),
        rule=ScanRule(latest_instant=as_of, timeline=view.timeline if version.validates_log_blocks else None),
    )
    return view, pa.concat_tables(part for found in slices for part in read_file_slice(store, found, read))


def by_key(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.sort_by("_hoodie_record_key").to_pylist()
    return rows
