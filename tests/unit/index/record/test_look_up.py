"""Buckets of the record index: look-ups and compaction against a dict, and against the JVM's tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.files.slices import FileSlice
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.index.record.look_up import LookUp, find
from hoodie.metadata.delta_commit import base_file_to_bytes
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.slice_content import RowBlock, SliceContent
from hoodie.metadata.slices import SliceReader
from hoodie.storage import LocalStore
from hoodie.timeline import load_timeline
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

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
    metadata_timeline = load_timeline(store, view.layout, folder=".hoodie/metadata/.hoodie")
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
