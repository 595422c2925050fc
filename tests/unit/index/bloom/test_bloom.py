"""The bloom indexes in one process: what they find, what they trust, and which files they open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.format.hashes.bloom import (
    FOOTER_KEY,
    TYPE_FOOTER_KEY,
    BloomFilter,
    BloomFilterType,
    FilterBuilder,
    FilterOptions,
)
from hoodie.storage import Store
from hoodie.table import Table
from tests.support.fault_store import FaultStore
from tests.support.rows import assert_same_rows
from tests.support.tables import PLAIN, new_table, plain

BLOOMS = ("bloom", "global_bloom")
SMALL = {"hoodie.index.bloom.num_entries": "100", "hoodie.parquet.small.file.limit": "0"}
STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
UNSORTED = ["", "A", "a", "é", "日", "😀", "\ue000", "\uffff", "z\ue000", "z😀", "z"]


def table_of(index: str, path: Path | None = None, **options: Any) -> Table:
    properties = {**SMALL, **options.pop("properties", {})}
    wanted = {"partition_by": "city", "ordering": "ts", "index": index, "properties": properties, **options}
    return new_table(PLAIN, path=path, **wanted)


def base_files(path: Path) -> list[Path]:
    return sorted(path.glob("city=*/*.parquet"))


def with_footer(file: Path, changes: dict[str, str | None]) -> None:
    """Write a base file again with other footer keys, and its length into no listing: tables here list the storage."""
    rows = pq.read_table(file)
    found = {key.decode(): value.decode() for key, value in (pq.read_metadata(file).metadata or {}).items()}
    kept = {key: value for key, value in {**found, **changes}.items() if value is not None}
    with pq.ParquetWriter(file, rows.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(rows.replace_schema_metadata(None))
        writer.add_key_value_metadata(kept)


@pytest.mark.parametrize(("index", "kind"), [("bloom", "SIMPLE"), ("global_bloom", "DYNAMIC_V0")])
def test_files_carry_the_filter_of_their_keys_with_the_options_of_the_table(
    tmp_path: Path, index: str, kind: str
) -> None:
    properties = {"hoodie.bloom.index.filter.type": kind, "hoodie.index.bloom.num_entries": "3"}
    table = table_of(index, tmp_path, type="merge_on_read", properties=properties)
    table.bulk_insert(plain(*((f"k{n}", 1, "sf") for n in range(8))))
    table.upsert(plain(*((f"k{n}", 2, "sf") for n in range(4, 12))))
    assert table.schedule_compaction(properties={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    table.cluster(by=["ts"])
    files = base_files(tmp_path)
    assert len(files) == 4  # bulk insert, inserts of the upsert, the compaction, the clustering
    for file in files:
        footer = pq.read_metadata(file).metadata
        builder = FilterBuilder(FilterOptions(filter_type=BloomFilterType(kind), entries=3))
        builder.add(pq.read_table(file, columns=["_hoodie_record_key"])["_hoodie_record_key"])
        assert footer[FOOTER_KEY.encode()].decode() == builder.build().to_base64()
        assert footer.get(TYPE_FOOTER_KEY.encode(), b"SIMPLE").decode() == kind


@pytest.mark.parametrize("index", BLOOMS)
@pytest.mark.parametrize(
    "properties",
    [{}, STATISTICS, {"hoodie.bloom.index.prune.by.ranges": "false"}],
    ids=["footers", "stats", "all"],
)
def test_keys_beyond_ascii_are_found_in_every_file(index: str, properties: dict[str, str]) -> None:
    """The JVM's order of such keys is not the order of their bytes."""
    keys = [f"{text}{number}" for number in range(3) for text in UNSORTED]
    table = table_of(index, properties=properties)
    for part in range(4):
        table.insert(plain(*((key, 1, "sf") for key in keys[part::4])))
    result = table.upsert(plain(*((key, 2, "sf") for key in [*keys, "new"])))
    assert (result.inserted, result.updated) == (1, len(keys))
    assert_same_rows(table.to_arrow(PLAIN.names), plain(*((key, 2, "sf") for key in [*keys, "new"])), key="id")


@pytest.mark.parametrize("index", BLOOMS)
def test_comparisons_that_are_divided_find_the_same(index: str) -> None:
    """Tasks of two comparisons: every file is divided, and so are the sorted keys."""
    table = table_of(index, properties={"hoodie.bloom.index.keys.per.bucket": "2"})
    rows = [(f"k{n:02}", 1, ("sf", "la")[n % 2]) for n in range(30)]
    table.upsert(plain(*rows[:20]))
    table.upsert(plain(*rows[10:]))
    newer = [(key, 3, city) for key, _, city in rows[5:]]
    assert table.upsert(plain(*newer)).updated == 25
    assert_same_rows(table.to_arrow(PLAIN.names), plain(*rows[:5], *newer), key="id")


@pytest.mark.parametrize("index", BLOOMS)
def test_footers_of_a_few_files_are_read_once(tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without statistics the footer gives the range; it is not read again for the filter."""
    table = table_of(index, tmp_path, properties={"hoodie.metadata.index.column.stats.enable": "false"})
    for start in range(3):
        table.bulk_insert(plain(*((f"k{n}", 1, "sf") for n in range(start, 30, 3))))
    absent = plain(*((f"k{n}x", 1, "sf") for n in range(10, 25)))
    for kept, expected in ((40, 3), (2, 6)):
        monkeypatch.setattr("hoodie.index.bloom.ranges._KEPT_FOOTERS", kept)
        opened: list[str] = []

        def noted(store: Store, file: BaseFile, opened: list[str] = opened) -> Any:
            opened.append(file.path)
            return open_base_file(store, file)

        monkeypatch.setattr("hoodie.index.bloom.ranges.open_base_file", noted)
        assert table.delete(absent).deleted == 0
        assert len(opened) == expected, opened


def test_a_filter_is_trusted_and_a_file_without_one_may_have_every_key(tmp_path: Path) -> None:
    table = table_of("bloom", tmp_path)
    table.upsert(plain(("a", 1, "sf"), ("c", 1, "sf")))
    empty = FilterBuilder(FilterOptions(entries=10)).build()
    for filter_text, kind, expected in (
        (None, None, 0),
        (BloomFilter.saturated().to_base64(), "DYNAMIC_V0", 0),
        (empty.to_base64(), "DYNAMIC_V0", 1),
    ):
        newest = max(base_files(tmp_path), key=lambda file: file.stem.rpartition("_")[2])
        with_footer(newest, {FOOTER_KEY: filter_text, TYPE_FOOTER_KEY: kind})
        table.index.rebuild()
        result = table.upsert(plain(("a", 2, "sf")))
        assert result.inserted == expected


@pytest.mark.parametrize(
    ("index", "properties"), [("bloom", {}), ("global_bloom", STATISTICS)], ids=["footers", "statistics"]
)
def test_time_ordered_keys_open_few_files(index: str, properties: dict[str, str]) -> None:
    """Eight files of ten keys; the keys of a batch are in two of them."""
    table = table_of(index, properties=properties)
    for number in range(8):
        table.insert(plain(*((f"k{number * 10 + n:02}", 1, "sf") for n in range(10))))
    store = FaultStore(table.view().store, count_reads=True)
    store.register()
    Table(store).upsert(plain(("k39", 2, "sf"), ("k40", 2, "sf"), ("k99", 2, "sf")))
    opened = [call.path for call in store.calls if call.operation == "open_input" and call.path.endswith(".parquet")]
    more_than_a_range = {path for path in opened if opened.count(path) > (1 if not properties else 0)}
    assert len(more_than_a_range) == 2
    assert len(set(opened)) == (8 if not properties else 2)


@pytest.mark.parametrize(("before", "index"), [("partitioned_record", "bloom"), ("record", "global_bloom")])
def test_after_a_switch_keys_that_only_logs_hold_are_found(tmp_path: Path, before: str, index: str) -> None:
    """The record index put inserts into logs, and its files have filters that say maybe to every key."""
    properties = {"hoodie.parquet.small.file.limit": "1000000"}
    table = table_of(before, tmp_path, type="merge_on_read", properties=properties)
    table.upsert(plain(("b", 1, "sf")))
    table.upsert(plain(("a", 1, "sf"), ("c", 1, "sf")))
    table.delete(pa.table({"id": ["c"], "city": ["sf"]}))
    table.index.switch(index)
    (file,) = base_files(tmp_path)
    assert pq.read_table(file, columns=["id"])["id"].to_pylist() == ["b"]
    result = table.upsert(plain(("a", 2, "sf"), ("b", 2, "sf"), ("d", 2, "sf")))
    assert (result.inserted, result.updated) == (1, 2)
    expected = plain(("a", 2, "sf"), ("b", 2, "sf"), ("d", 2, "sf"))
    assert_same_rows(table.to_arrow(PLAIN.names), expected, key="id")
    assert table.verify(full=True).ok
