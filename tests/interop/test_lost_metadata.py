"""A metadata table or record index of ours that got lost, built anew by us: the JVM continues the table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hoodie
from tests.interop.judges import Jvm
from tests.interop.shared_trips import SCHEMA, check_both, jvm_write, new_table, newest_of, trips
from tests.support.rows import assert_same_rows


def _table(path: Path, table_type: str) -> hoodie.Table:
    table = new_table(path, table_type)
    table.upsert(trips(range(10), 1))
    table.upsert(trips(range(4), 2))
    return table


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("built_by", ["next write", "call"])
def test_the_jvm_continues_a_table_whose_metadata_table_was_removed_and_built_anew(
    jvm: Jvm, tmp_path: Path, table_type: str, built_by: str
) -> None:
    path = tmp_path / "trips"
    table = _table(path, table_type)
    shutil.rmtree(path / ".hoodie" / "metadata")
    with pytest.raises(Exception, match="Failed to instantiate Metadata table"):
        jvm_write(jvm, path, table_type, trips(range(8, 12), 3))
    if built_by == "call":
        table.index.rebuild()
    else:
        with pytest.warns(hoodie.HoodieWarning, match="listed from storage"):
            assert hoodie.open(path, spark=False).to_arrow().num_rows == 10
    notes = table.upsert(trips(range(2, 12), 4)).notes
    assert any("built anew" in note for note in notes) == (built_by == "next write")
    check_both(jvm, path, newest_of({1: range(10), 2: range(4), 4: range(2, 12)}))
    jvm_write(jvm, path, table_type, trips(range(8, 14), 5))
    if table_type == "merge_on_read":
        jvm.compact(path)
    table.upsert(trips(range(12, 16), 6))
    jvm_write(jvm, path, table_type, trips(range(14, 17), 7))
    changes = {1: range(10), 2: range(4), 4: range(2, 12), 5: range(8, 14), 6: range(12, 16), 7: range(14, 17)}
    check_both(jvm, path, newest_of(changes))


def test_an_index_that_a_jvm_client_without_index_options_dropped_is_built_again(jvm: Jvm, tmp_path: Path) -> None:
    """A rollback by a Java client drops it; the procedure run_compaction keeps it, as our options are in the table."""
    path = tmp_path / "trips"
    table = _table(path, "merge_on_read")
    table.upsert(trips(range(3), 3))
    jvm.compact(path)
    assert table.view().config.metadata_partitions == ("files", "record_index")
    table.upsert(trips(range(5), 4))
    latest = table.timeline.latest()
    assert latest is not None
    jvm.rollback(path, latest.requested_time, table_name="trips", table_version=9)
    assert table.view().config.metadata_partitions == ("files",)
    expected = newest_of({1: range(10), 2: range(4), 3: range(3)})
    assert_same_rows(table.to_arrow(SCHEMA.names), expected, key="id")
    with pytest.warns(hoodie.HoodieWarning, match="the record index of .* is missing"):
        assert table.read_keys(["k001"])["ts"].to_pylist() == [3]
    assert table.index.verify().problems == {"missing index": 1}
    notes = table.upsert(trips(range(1, 12), 5)).notes
    assert "the record index was missing and was built again, with 10 entries" in notes
    check_both(jvm, path, newest_of({1: range(10), 2: range(4), 3: range(3), 5: range(1, 12)}))
    jvm_write(jvm, path, "merge_on_read", trips(range(10, 14), 6))
    table.upsert(trips(range(13, 15), 7))
    jvm.compact(path)
    later = {6: range(10, 14), 7: range(13, 15)}
    check_both(jvm, path, newest_of({1: range(10), 2: range(4), 3: range(3), 5: range(1, 12), **later}))
