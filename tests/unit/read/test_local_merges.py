"""Small logs are merged once in a process, and large ones not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import MissingFileError
from hoodie.files.logs.log_scan import ScanRule
from hoodie.files.merged_slice import SliceRead
from hoodie.files.stored_columns import SAME_COLUMNS
from hoodie.format.table.merge_config import MergeMode
from hoodie.read import local_merges
from hoodie.read.local import SliceScan
from hoodie.read.local_merges import RecentResults, Superseded, key_of_all, merge_locally, superseded_locally
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import MemoryStore
from tests.support.logged_slices import SliceBuilder

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])


def newer(older: pa.Table, newer: pa.Table) -> pa.Table:
    return newer


def a_slice() -> SliceBuilder:
    built = SliceBuilder(MemoryStore(), SCHEMA)
    built.base([{"id": f"{number:03}", "ts": 1} for number in range(100)])
    built.log([{"id": "001", "ts": 2}, {"id": "002", "ts": 0}, {"id": "new", "ts": 1}], deletes=["066"])
    return built


def read_of(built: SliceBuilder, mode: MergeMode = MergeMode.EVENT_TIME_ORDERING, **options: Any) -> SliceRead:
    merger = RecordMerger(mode, ("ts",), newer if mode is MergeMode.CUSTOM else None)
    return SliceRead(schema=built.full_schema, columns=("id", "ts"), merger=merger, **options)


def scan_of(built: SliceBuilder, mode: MergeMode = MergeMode.EVENT_TIME_ORDERING, **options: Any) -> SliceScan:
    return SliceScan(SCHEMA, ("id", "ts"), None, None, None, None, read_of(built, mode, **options), SAME_COLUMNS)


def test_a_slice_is_merged_once_for_the_same_rules() -> None:
    built = a_slice()
    scan, slices = scan_of(built), [built.file_slice]
    first = merge_locally(built.store, slices, scan, SCHEMA)
    assert first is not None
    assert first[0].words.tolist() == [1 << 1, 1 << 2]
    assert first[0].rows is not None
    assert first[0].rows.to_pylist() == [{"id": "001", "ts": 2}, {"id": "new", "ts": 1}]
    found = superseded_locally(built.store, slices, Superseded(read_of(built)))
    assert found[0].words.tolist() == first[0].words.tolist()
    for path in built.file_slice.paths:
        built.store.delete(path)
    again = merge_locally(built.store, [built.file_slice], scan_of(built), SCHEMA)
    assert again is not None
    assert again[0] is first[0]
    assert key_of_all(again) == key_of_all(first) is not None
    for changed in (scan_of(built, rule=ScanRule(latest_instant="100")), replace(scan, columns=("id",))):
        with pytest.raises(MissingFileError):
            merge_locally(built.store, slices, changed, SCHEMA)
    with pytest.raises(MissingFileError):
        merge_locally(MemoryStore(), slices, scan, SCHEMA)
    built.log([{"id": "003", "ts": 9}])
    with pytest.raises(MissingFileError):
        merge_locally(built.store, [built.file_slice], scan, SCHEMA)


def test_a_merge_by_a_function_of_the_caller_is_not_kept() -> None:
    built = a_slice()
    merges = merge_locally(built.store, [built.file_slice], scan_of(built, MergeMode.CUSTOM), SCHEMA)
    assert merges is not None
    assert key_of_all(merges) is None
    for path in built.file_slice.paths:
        built.store.delete(path)
    with pytest.raises(MissingFileError):
        merge_locally(built.store, [built.file_slice], scan_of(built, MergeMode.CUSTOM), SCHEMA)


def test_rows_above_the_limit_are_not_merged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    built = a_slice()
    monkeypatch.setattr(local_merges, "ROWS_BYTES_MAX", 20)
    for _ in range(2):
        assert merge_locally(built.store, [built.file_slice], scan_of(built), SCHEMA) is None


def test_the_results_that_were_used_last_are_kept() -> None:
    kept: RecentResults[str] = RecentResults(10, 100)
    kept.keep("a", "A", 4)
    kept.keep("b", "B", 4)
    assert kept.get("a") == "A"
    kept.keep("c", "C", 4)
    assert [kept.get(key) for key in "abc"] == ["A", None, "C"]
    kept.keep("c", "CC", 6)
    assert [kept.get(key) for key in "ac"] == ["A", "CC"]
    kept.keep("d", "D", 11)
    assert [kept.get(key) for key in "acd"] == ["A", "CC", None]

    def use(number: int, context: object) -> None:
        kept.keep(number % 3, str(number % 3), 5)
        assert kept.get(number % 3) in (None, str(number % 3))

    LocalEngine(4).run(use, range(300))
    assert sum(kept.get(key) is not None for key in (0, 1, 2, "a", "c")) == 2


def test_results_without_bytes_are_limited_by_their_number() -> None:
    kept: RecentResults[str] = RecentResults(10, 2)
    for key in ("a", "b", "a", "c"):
        kept.keep(key, key.upper(), 0)
    assert [kept.get(key) for key in "abc"] == ["A", None, "C"]
