"""Indexes of the JVM over our commits: bloom look-ups in our files, and metadata partitions that we do not maintain."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import HIVE, Jvm, assert_all_read, create_trips
from tests.interop.shared_trips import SCHEMA, trips

SKIPPING = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}


def _jvm_upsert(jvm: Jvm, path: Path, rows: pa.Table, options: dict[str, str]) -> None:
    jvm.write_trips(rows, path, options={**HIVE, **options})


BLOOM = {
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "bloom by the metadata table": {
        "hoodie.index.type": "BLOOM",
        "hoodie.bloom.index.use.metadata": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
    },
}


@pytest.mark.parametrize("name", BLOOM)
def test_a_bloom_index_of_the_jvm_finds_every_row_in_our_files(jvm: Jvm, tmp_path: Path, name: str) -> None:
    """A table of ours with files of both, and of ours over the JVM's; several files to a partition."""
    path = tmp_path / "trips"
    small = {"hoodie.parquet.small.file.limit": "0"}
    create_trips(path, SCHEMA, index="simple")
    _jvm_upsert(jvm, path, trips(range(0, 5), 1), small)
    table = hoodie.open(path)
    table.bulk_insert(trips(range(5, 30), 1))
    table.upsert(trips(range(20, 60), 2), properties=small)
    _jvm_upsert(jvm, path, trips(range(10, 70), 3), {**BLOOM[name], **small})
    table.upsert(trips(range(50, 80), 4))
    table.upsert(trips(range(65, 90), 5))
    _jvm_upsert(jvm, path, trips(range(0, 95, 5), 6), BLOOM[name])
    newest = {n: 1 for n in range(10)} | dict.fromkeys(range(10, 70), 3) | dict.fromkeys(range(50, 80), 4)
    newest |= dict.fromkeys(range(65, 90), 5) | dict.fromkeys(range(0, 95, 5), 6)
    expected = pa.concat_tables([trips(range(n, n + 1), ts) for n, ts in newest.items()])
    assert_all_read(jvm, path, expected, spark=None)


def test_the_index_that_we_store_in_a_table_binds_writers_of_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    """Unasked, the JVM takes our global index and moves a record; asked for another index, it refuses the write."""
    path = tmp_path / "trips"
    table = create_trips(path, SCHEMA, index="global_simple")
    table.upsert(trips(range(4), 1))
    moved = pa.Table.from_pylist([{"id": "k000", "ts": 2, "fare": 0.0, "city": "nyc"}], schema=SCHEMA)
    _jvm_upsert(jvm, path, moved, {})
    expected = pa.concat_tables([moved, trips(range(1, 4), 1)])
    assert_all_read(jvm, path, expected, spark=None)
    with pytest.raises(Exception, match=r"Config conflict.*\s+.*hoodie.index.type"):
        _jvm_upsert(jvm, path, moved, {"hoodie.index.type": "BLOOM"})
    assert_all_read(jvm, path, expected, spark=None)


INDEXED = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def test_statistics_of_the_jvm_are_kept_up_to_date_by_our_commits(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    _jvm_upsert(jvm, path, trips(range(0, 40), 1), INDEXED)
    table = hoodie.open(path)
    indexes = {"column_stats", "partition_stats", "record_index"}
    assert indexes <= set(table.view().config.metadata_partitions)

    # k005 leaves the range of fares that the JVM's statistics know, k007 goes, k100 they never saw.
    table.upsert(pa.Table.from_pylist([{"id": "k005", "ts": 2, "fare": 900.0, "city": "nyc"}], schema=SCHEMA))
    table.upsert(trips(range(100, 101), 2))
    table.delete(pa.table({"id": ["k007"], "city": ["nyc"]}))
    assert set(table.view().config.metadata_partitions) == {"files", *indexes}
    assert table.index.verify("column_stats").ok
    rows = table.to_arrow(SCHEMA.names)
    assert rows.num_rows == 40
    assert_all_read(jvm, path, rows, spark=None)
    _assert_skipping_is_right(jvm, path)

    _jvm_upsert(jvm, path, trips(range(100, 102), 3), INDEXED)
    assert indexes <= set(table.view().config.metadata_partitions)
    expected = pa.concat_tables([table.to_arrow(SCHEMA.names, where="id < 'k100'"), trips(range(100, 102), 3)])
    assert expected.num_rows == 41
    assert_all_read(jvm, path, expected, spark=None)
    _assert_skipping_is_right(jvm, path)


def _assert_skipping_is_right(jvm: Jvm, path: Path) -> None:
    """Statistics and record index, where there are any, hide no row and show no deleted one."""
    frame = jvm.spark.read.format("hudi").options(**SKIPPING).load(str(path))

    def ids(condition: str) -> list[str]:
        return sorted(row[0] for row in frame.where(condition).select("id").collect())

    assert ids("fare > 800") == ["k005"]
    assert ids("fare >= 99") == ["k005", *(["k100", "k101"] if "k101" in ids("true") else ["k100"])]
    assert ids("_hoodie_record_key = 'k100'") == ["k100"]
    assert ids("id in ('k005', 'k007', 'k020')") == ["k005", "k020"]
    assert ids("city = 'sf' and fare < 1") == ["k000"]
