"""Base rows that are not superseded and the rows that come from logs are, together, the merged rows of a slice."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.files.logs.log_scan import ScanRule
from hoodie.files.merged_slice import SliceRead, read_file_slice, read_logged_rows, split_slice, superseded_positions
from hoodie.format.log.data_block import DataFormat
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.merging.merge import Overlay, RecordMerger
from hoodie.storage import MemoryStore
from hoodie.timeline import Action, Instant, State, Timeline
from tests.support.logged_slices import SliceBuilder
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

ROUNDS = 25
KEYS = 60
ORDERINGS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 1, 2, 3]),
    (pa.int32(), [None, 0, 1, 2]),
    (pa.float64(), [None, math.nan, -0.0, 0.0, 1.5]),
    (pa.string(), [None, "", "a", "b"]),
]


def added(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.Array]:
    """A merge function that uses both rows, and deletes some."""
    total = pc.add(pc.fill_null(older["n"], 0), pc.fill_null(newer["n"], 0))
    place = newer.schema.get_field_index("n")
    return newer.set_column(place, newer.schema.field(place), total), pc.equal(pc.bit_wise_and(total, 7), 3)


def a_slice(chooser: random.Random, ordering: pa.DataType, values: list[Any]) -> SliceBuilder:
    """A base file of several row groups, possibly none, and log files with updates, late rows, inserts and deletes."""
    fields = [("id", pa.int64()), ("ts", ordering), ("n", pa.int64()), ("name", pa.string())]
    built = SliceBuilder(MemoryStore(), pa.schema([*fields, ("_hoodie_is_deleted", pa.bool_())]))
    built.row_group_rows = chooser.choice([5, 16, 1000])

    def rows(keys: list[int]) -> list[dict[str, Any]]:
        return [
            {
                "id": key,
                "ts": chooser.choice(values),
                "n": chooser.choice([None, *range(20)]),
                "name": chooser.choice([None, "?", "x", "y"]),
                "_hoodie_is_deleted": chooser.random() < 0.1,
            }
            for key in keys
        ]

    stored = sorted(chooser.sample(range(KEYS), k=chooser.randint(1, KEYS)))
    if chooser.random() < 0.3:
        stored += chooser.choices(stored, k=3)  # keys that bulk inserts repeated
    if chooser.random() < 0.9:
        built.base([{**row, "_hoodie_is_deleted": None} for row in rows(stored)])
    for _ in range(chooser.randint(0, 4)):
        low = chooser.randrange(KEYS)
        keys = chooser.sample(range(low, KEYS + 10), k=chooser.randint(1, min(12, KEYS + 10 - low)))
        deletes = [str(key) for key in chooser.sample(range(KEYS), k=chooser.choice([0, 0, 2, 5]))]
        in_order = pa.array([chooser.choice(values) for _ in deletes], ordering)
        built.log(
            rows(keys),
            deletes=deletes,
            orderings=in_order if chooser.random() < 0.5 else None,
            columns=chooser.choice([None, None, None, ["ts", "n"], ["id", "ts", "name"]]),
            data_format=chooser.choice([DataFormat.AVRO, DataFormat.PARQUET]),
        )
    return built


def a_read(chooser: random.Random, built: SliceBuilder) -> SliceRead:
    """One of the merge rules, memory limits, sets of columns, instants and conditions that a read can have."""
    schema = built.full_schema
    merger = chooser.choice(
        [
            RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("ts",)),
            RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("ts", "n")),
            RecordMerger(MergeMode.COMMIT_TIME_ORDERING),
            RecordMerger(MergeMode.CUSTOM, ("ts",), added),
        ]
    )
    columns = chooser.choice([schema.names, ["name", "n"], ["n"], ["_hoodie_record_key", "n"]])
    read = SliceRead(schema=schema, columns=tuple(columns), merger=merger)
    if merger.mode is not MergeMode.CUSTOM and chooser.random() < 0.3:
        mode = chooser.choice(list(PartialUpdateMode))
        read = replace(read, merger=replace(merger, overlay=Overlay(mode, "?")))
    if chooser.random() < 0.3:
        read = replace(read, memory_bytes=chooser.choice([0, 500]))
    if chooser.random() < 0.3:
        read = replace(read, base_filter=pc.field("n") > 15)
    if chooser.random() < 0.2:
        read = replace(read, rule=ScanRule(latest_instant=str(100 + chooser.randrange(3))))
    elif chooser.random() < 0.2:
        read = replace(read, rule=ScanRule(timeline=a_timeline(chooser, built.commits)))
    return read


def a_timeline(chooser: random.Random, commits: int) -> Timeline:
    """A timeline of version 6, in which each block is checked: some commits are not completed."""
    times = [str(100 + number) for number in range(commits)]
    done = {time for time in times if time == "100" or chooser.random() < 0.7}
    return Timeline.of(
        Instant(
            requested_time=time,
            action=Action.DELTA_COMMIT,
            state=State.COMPLETED if time in done else State.INFLIGHT,
            completion_time=time if time in done else None,
        )
        for time in times
    )


@seeded(1, 2, 3, 4)
def test_the_parts_of_a_slice_are_its_merged_rows(seed: int, tmp_path: Path) -> None:
    chooser = random.Random(seed)
    for _ in range(ROUNDS):
        ordering, values = chooser.choice(ORDERINGS)
        built = a_slice(chooser, ordering, values)
        read = replace(a_read(chooser, built), spill_folder=str(tmp_path))
        found, empty = built.file_slice, read.output_schema.empty_table()
        merged = pa.concat_tables([empty, *read_file_slice(built.store, found, read)])
        whole = replace(read, base_filter=None)
        base = pa.concat_tables([empty, *read_file_slice(built.store, replace(found, log_files=()), whole)])
        needed = tuple(name for name in read.columns if name == "n" and read.base_filter is not None)
        positions = list(superseded_positions(built.store, found, replace(read, columns=needed)))
        gone = np.concatenate([np.zeros(0, np.int64), *positions])
        assert len(np.unique(gone)) == len(gone)
        assert read.memory_bytes < 1000 or bool(np.all(np.diff(gone) > 0))
        stays = np.ones(base.num_rows, np.bool_)
        stays[gone] = False
        logged = list(read_logged_rows(built.store, found, read))
        parts = pa.concat_tables([base.filter(pa.array(stays)), *logged])
        if read.base_filter is not None:
            merged, parts = merged.filter(read.base_filter), parts.filter(read.base_filter)
        assert_same_rows(parts, merged, meta=True)
        split = list(split_slice(built.store, found, read))
        gone = np.concatenate([np.zeros(0, np.int64), *(positions for _, positions in split if positions is not None)])
        assert len(np.unique(gone)) == len(gone)
        stays = np.ones(base.num_rows, np.bool_)
        stays[gone] = False
        parts = pa.concat_tables([base.filter(pa.array(stays)), *(rows for rows, _ in split if rows is not None)])
        parts = parts if read.base_filter is None else parts.filter(read.base_filter)
        assert_same_rows(parts, merged, meta=True)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING])
def test_only_row_groups_that_may_have_a_logged_key_are_read(mode: MergeMode) -> None:
    fields = [("id", pa.string()), ("ts", pa.int64()), ("name", pa.string())]
    built = SliceBuilder(MemoryStore(), pa.schema(fields), row_group_rows=10)
    built.base([{"id": f"{number:03}", "ts": 1, "name": "base"} for number in range(100)])
    built.log([{"id": "057", "ts": 2, "name": "log"}, {"id": "200", "ts": 2, "name": "new"}], deletes=["093"])
    read = SliceRead(schema=built.full_schema, columns=("id",), merger=RecordMerger(mode, ("ts",)))
    assert built.base_file is not None
    stored = bytearray(built.store.read(built.base_file.path))
    footer = pq.ParquetFile(pa.BufferReader(bytes(stored))).metadata
    place = footer.schema.to_arrow_schema().names.index("_hoodie_record_key")
    for group in set(range(10)) - {5, 9}:
        # A read of the keys of this row group fails, because their page has a checksum.
        chunk = footer.row_group(group).column(place)
        stored[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    built.store.replace(built.base_file.path, bytes(stored))
    with pytest.raises(CorruptFileError):
        list(read_file_slice(built.store, built.file_slice, read))
    gone = np.concatenate(list(superseded_positions(built.store, built.file_slice, read)))
    assert gone.tolist() == [57, 93]
    logged = pa.concat_tables(list(read_logged_rows(built.store, built.file_slice, read)))
    assert sorted(logged["id"].to_pylist()) == ["057", "200"]
