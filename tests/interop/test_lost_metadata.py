"""A metadata table or record index of ours that got lost, built anew by us: the JVM continues the table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.index_check import check_index
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}


def _trips(numbers: range, ts: int) -> pa.Table:
    rows = [{"id": f"k{n:03}", "ts": ts, "fare": n + ts / 8, "city": ("sf", "nyc")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _newest(changes: dict[int, range]) -> pa.Table:
    """The newest version of each key; a greater ts is newer."""
    newest = {number: ts for ts in sorted(changes) for number in changes[ts]}
    return pa.concat_tables([_trips(range(number, number + 1), ts) for number, ts in newest.items()])


def _table(path: Path, table_type: str) -> hoodie.Table:
    table = hoodie.create(
        path, SCHEMA, record_key="id", partition_by="city", ordering="ts", name="trips", type=table_type, spark=False
    )  # fmt: skip
    table.upsert(_trips(range(10), 1))
    table.upsert(_trips(range(4), 2))
    return table


def _jvm_upsert(jvm: Jvm, path: Path, table_type: str, rows: pa.Table) -> None:
    jvm.write(
        rows, path, table_name="trips", key="id", partition="city", ordering="ts",
        table_type=table_type.upper(), options=HIVE,
    )  # fmt: skip


def _check(jvm: Jvm, path: Path, expected: pa.Table) -> None:
    """Three readers agree, and the JVM's look-up in the record index is the data."""
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(SCHEMA.names), expected, key="id")
    assert_same_rows(jvm.read(path, SCHEMA.names), expected, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), expected, key="id")
    table = hoodie.open(path, spark=False)
    check_index(table.view())
    keys = expected["id"].to_pylist()
    ours = table.record_locations(keys)
    found = {
        key: (partition, file_id)
        for key, partition, file_id in zip(
            ours["_hoodie_record_key"].to_pylist(),
            ours["partition_path"].to_pylist(),
            ours["file_id"].to_pylist(),
            strict=True,
        )
    }
    assert jvm.locations(path, keys) == found


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_the_jvm_continues_a_table_whose_metadata_table_was_removed_and_built_anew(
    jvm: Jvm, tmp_path: Path, table_type: str
) -> None:
    for name in ("next write", "call"):
        path = tmp_path / name.replace(" ", "_")
        table = _table(path, table_type)
        shutil.rmtree(path / ".hoodie" / "metadata")
        with pytest.raises(Exception, match="Failed to instantiate Metadata table"):
            _jvm_upsert(jvm, path, table_type, _trips(range(8, 12), 3))
        if name == "call":
            table.index.rebuild()
        else:
            with pytest.warns(hoodie.HoodieWarning, match="listed from storage"):
                assert hoodie.open(path, spark=False).to_arrow().num_rows == 10
        notes = table.upsert(_trips(range(2, 12), 4)).notes
        assert any("built anew" in note for note in notes) == (name == "next write")
        _check(jvm, path, _newest({1: range(10), 2: range(4), 4: range(2, 12)}))
        _jvm_upsert(jvm, path, table_type, _trips(range(8, 14), 5))
        if table_type == "merge_on_read":
            jvm.compact(path)
        table.upsert(_trips(range(12, 16), 6))
        _jvm_upsert(jvm, path, table_type, _trips(range(14, 17), 7))
        changes = {1: range(10), 2: range(4), 4: range(2, 12), 5: range(8, 14), 6: range(12, 16), 7: range(14, 17)}
        _check(jvm, path, _newest(changes))


def test_an_index_that_a_jvm_client_without_index_options_dropped_is_built_again(jvm: Jvm, tmp_path: Path) -> None:
    """A rollback by a Java client drops it; the procedure run_compaction keeps it, as our options are in the table."""
    path = tmp_path / "trips"
    table = _table(path, "merge_on_read")
    table.upsert(_trips(range(3), 3))
    jvm.compact(path)
    assert table.view().config.metadata_partitions == ("files", "record_index")
    table.upsert(_trips(range(5), 4))
    latest = table.timeline.latest()
    assert latest is not None
    jvm.rollback(path, latest.requested_time, table_name="trips", table_version=9)
    assert table.view().config.metadata_partitions == ("files",)
    expected = _newest({1: range(10), 2: range(4), 3: range(3)})
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key="id")
    with pytest.warns(hoodie.HoodieWarning, match="the record index of .* is missing"):
        assert table.read_keys(["k001"])["ts"].to_pylist() == [3]
    assert table.index.verify().problems == {"missing index": 1}
    notes = table.upsert(_trips(range(1, 12), 5)).notes
    assert "the record index was missing and was built again, with 10 entries" in notes
    _check(jvm, path, _newest({1: range(10), 2: range(4), 3: range(3), 5: range(1, 12)}))
    _jvm_upsert(jvm, path, "merge_on_read", _trips(range(10, 14), 6))
    table.upsert(_trips(range(13, 15), 7))
    jvm.compact(path)
    later = {6: range(10, 14), 7: range(13, 15)}
    _check(jvm, path, _newest({1: range(10), 2: range(4), 3: range(3), 5: range(1, 12), **later}))
