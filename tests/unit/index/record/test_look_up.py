"""Buckets of the record index: their names, look-ups and compaction against a dict, and against the JVM's tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hoodie
from hoodie.files.slices import FileSlice
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.index.record.file_groups import partition_path_of, partitioned_file_id
from hoodie.index.record.look_up import LookUp, find
from hoodie.index.record.state import record_index
from hoodie.metadata import slices
from hoodie.metadata.delta_commit import base_file_to_bytes
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.paths import metadata_layout
from hoodie.metadata.slice_content import RowBlock, SliceContent
from hoodie.metadata.slices import SliceReader
from hoodie.storage import LocalStore
from hoodie.table import Table
from hoodie.timeline import load_timeline
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from tests.support.fault_store import FaultStore
from tests.support.tables import FEW_BUCKETS, new_table

KEYS = st.sampled_from(["a", "b", "c", "dd", "é", "😀", "k-100", "k-101"])
COMMITS = st.lists(st.dictionaries(KEYS, st.one_of(st.none(), st.integers(0, 3)), max_size=6), max_size=5)
LOCATIONS = [RecordLocation(f"p{number}", f"f-{number}", number) for number in range(4)]


def sorted_columns(rows: dict[str, int]) -> tuple[pa.Array, pa.Array]:
    keys = sorted(rows, key=str.encode)
    return pa.array(keys, pa.string()), pa.array([LOCATIONS[rows[key]].to_bytes() for key in keys], pa.binary())


def content_of(base: dict[str, int] | None, commits: list[dict[str, int | None]]) -> SliceContent:
    """A bucket with a base file, and a block of rows and one of deletes for each commit."""
    blocks = []
    for commit in commits:
        keys, values = sorted_columns({key: value for key, value in commit.items() if value is not None})
        gone = pa.array([key for key, value in commit.items() if value is None], pa.string()).cast(pa.binary())
        blocks.append(RowBlock(keys.cast(pa.binary()), values, metadata_schema(), "1", frozenset()))
        blocks.append(RowBlock(gone, None, "", "1", frozenset()))
    reader = None if base is None else HFileReader(base_file_to_bytes(*sorted_columns(base)), path="base")
    return SliceContent(FileSlice("p", "f", "0", None), reader, tuple(blocks), 0)


@given(st.one_of(st.none(), st.dictionaries(KEYS, st.integers(0, 3))), COMMITS, st.sampled_from(list(LookUp)))
def test_the_newest_entry_counts(
    base: dict[str, int] | None, commits: list[dict[str, int | None]], look_up: LookUp
) -> None:
    expected: dict[str, int | None] = dict(base or {})
    for commit in commits:
        expected |= commit
    asked = ["a", "b", "c", "dd", "é", "😀", "k-100", "k-101", "never"]
    content = content_of(base, commits)
    column = find(content, pa.array(asked), look_up=look_up)
    found = [column.locations[code] if code >= 0 else None for code in column.codes.tolist()]
    assert found == [None if (number := expected.get(key)) is None else LOCATIONS[number] for key in asked]

    keys, values = RecordIndexKind().compact(content, file_name="x")
    live = {key: number for key, number in expected.items() if number is not None}
    wanted_keys, wanted_values = sorted_columns(live)
    assert keys.equals(wanted_keys)
    assert values.equals(wanted_values)


@pytest.mark.parametrize("name", ["v8_cow", "v8_mor", "v9_cow", "v9_mor"])
def test_every_key_of_the_jvms_tables_is_found_in_its_bucket(golden_tables: Path, name: str) -> None:
    store = LocalStore(golden_tables / name)
    view = TableView.load(TableState(store))
    metadata_timeline = load_timeline(store, metadata_layout(view.config))
    buckets = SliceReader(store).read(RecordIndexKind(), visible_instants(metadata_timeline, view.timeline))
    assert len(buckets) == 10
    groups = {(found.partition_path, found.file_id) for found in list_slices(view)}
    keys = pa.array([f"key-{number:06d}" for number in range(500)])
    homes = file_group_index(keys, len(buckets))
    held = 0
    for number, bucket in enumerate(buckets):
        mine = keys.filter(pa.array(homes == number))
        others = keys.filter(pa.array(homes != number))
        column = find(bucket, mine)
        held += int((column.codes >= 0).sum())
        assert {(location.partition_path, location.file_id) for location in column.locations} <= groups
        assert (find(bucket, others).codes == -1).all()
    assert held == 340


SEEN = {
    "city=sf": "record-index-city%3Dsf-0000-0",
    "city=a%b": "record-index-city%3Da%25b-0000-0",
    "city=a=b": "record-index-city%3Da%3Db-0000-0",
    "city=a b": "record-index-city%3Da b-0000-0",
    "city=ü_x-y": "record-index-city%3Dü%5Fx%2Dy-0000-0",
    "city=x/y": "record-index-city%3Dx%2Fy-0000-0",
    "": "record-index--0000-0",
}


@pytest.mark.parametrize(("partition_path", "file_id"), SEEN.items())
def test_names_lead_there_and_back(partition_path: str, file_id: str) -> None:
    assert partitioned_file_id(partition_path, 0) == file_id
    assert partition_path_of(file_id) == partition_path


def test_a_bucket_of_the_global_index_belongs_to_no_partition() -> None:
    assert partition_path_of("record-index-0003-0") is None


def test_a_dot_is_refused() -> None:
    with pytest.raises(hoodie.PartitionPathError, match="has a dot"):
        partitioned_file_id("city=a.b", 0)


LONG_KEYS = [f"{number:05d}-" + "k" * 40 for number in range(12_000)]


@pytest.fixture(scope="module")
def made() -> Table:
    """A table whose two buckets were compacted into base files of several blocks each."""
    rows = pa.table({"id": LONG_KEYS})
    properties = {**FEW_BUCKETS, "hoodie.metadata.compact.max.delta.commits": "2"}
    table = new_table(rows.schema, properties=properties)
    table.bulk_insert(rows)
    for _ in range(2):
        table.upsert(rows.slice(0, 1))
    state = record_index(table.view())
    assert state is not None
    assert all(bucket.file_slice.base_file for bucket in state.file_groups)
    return table


def test_few_blocks_of_a_large_bucket_are_read(made: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made.record_locations(LONG_KEYS)
    assert whole["file_id"].null_count == 0
    monkeypatch.setattr(slices, "WHOLE_BYTES_MAX", 0)
    counting = FaultStore(made.view().store, count_reads=True)
    counting.register()
    table = Table(counting)
    found = table.record_locations([LONG_KEYS[7], LONG_KEYS[11_000], "nobody"])
    base_files = [call.operation for call in counting.calls if "record_index" in call.path]
    assert "read_range" in base_files
    assert "read" not in base_files
    assert found["file_id"].to_pylist() == [whole["file_id"][7].as_py(), whole["file_id"][11_000].as_py(), None]
    assert table.record_locations(LONG_KEYS).equals(whole)
