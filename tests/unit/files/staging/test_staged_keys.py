"""Staged keys: beside the staged rows, in groups by bucket, with the numbers by which rows are found again."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.engine import ArrowDataset, LocalEngine
from hoodie.files.staging.staged import StageReader, StageWriter
from hoodie.files.staging.staged_keys import GROUPS_MAX, PLACE, ROW, KeyGroups, KeyStage, KeyWriter, read_keys
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.table.versions import TableVersion
from hoodie.records.change import KIND, PARTITION_PATH, RECORD_KEY, change_schema
from hoodie.storage import MemoryStore
from hoodie.write.staging import Preparation, stage
from tests.support.key_generators import key_generator_for

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
KEYS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=40)


@given(KEYS, st.sampled_from([1, 2, 10, 63, 64, 65, 1000]))
def test_every_key_is_in_the_group_of_its_bucket(keys: list[str], buckets: int) -> None:
    groups = KeyGroups(buckets)
    assert groups.count <= GROUPS_MAX
    found = list(groups.split(pa.array(keys, pa.string())))
    assert sorted(row for _, rows in found for row in rows.tolist()) == list(range(len(keys)))
    for group, rows in found:
        assert rows.tolist() == sorted(rows.tolist())
        numbers = file_group_index(pa.array([keys[row] for row in rows.tolist()], pa.string()), buckets)
        assert set((numbers % groups.count).tolist()) == {group}


def batch(names: list[str], cities: list[str]) -> pa.RecordBatch:
    """Changes with these keys; the ordering value tells the place in the input."""
    columns = {
        KIND: pa.array([0] * len(names), pa.int8()),
        RECORD_KEY: pa.array(names, pa.string()),
        PARTITION_PATH: pa.array(cities, pa.string()),
        "id": pa.array(names, pa.string()),
        "ts": pa.array(range(len(names)), pa.int64()),
        "city": pa.array(cities, pa.string()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=change_schema(SCHEMA))


def test_keys_know_their_rows_and_their_places() -> None:
    """Rows are cut by partition; their numbers are those of the cut rows, their places those of the input."""
    store = MemoryStore()
    key_stage = KeyStage(KeyGroups(3), ("ts",))
    keys = KeyWriter(store, "keys", change_schema(SCHEMA), key_stage)
    rows = StageWriter(store, "rows", change_schema(SCHEMA), keys)
    names = [f"é{number}" for number in range(20)]
    rows.write(batch(names, [("sf", "la", "nyc")[number % 3] for number in range(20)]))
    runs, staged = rows.close(), keys.close()
    assert [run.partition_path for run in runs] == ["sf", "la", "nyc"]
    with StageReader(store) as reader:
        ordered = pa.Table.from_batches([reader.read(run) for run in runs])
    found = read_keys(store, staged)
    assert sorted(found[ROW].to_pylist()) == list(range(20))
    for row, place, key, ts in zip(*(found[name].to_pylist() for name in (ROW, PLACE, RECORD_KEY, "ts")), strict=True):
        assert ordered[RECORD_KEY][row].as_py() == key == names[place]
        assert ts == place
    for part in staged:
        numbers = file_group_index(read_keys(store, [part])[RECORD_KEY].combine_chunks(), 3)
        assert set(numbers.tolist()) == {part.group}


def test_several_tasks_count_on() -> None:
    """Numbers and places go over all files of a write, in the order of the caller's data."""
    store, count = MemoryStore(), 25_000
    names = [f"k{number}" for number in range(count)]
    cities = [("sf", "la")[number % 2] for number in range(count)]
    data = pa.table({"id": names, "ts": pa.array(range(count), pa.int64()), "city": cities}, schema=SCHEMA)
    generator = key_generator_for(
        table_version=TableVersion.NINE, kind="SIMPLE", record_key_fields=("id",), partition_fields=("city",)
    )
    staged = stage(
        LocalEngine(4),
        ArrowDataset(data),
        Preparation(schema=SCHEMA, key_generator=generator),
        store.spec,
        "stage",
        key_stage=KeyStage(KeyGroups(10), ("ts",)),
    )
    assert staged.key_groups == KeyGroups(10)
    assert len({run.path for run in staged.runs}) > 1
    found = read_keys(store, staged.keys)
    assert sorted(found[ROW].to_pylist()) == list(range(count))
    assert found[PLACE].combine_chunks().equals(found["ts"].combine_chunks().cast(pa.int64()))
    with StageReader(store) as reader:
        ordered = pa.Table.from_batches([reader.read(run) for run in staged.runs])
    assert (
        ordered[RECORD_KEY]
        .take(found[ROW].combine_chunks())
        .combine_chunks()
        .equals(found[RECORD_KEY].combine_chunks())
    )
