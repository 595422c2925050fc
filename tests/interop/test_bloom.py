"""The bloom indexes: JVM writers and this library take turns on one table, and find each other's keys.

The turns at random are in test_alternation.py.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.format.hashes.bloom import FOOTER_KEY, TYPE_FOOTER_KEY, BloomFilter, FilterBuilder
from hoodie.metadata.kinds.bloom_filters import filter_options
from tests.interop.judges import Jvm, assert_all_read, create_trips
from tests.interop.shared_trips import SCHEMA, jvm_write, newest_of, trips
from tests.support.rows import assert_same_rows

FILTERS = {
    "hoodie.bloom.index.filter.type": "DYNAMIC_V0",
    "hoodie.index.bloom.num_entries": "7",
    "hoodie.index.bloom.fpp": "0.001",
    "hoodie.bloom.index.filter.dynamic.max.entries": "20",
}
SMALL = {"hoodie.parquet.small.file.limit": "0"}


def check_filters(path: Path, options: dict[str, str]) -> int:
    """Every base file, of either writer, has the filter that these options and its keys make; return their number."""
    files = sorted(path.glob("city=*/*.parquet"))
    for file in files:
        footer = {key.decode(): value.decode() for key, value in pq.read_metadata(file).metadata.items()}
        builder = FilterBuilder(filter_options(options))
        builder.add(pq.read_table(file, columns=["_hoodie_record_key"])["_hoodie_record_key"])
        assert footer[FOOTER_KEY] == builder.build().to_base64(), file
        assert footer.get(TYPE_FOOTER_KEY, "SIMPLE") == options["hoodie.bloom.index.filter.type"]
        assert footer.get(TYPE_FOOTER_KEY) != "SIMPLE", "the JVM leaves it out"
    return len(files)


def check(jvm: Jvm, path: Path, changes: dict[int, range]) -> None:
    assert_all_read(jvm, path, newest_of(changes))


@pytest.mark.parametrize(("index", "table_type", "kind"), [("bloom", "copy_on_write", "SIMPLE"), ("global_bloom", "merge_on_read", "DYNAMIC_V0")])  # fmt: skip  # noqa: E501
def test_both_write_our_table_and_every_file_has_the_same_filter(
    jvm: Jvm, tmp_path: Path, index: str, table_type: str, kind: str
) -> None:
    """The JVM takes index and options of the filter from the table's properties, unasked."""
    path = tmp_path / "trips"
    options = {**FILTERS, **SMALL, "hoodie.bloom.index.filter.type": kind}
    create_trips(path, SCHEMA, type=table_type, index=index, properties=options, spark=False)
    table = hoodie.open(path, spark=False)
    table.bulk_insert(trips(range(0, 40), 1))
    table.upsert(trips(range(30, 60), 2))
    jvm_write(jvm, path, table_type, trips(range(20, 80), 3))
    result = table.upsert(trips(range(70, 90), 4))
    assert (result.inserted, result.updated) == (10, 10)
    jvm_write(jvm, path, table_type, trips(range(85, 95), 5), options=SMALL)
    assert_all_read(
        jvm, path, newest_of({1: range(40), 2: range(30, 60), 3: range(20, 80), 4: range(70, 90), 5: range(85, 95)})
    )
    assert check_filters(path, options) > 8


def test_a_table_of_the_jvm_is_continued_with_its_bloom_index(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM stores no index type: the call names it. Rows move between partitions, by both."""
    path, table_type = tmp_path / "trips", "merge_on_read"
    named = {"hoodie.index.type": "GLOBAL_BLOOM"}
    jvm_write(jvm, path, table_type, trips(range(0, 40), 1), options={**named, **SMALL})
    table = hoodie.open(path, spark=False)
    result = table.upsert(trips(range(30, 50), 2), properties={**named, **SMALL})
    assert (result.inserted, result.updated) == (10, 10)
    moved = pa.Table.from_pylist(
        [{"id": f"k{n:03}", "ts": 3, "fare": 0.0, "city": "la"} for n in (1, 2, 45)], schema=SCHEMA
    )
    table.upsert(moved, properties=named)
    back = trips(range(2, 4), 4)
    jvm_write(jvm, path, table_type, back, options=named)
    rows = {row["id"]: row for row in newest_of({1: range(40), 2: range(30, 50)}).to_pylist()}
    rows |= {row["id"]: row for row in [*moved.to_pylist(), *back.to_pylist()]}
    expected = pa.Table.from_pylist(list(rows.values()), schema=SCHEMA)
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key="id")
    assert_same_rows(jvm.read(path, SCHEMA.names), expected, key="id")
    ours = [file for file in path.glob("city=la/*.parquet")]
    footer = pq.read_metadata(ours[0]).metadata
    bloom = BloomFilter.parse(footer[FOOTER_KEY.encode()], footer[TYPE_FOOTER_KEY.encode()].decode())
    assert bloom.bit_count > 2_000_000, "the filter of the JVM's defaults, as the call names a bloom index"


METADATA = {
    "hoodie.index.type": "BLOOM",
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    **SMALL,
}


def test_the_filters_in_the_metadata_table_are_kept_up_to_date_by_both(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM fails if a file has no row, and writes a key twice if a row has the filter of another file."""
    path = tmp_path / "trips"
    jvm_write(jvm, path, "copy_on_write", trips(range(0, 40), 1), options=METADATA)
    table = hoodie.open(path, spark=False)
    assert "bloom_filters" in table.view().config.metadata_partitions
    assert table.index.verify("bloom_filters").ok
    result = table.upsert(trips(range(30, 60), 2), properties=METADATA)
    assert (result.inserted, result.updated) == (20, 10)
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert table.index.verify("bloom_filters").ok
    jvm_write(jvm, path, "copy_on_write", trips(range(20, 70), 3), options=METADATA)
    assert {"bloom_filters", "column_stats"} <= set(hoodie.open(path, spark=False).view().config.metadata_partitions)
    assert table.index.verify("bloom_filters").ok
    assert table.index.build("bloom_filters").counts["files"] == table.index.verify("bloom_filters").checked["files"]
    table.upsert(trips(range(65, 80), 4), properties=METADATA)
    jvm_write(jvm, path, "copy_on_write", trips(range(10, 90, 3), 5), options=METADATA)
    assert table.index.verify("bloom_filters").ok
    assert_all_read(
        jvm, path, newest_of({1: range(40), 2: range(30, 60), 3: range(20, 70), 4: range(65, 80), 5: range(10, 90, 3)})
    )
