"""Tables that say they find records in another way: a record index beside that is not asked by reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.files.table_properties import read_table_config, update_table_config
from tests.unit.read.counted import counting, new_table


@pytest.mark.parametrize("name", ["BLOOM", "SIMPLE", "GLOBAL_BLOOM", "FLINK_STATE"])
def test_reads_by_key_look_into_the_data_files(tmp_path: Path, name: str) -> None:
    """Of such a table JVM writers keep the index, but two partitions may hold one key, of which it knows one."""
    table = new_table(tmp_path / "t")
    store = table.view().store
    assert "record_index" in read_table_config(store).metadata_partitions
    update_table_config(store, {"hoodie.index.type": name})
    with counting(table) as counted:
        assert counted.table.to_arrow(where="id = 'k01'")["x"].to_pylist() == [1]
        assert counted.table.read_keys(["k01"])["x"].to_pylist() == [1]
        assert counted.table.record_locations(["k01", "nobody"])["partition_path"].to_pylist() == ["city=c1", None]
        assert len(counted.partitions()) == 8
