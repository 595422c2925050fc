"""The record index seen as a table, now and in the past, and where each key lies, by the index or without it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, RecordKeyError, SchemaMismatchError, UnsupportedError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.index.record.state import record_index
from hoodie.metadata.delta_commit import FileGroupDelta, write_log
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.paths import partition_folder
from hoodie.metadata.services.cleaning import obsolete_files
from hoodie.read.key_holders import locate
from tests.support.refusals import all_refused
from tests.support.tables import values_of
from tests.unit.read.counted import ROWS, counting, new_table

EAGER = {"hoodie.metadata.compact.max.delta.commits": "2"}


def one(key: str, city: str, x: int = 100) -> list[dict[str, Any]]:
    return [{"id": key, "city": city, "x": x}]


def entries(table: hoodie.Table, as_of: str | None = None) -> dict[str, str]:
    """Partition path of each key."""
    found = table.inspect.index(as_of)
    assert found.schema.names == ["key", "partition_path", "file_id", "instant", "bucket"]
    keys = found["key"].to_pylist()
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, found["partition_path"].to_pylist(), strict=True))


def rows(table: hoodie.Table, as_of: str | None = None) -> dict[str, str]:
    """The same, by a scan of the data."""
    found = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], as_of=as_of)
    return dict(zip(*found.to_pydict().values(), strict=True))


def changes(table: hoodie.Table, since: str | None, until: str | None = None) -> list[tuple[str, str, str | None, str]]:
    """Key, change, partition path and instant."""
    found = table.inspect.index_changes(since, until)
    assert found.schema.names == ["key", "change", "partition_path", "file_id", "instant"]
    assert found["file_id"].null_count == found["partition_path"].null_count
    return [(row["key"], row["change"], row["partition_path"], row["instant"]) for row in found.to_pylist()]


def test_entries_are_the_keys_of_the_table() -> None:
    table = new_table()
    table.upsert(one("k01", "c5", 1))
    table.delete(["k02"])
    assert entries(table) == rows(table)
    found = table.inspect.index()
    state = record_index(table.view())
    assert state is not None
    assert found["bucket"].to_pylist() == state.numbers_of(found["key"].combine_chunks()).tolist()
    assert found["bucket"].to_pylist() == sorted(found["bucket"].to_pylist())
    assert table.inspect.index(limit=7).equals(found.slice(0, 7).combine_chunks())
    assert table.inspect.index(limit=0).num_rows == 0
    assert table.inspect.index(limit=1000).num_rows == found.num_rows


def test_a_few_entries_read_one_bucket() -> None:
    with counting(new_table()) as counted:
        calls = counted._store.calls
        counted.table.inspect.index(limit=1)
        read = {call.path for call in calls if call.operation == "read" and f"/{RECORD_INDEX}/" in call.path}
        assert {path.rpartition("/")[2].partition("_")[0] for path in read} == {".record-index-0000-0"}


def test_changes_are_told_commit_by_commit() -> None:
    table = new_table()
    first = table.timeline.instants[-1].requested_time
    assert len(changes(table, None)) == len(changes(table, None, first)) == len(ROWS)
    in_place = table.upsert(one("k01", "c1", 100)).instant
    moved = table.upsert(one("k01", "c5", 100)).instant
    deleted = table.delete(["k01", "nobody"]).instant
    again = table.upsert(one("k01", "c6", 100)).instant
    expected = [("k01", "put", "city=c5", moved), ("k01", "delete", None, deleted), ("k01", "put", "city=c6", again)]
    assert changes(table, first) == expected
    assert changes(table, in_place) == expected
    assert changes(table, moved, deleted) == expected[1:2]
    assert changes(table, again) == []
    with pytest.raises(InvalidConfigError, match="later"):
        changes(table, again, first)
    with pytest.warns(hoodie.HoodieWarning, match="before"):
        assert entries(table, "2001-01-01") == {}


def test_a_table_without_a_record_index_says_so() -> None:
    table = new_table(index="simple")
    all_refused(UnsupportedError, r"index\.build", table.inspect.index, lambda: table.inspect.index_changes(None))


def test_a_past_that_was_cleaned_away_is_refused_not_guessed() -> None:
    table = new_table(properties=EAGER)
    view, before = table.view(), rows(table)
    first = table.timeline.instants[-1].requested_time
    second = table.upsert(one("k01", "c5", 1)).instant
    for number in range(6):
        last = table.upsert(one(f"new{number}", "c0", 0)).instant
    # A view that was loaded before: its slices lack the new files, so the old entries must still be there.
    found = locate(view, pa.array([*sorted(before), "new0"]))
    assert found is not None
    places = [found.locations[code].partition_path if code >= 0 else None for code in found.codes.tolist()]
    assert places == [*(before[key] for key in sorted(before)), None]
    clean_index(table)
    all_refused(
        UnsupportedError,
        "cannot be read",
        lambda: table.inspect.index(first),
        lambda: table.inspect.index(second),
        lambda: table.inspect.index_changes(first),
        lambda: table.inspect.index_changes(None),
    )
    assert entries(table) == rows(table) == entries(table, last)
    assert changes(table, last) == []
    # Rows of the past and their places are told by the data files then.
    assert table.to_arrow(["x"], where="id = 'k01'", as_of=first)["x"].to_pylist() == [1]
    assert table.record_locations(["k01"], as_of=first)["partition_path"].to_pylist() == ["city=c1"]
    assert table.record_locations(["k01"], as_of=second)["partition_path"].to_pylist() == ["city=c5"]


def clean_index(table: hoodie.Table) -> None:
    """Delete what belongs to older slices of the buckets, as the cleaner does in time."""
    view = table.view()
    timeline = MetadataFolder(view.store, view.config).timeline()
    where = partition_folder(RECORD_INDEX)
    gone = obsolete_files(view.store.names(where), timeline, {}, timeline.instants[-1].requested_time)
    assert gone
    for name in gone:
        view.store.delete(f"{where}/{name}")


@pytest.mark.parametrize("name", ["v8_cow", "v8_mor", "v9_cow", "v9_mor"])
def test_the_indexes_of_jvm_tables_tell_every_moment(golden_tables: Path, name: str) -> None:
    """The metadata tables of some were compacted: entries of the past come from older slices."""
    table = hoodie.open(golden_tables / name, spark=False)
    kind = "read_optimized" if name.endswith("mor") else "snapshot"
    found = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], view=kind)
    now = dict(zip(*found.to_pydict().values(), strict=True))
    assert entries(table) == now
    located = table.record_locations(list(now))
    assert located["partition_path"].to_pylist() == list(now.values())
    assert table.filter_exists(pa.table({"_hoodie_record_key": [*now, "nobody"]})).num_rows == 1
    writes = [instant.requested_time for instant in table.timeline.writes().completed()]
    assert [len(entries(table, instant)) for instant in writes[:3]] == [300, 350, 340]
    assert {len(entries(table, instant)) for instant in writes[3:]} == {340}
    assert Counter(table.inspect.index_changes(None)["change"].to_pylist()) == {"put": 350, "delete": 10}


EACH_INDEX = pytest.mark.parametrize("index", ["record", "simple", "global_simple"])


def where_rows_lie(table: hoodie.Table) -> dict[str, tuple[str, str]]:
    """Partition path and file id of each key, by a scan of everything."""
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    return {key: (path, name.partition("_")[0]) for key, path, name in values_of(table, *columns)}


def located(found: pa.Table) -> list[tuple[str, str] | None]:
    """Partition path and file id of each row, None where it has no location."""
    assert found.schema.names == ["_hoodie_record_key", "partition_path", "file_id", "instant"]
    rows = found.to_pylist()
    assert all((row["file_id"] is None) == (row["partition_path"] is None) == (row["instant"] is None) for row in rows)
    return [None if row["file_id"] is None else (row["partition_path"], row["file_id"]) for row in rows]


@EACH_INDEX
def test_locations_keep_the_order_and_the_repetitions_of_the_keys(index: str) -> None:
    table = new_table(index=index)
    table.delete(ROWS.slice(5, 1))
    expected = where_rows_lie(table)
    asked = ["k09", "nobody", "k01", "k05", "k09", "k01", "k01"]
    found = table.record_locations(asked)
    assert found["_hoodie_record_key"].to_pylist() == asked
    assert located(found) == [expected.get(key) for key in asked]
    assert located(table.record_locations(ROWS["id"])) == [expected.get(key) for key in ROWS["id"].to_pylist()]
    assert table.record_locations([]).num_rows == 0


@EACH_INDEX
def test_locations_of_the_past(index: str) -> None:
    table = new_table(index=index)
    first = table.timeline.instants[-1].requested_time
    before = where_rows_lie(table)
    table.insert(one("new", "c1"))
    table.delete(ROWS.slice(1, 1))
    now = where_rows_lie(table)
    asked = ["k01", "new", "k02"]
    assert located(table.record_locations(asked, as_of=first)) == [before["k01"], None, before["k02"]]
    assert located(table.record_locations(asked)) == [None, now["new"], now["k02"]]
    with pytest.warns(hoodie.HoodieWarning, match="before"):
        assert located(table.record_locations(asked, as_of="2001-01-01")) == [None] * 3
    assert set(table.record_locations(asked, as_of=first)["instant"].to_pylist()) == {first, None}


def test_the_instant_is_the_one_that_put_the_entry() -> None:
    table = new_table()
    first = table.timeline.instants[-1].requested_time
    updated = table.upsert(one("k01", "c1")).instant
    moved = table.upsert(one("k02", "c1")).instant
    assert updated != moved
    assert table.record_locations(["k01", "k02"])["instant"].to_pylist() == [first, moved]


def test_no_data_file_is_opened_where_the_table_has_a_record_index() -> None:
    with counting(new_table()) as counted:
        assert counted.table.record_locations(["k01", "nobody"])["file_id"].null_count == 1
        assert counted.opened() == []


def test_keys_that_are_unique_in_their_partition_only_have_a_row_for_each() -> None:
    table = new_table(index="simple")
    table.upsert(one("k01", "c2"))
    found = table.record_locations(["k02", "k01", "k03"])
    assert found["_hoodie_record_key"].to_pylist() == ["k02", "k01", "k01", "k03"]
    assert sorted(found["partition_path"].to_pylist()[1:3]) == ["city=c1", "city=c2"]
    named = table.record_locations(pa.table({"id": ["k01", "k01", "k03"], "city": ["c2", "c1", "c1"]}))
    assert named["partition_path"].to_pylist() == ["city=c2", "city=c1", None]


def test_where_keys_are_unique_in_the_table_their_partition_columns_do_not_matter() -> None:
    table = new_table()
    found = table.record_locations(pa.table({"id": ["k01"], "city": ["c7"]}))
    assert found["partition_path"].to_pylist() == ["city=c1"]


def test_an_entry_that_names_a_file_group_that_is_gone_is_not_believed() -> None:
    """As after a clustering that a JVM writer could not finish: the index is right about the key, not the place."""
    table = new_table()
    newest = table.upsert(one("later", "c3")).instant
    view, keys = table.view(), pa.array(["k01"])
    state = record_index(view)
    assert state is not None
    bucket = state.file_groups[int(state.numbers_of(keys)[0])].file_slice.file_id
    gone = RecordLocation("city=c1", "00000000-0000-0000-0000-000000000000-0", 0).to_bytes()
    none = pa.array([], pa.string())
    write_log(view.store, newest, FileGroupDelta(RECORD_INDEX, bucket, keys, pa.array([gone], pa.binary()), none))
    assert table.record_locations(["k01", "k02"])["file_id"].null_count == 1
    assert table.filter_exists(pa.table({"id": ["k01", "k02"]}))["id"].to_pylist() == ["k01"]
    assert table.read_keys(["k01", "k02"])["id"].to_pylist() == ["k02"]


def test_keys_that_name_nothing_are_refused() -> None:
    table = new_table()
    with pytest.raises(RecordKeyError):
        table.record_locations([None])
    with pytest.raises(SchemaMismatchError, match="_hoodie_record_key"):
        table.record_locations(pa.table({"x": [1]}))
