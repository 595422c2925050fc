"""Record locations: where each key lies, by the record index or without it, now and as of an instant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import RecordKeyError, SchemaMismatchError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.state import record_index
from hoodie.metadata.delta_commit import FileGroupDelta, write_log
from tests.unit.read.counted import ROWS, counting, new_table

INDEXES = ["record", "simple", "global_simple"]


def where_rows_lie(table: hoodie.Table) -> dict[str, tuple[str, str]]:
    """Partition path and file id of each key, by a scan of everything."""
    rows = table.to_arrow().to_pylist()
    return {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
        for row in rows
    }


def located(found: pa.Table) -> list[tuple[str, str] | None]:
    """Partition path and file id of each row, None where it has no location."""
    assert found.schema.names == ["_hoodie_record_key", "partition_path", "file_id", "instant"]
    rows = found.to_pylist()
    assert all((row["file_id"] is None) == (row["partition_path"] is None) == (row["instant"] is None) for row in rows)
    return [None if row["file_id"] is None else (row["partition_path"], row["file_id"]) for row in rows]


@pytest.mark.parametrize("index", INDEXES)
def test_locations_keep_the_order_and_the_repetitions_of_the_keys(tmp_path: Path, index: str) -> None:
    table = new_table(tmp_path / "t", index=index)
    table.delete(ROWS.slice(5, 1))
    expected = where_rows_lie(table)
    asked = ["k09", "nobody", "k01", "k05", "k09", "k01", "k01"]
    found = table.record_locations(asked)
    assert found["_hoodie_record_key"].to_pylist() == asked
    assert located(found) == [expected.get(key) for key in asked]
    assert located(table.record_locations(ROWS["id"])) == [expected.get(key) for key in ROWS["id"].to_pylist()]
    assert table.record_locations([]).num_rows == 0


@pytest.mark.parametrize("index", INDEXES)
def test_locations_of_the_past(tmp_path: Path, index: str) -> None:
    table = new_table(tmp_path / "t", index=index)
    first = table.timeline.instants[-1].requested_time
    before = where_rows_lie(table)
    table.insert(pa.table({"id": ["new"], "city": ["c1"], "x": [1]}))
    table.delete(ROWS.slice(1, 1))
    now = where_rows_lie(table)
    asked = ["k01", "new", "k02"]
    assert located(table.record_locations(asked, as_of=first)) == [before["k01"], None, before["k02"]]
    assert located(table.record_locations(asked)) == [None, now["new"], now["k02"]]
    with pytest.warns(hoodie.HoodieWarning, match="before"):
        assert located(table.record_locations(asked, as_of="2001-01-01")) == [None] * 3
    assert set(table.record_locations(asked, as_of=first)["instant"].to_pylist()) == {first, None}


def test_the_instant_is_the_one_that_put_the_entry(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = table.timeline.instants[-1].requested_time
    updated = table.upsert(pa.table({"id": ["k01"], "city": ["c1"], "x": [100]})).instant
    moved = table.upsert(pa.table({"id": ["k02"], "city": ["c1"], "x": [100]})).instant
    assert updated != moved
    assert table.record_locations(["k01", "k02"])["instant"].to_pylist() == [first, moved]


def test_no_data_file_is_opened_where_the_table_has_a_record_index(tmp_path: Path) -> None:
    with counting(new_table(tmp_path / "t")) as counted:
        assert counted.table.record_locations(["k01", "nobody"])["file_id"].null_count == 1
        assert counted.opened() == []


def test_keys_that_are_unique_in_their_partition_only_have_a_row_for_each(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", index="simple")
    table.upsert(pa.table({"id": ["k01"], "city": ["c2"], "x": [1]}))
    found = table.record_locations(["k02", "k01", "k03"])
    assert found["_hoodie_record_key"].to_pylist() == ["k02", "k01", "k01", "k03"]
    assert sorted(found["partition_path"].to_pylist()[1:3]) == ["city=c1", "city=c2"]
    named = table.record_locations(pa.table({"id": ["k01", "k01", "k03"], "city": ["c2", "c1", "c1"]}))
    assert named["partition_path"].to_pylist() == ["city=c2", "city=c1", None]


def test_where_keys_are_unique_in_the_table_their_partition_columns_do_not_matter(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    found = table.record_locations(pa.table({"id": ["k01"], "city": ["c7"]}))
    assert found["partition_path"].to_pylist() == ["city=c1"]


def test_an_entry_that_names_a_file_group_that_is_gone_is_not_believed(tmp_path: Path) -> None:
    """As after a clustering that a JVM writer could not finish: the index is right about the key, not the place."""
    table = new_table(tmp_path / "t")
    view = table.view()
    state = record_index(view)
    assert state is not None
    delta_of(table, "k01", "00000000-0000-0000-0000-000000000000-0")
    assert table.record_locations(["k01", "k02"])["file_id"].null_count == 1
    assert table.filter_exists(pa.table({"id": ["k01", "k02"]}))["id"].to_pylist() == ["k01"]
    assert table.read_keys(["k01", "k02"])["id"].to_pylist() == ["k02"]


def delta_of(table: hoodie.Table, key: str, file_id: str) -> None:
    """Put another entry for a key into its bucket, as the newest completed commit."""
    from hoodie.format.metadata_table.record_location import RecordLocation

    view = table.view()
    state = record_index(view)
    assert state is not None
    keys = pa.array([key])
    bucket = state.file_groups[int(state.numbers_of(keys)[0])].file_slice.file_id
    values = pa.array([RecordLocation("city=c1", file_id, 0).to_bytes()], pa.binary())
    newest = table.upsert(pa.table({"id": ["later"], "city": ["c3"], "x": [1]})).instant
    delta = FileGroupDelta(
        partition=RECORD_INDEX, file_id=bucket, keys=keys, values=values, deleted_keys=pa.array([], pa.string())
    )
    write_log(view.store, newest, delta)


def test_keys_that_name_nothing_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(RecordKeyError):
        table.record_locations([None])
    with pytest.raises(SchemaMismatchError, match="_hoodie_record_key"):
        table.record_locations(pa.table({"x": [1]}))
