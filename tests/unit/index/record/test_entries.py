"""Entries of the record index: staged by those who write files, then one log file for each bucket."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.engine import LocalEngine, TaskContext
from hoodie.errors import PartitionPathError
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import LocationColumn
from hoodie.index.record.entries import (
    DELETED,
    EntryStage,
    EntryWriter,
    StagedEntries,
    one_entry_per_key,
    write_entries,
    write_partitioned_entries,
)
from hoodie.metadata.kinds.record_index import FILE_ID_PREFIX
from hoodie.metadata.paths import file_id_of
from hoodie.metadata.slices import read_log
from hoodie.storage import MemoryStore, Store

FOLDER = ".hoodie/.temp/stage-test"
INDEX_FOLDER = ".hoodie/metadata/record_index"
INSTANT_TIME = "20261121120000000"
BUCKETS = 10
GROUPS = KeyGroups(BUCKETS)
FILE_IDS = [file_id_of(FILE_ID_PREFIX, number) for number in range(BUCKETS)]

Change = tuple[str, str, str | None]
"""Record key, partition path, and the file id to which it comes; None: it leaves the partition."""


def staged(store: Store, *tasks: Sequence[Change], groups: KeyGroups | None = GROUPS) -> list[StagedEntries]:
    """What several tasks stage; all are the same attempt, as far as they know."""
    found = []
    for changes in tasks:
        writer = EntryWriter(store, EntryStage(FOLDER, groups), TaskContext(0, 0, 0))
        for key, partition_path, file_id in changes:
            if file_id is None:
                writer.delete(pa.array([key]), partition_path)
            else:
                writer.put(pa.array([key]), partition_path, file_id)
        found.append(writer.close())
    return [entries for entries in found if entries is not None]


def written(store: Store) -> Mapping[str, bytes]:
    """The bytes of all log files, by name."""
    return {info.name: store.read(info.path) for info in store.list(INDEX_FOLDER)}


def entries_of(store: Store) -> dict[str, tuple[str, str, int] | None]:
    """What all log files say: locations by key, None for a deletion. A key that two blocks name fails the test."""
    found: dict[str, tuple[str, str, int] | None] = {}
    for info in store.list(INDEX_FOLDER):
        for block in read_log(store, info.path).blocks:
            keys = block.keys.cast(pa.string()).to_pylist()
            assert not found.keys() & set(keys)
            if block.values is None:
                found |= dict.fromkeys(keys)
                continue
            assert keys == sorted(keys, key=str.encode)
            column = LocationColumn.parse(block.values, schema_json=metadata_schema(), path=info.path)
            places = [column.locations[code] for code in column.codes.tolist()]
            found |= {
                key: (place.partition_path, place.file_id, place.instant_ms)
                for key, place in zip(keys, places, strict=True)
            }
    return found


def write(store: Store, entries: Sequence[StagedEntries]) -> int:
    """Write the log files; how many inserts lost."""
    done = write_entries(LocalEngine(), store.spec, entries, instant_time=INSTANT_TIME, instant_ms=7, file_ids=FILE_IDS)
    assert sorted((stat.path or "").rpartition("/")[2] for stat in done.stats) == sorted(written(store))
    return done.duplicates


FILE_A, FILE_B = (f"{letter * 8}-0000-0000-0000-{letter * 12}-0" for letter in "ab")


def test_a_put_beats_a_deletion_whatever_task_made_it() -> None:
    moved = [("k", "sf", None)], [("k", "la", FILE_B)]
    for tasks in (moved, moved[::-1]):
        store = MemoryStore()
        assert write(store, staged(store, *tasks)) == 0
        assert entries_of(store) == {"k": ("la", FILE_B, 7)}


def test_of_several_puts_one_counts_and_the_others_are_told() -> None:
    store = MemoryStore()
    tasks = [("k", "sf", FILE_A), ("other", "sf", FILE_A)], [("k", "la", FILE_B), ("k", "la", FILE_B)]
    assert write(store, staged(store, *tasks)) == 2
    assert entries_of(store) == {"k": ("la", FILE_B, 7), "other": ("sf", FILE_A, 7)}


def test_repeated_deletions_are_one() -> None:
    store = MemoryStore()
    assert write(store, staged(store, [("k", "sf", None), ("k", "la", None)], [("k", "sf", None)])) == 0
    assert entries_of(store) == {"k": None}


def test_each_key_is_in_the_log_file_of_its_bucket() -> None:
    store = MemoryStore()
    names = ["", "a", "é", "日本", "😀", "z" * 300, *(f"k{number}" for number in range(50))]
    write(store, staged(store, [(name, "sf", FILE_A) for name in names]))
    assert entries_of(store).keys() == set(names)
    for number, file_id in enumerate(FILE_IDS):
        blocks = read_log(store, f"{INDEX_FOLDER}/.{file_id}_{INSTANT_TIME}.log.1_0-0-0").blocks
        keys = pa.concat_arrays([block.keys.cast(pa.string()) for block in blocks])
        assert set(file_group_index(keys, BUCKETS).tolist()) == {number}


def test_to_repeat_it_changes_no_byte() -> None:
    """A task may run again, or twice at once, even after the commit."""
    store = MemoryStore()
    changes = [(f"k{number}", "sf", FILE_A if number % 3 else None) for number in range(200)]
    entries = staged(store, changes[:120], changes[120:])
    write(store, entries)
    before, said_before = written(store), entries_of(store)
    write(store, entries)
    after, says_after = written(store), entries_of(store)
    assert says_after == said_before
    assert [_first_difference(name, before[name], after[name]) for name in before if before[name] != after[name]] == []
    assert after.keys() == before.keys()


def _first_difference(name: str, before: bytes, after: bytes) -> tuple[str, int, int, int, bytes, bytes]:
    """Name, sizes, offset and the bytes there, so that a difference of the codec and one of the content tell apart."""
    offset = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), -1)
    around = slice(max(0, offset - 16), offset + 64)
    return name, len(before), len(after), offset, before[around], after[around]


def test_nothing_is_written_for_nothing() -> None:
    store = MemoryStore()
    assert staged(store, []) == []
    writer = EntryWriter(store, EntryStage(FOLDER, None), TaskContext(0, 0, 0))
    writer.put(pa.chunked_array([], pa.string()), "sf", FILE_A)
    assert writer.close() is None
    assert write(store, []) == 0
    assert store.list("", recursive=True) == []


def test_two_jobs_of_one_write_stage_beside_each_other() -> None:
    """`insert_overwrite` stages on a cluster and then on threads: stage, task and attempt may have the same numbers."""
    store = MemoryStore()
    first, second = staged(store, [("k", "sf", FILE_A)], [("gone", "la", None)])
    assert first.path != second.path
    write(store, [second, first])
    assert entries_of(store) == {"k": ("sf", FILE_A, 7), "gone": None}


def test_a_partitioned_index_has_buckets_for_each_partition() -> None:
    store = MemoryStore()
    tasks = [("k", "city=sf", FILE_A), ("k", "city=la", FILE_B)], [("k", "city=sf", None), ("j", "city=la", None)]
    known = {"city=sf": ["record-index-city%3Dsf-0000-0"]}
    write_partitioned_entries(
        LocalEngine(),
        store.spec,
        staged(store, *tasks, groups=None),
        instant_time=INSTANT_TIME,
        instant_ms=7,
        file_ids=known,
    )
    found: dict[tuple[str, str], bool] = {}
    for info in store.list(INDEX_FOLDER):
        for block in read_log(store, info.path).blocks:
            is_put = block.values is not None
            found |= {(info.name.partition("_")[0], key.decode()): is_put for key in block.keys.to_pylist()}
    sf, la = ".record-index-city%3Dsf-0000-0", ".record-index-city%3Dla-0000-0"
    assert found == {(sf, "k"): True, (la, "k"): True, (la, "j"): False}


def test_a_partition_that_cannot_have_buckets_is_refused() -> None:
    store = MemoryStore()
    entries = staged(store, [("k", "version=1.5", FILE_A)], groups=None)
    with pytest.raises(PartitionPathError, match="index='record'"):
        write_partitioned_entries(
            LocalEngine(), store.spec, entries, instant_time=INSTANT_TIME, instant_ms=7, file_ids={}
        )


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "é", "😀"]), st.integers(-1, 3)), max_size=12))
def test_settled_leaves_one_entry_of_each_key(entries: list[tuple[str, int]]) -> None:
    keys = pa.array([key for key, _ in entries], pa.string())
    codes = np.array([code for _, code in entries], np.int32)
    settled_keys, settled_codes, lost = one_entry_per_key(keys, codes)
    expected = {key: max(code for other, code in entries if other == key) for key, _ in entries}
    assert settled_keys.to_pylist() == sorted(expected, key=str.encode)
    assert dict(zip(settled_keys.to_pylist(), settled_codes.tolist(), strict=True)) == expected
    puts = sum(code != DELETED for _, code in entries)
    assert lost == puts - sum(code != DELETED for code in expected.values())


def test_tasks_do_not_grow_with_the_file_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they share travels once, with the function: 64 groups of buckets would carry it 64 times."""
    store = MemoryStore()
    entries = staged(
        store, [(f"k{number}", "sf", f"{number:08}-0000-0000-0000-000000000000-0") for number in range(500)]
    )
    sizes: list[int] = []
    run = LocalEngine.run

    def watched(engine: LocalEngine, function: Callable[..., Any], tasks: list[Any], *_: Any) -> list[Any]:
        sizes.extend(len(pickle.dumps(task)) for task in tasks)
        return run(engine, pickle.loads(pickle.dumps(function)), tasks)

    monkeypatch.setattr(LocalEngine, "run", watched)
    assert write(store, entries) == 0
    assert len(sizes) == BUCKETS
    assert max(sizes) < 1_000
    assert len(entries_of(store)) == 500
