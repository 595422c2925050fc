"""The record index seen as a table: entries, entries of the past, changes; refused where nobody can tell any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.index.record.state import record_index
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.paths import partition_folder
from hoodie.storage import open_store
from tests.unit.read.counted import ROWS, counting, new_table

EAGER = {"hoodie.metadata.compact.max.delta.commits": "2"}


def one(key: str, city: str, x: int) -> pa.Table:
    return pa.table({"id": [key], "city": [city], "x": [x]})


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


def test_entries_are_the_keys_of_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
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


def test_a_few_entries_read_one_bucket(tmp_path: Path) -> None:
    with counting(new_table(tmp_path / "t")) as counted:
        calls = counted._store.calls
        counted.table.inspect.index(limit=1)
        read = {call.path for call in calls if call.operation == "read" and f"/{RECORD_INDEX}/" in call.path}
        assert {path.rpartition("/")[2].partition("_")[0] for path in read} == {".record-index-0000-0"}


def test_changes_are_told_commit_by_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = table.timeline.instants[-1].requested_time
    assert len(changes(table, None)) == len(changes(table, None, first)) == len(ROWS)
    in_place = table.upsert(one("k01", "c1", 100)).instant
    moved = table.upsert(one("k01", "c5", 100)).instant
    deleted = table.delete(["k01", "nobody"]).instant
    again = table.upsert(one("k01", "c6", 100)).instant
    expected = [
        ("k01", "put", "city=c5", moved),
        ("k01", "delete", None, deleted),
        ("k01", "put", "city=c6", again),
    ]
    assert changes(table, first) == expected
    assert changes(table, in_place) == expected
    assert changes(table, moved, deleted) == expected[1:2]
    assert changes(table, again) == []
    with pytest.raises(InvalidConfigError, match="later"):
        changes(table, again, first)


def test_a_table_without_a_record_index_says_so(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", index="simple")
    calls: list[Callable[[], pa.Table]] = [table.inspect.index, lambda: table.inspect.index_changes(None)]
    for call in calls:
        with pytest.raises(UnsupportedError, match=r"index\.build"):
            call()


@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")  # of the time before the first commit
def test_compactions_do_not_change_what_the_past_was(tmp_path: Path) -> None:
    """A base file holds entries of commits that came later than the moment asked for: an older slice tells."""
    table = new_table(tmp_path / "t", properties=EAGER)
    history = [(table.timeline.instants[-1].requested_time, rows(table))]
    for number in range(5):
        table.upsert(pa.table({"id": ["k01", f"new{number}"], "city": [f"c{number}", "c0"], "x": [0, 0]}))
        history.append((table.delete([f"k{10 + number}"]).instant, rows(table)))
    bases = [found for found in open_store(table.path).list(partition_folder(RECORD_INDEX)) if ".hfile" in found.path]
    assert bases
    for instant, expected in history:
        assert entries(table, instant) == expected == rows(table, instant)
        located = table.record_locations(sorted(expected), as_of=instant)
        assert located["partition_path"].to_pylist() == [expected[key] for key in sorted(expected)]
    assert entries(table, "2001-01-01") == {}
    assert {key for key, *_ in changes(table, history[3][0])} == {"k01"} | {f"new{n}" for n in range(3, 5)} | {
        f"k{10 + n}" for n in range(3, 5)
    }


def test_a_past_that_was_cleaned_away_is_refused_not_guessed(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", properties=EAGER)
    first = table.timeline.instants[-1].requested_time
    second = table.upsert(one("k01", "c5", 1)).instant
    for number in range(6):
        last = table.upsert(one(f"new{number}", "c0", 0)).instant
    clean_index(table)
    calls: list[Callable[[], pa.Table]] = [
        lambda: table.inspect.index(first),
        lambda: table.inspect.index(second),
        lambda: table.inspect.index_changes(first),
        lambda: table.inspect.index_changes(None),
    ]
    for call in calls:
        with pytest.raises(UnsupportedError, match="cannot be read"):
            call()
    assert entries(table) == rows(table) == entries(table, last)
    assert changes(table, last) == []
    # Rows of the past and their places are told by the data files then.
    assert table.to_arrow(["x"], where="id = 'k01'", as_of=first)["x"].to_pylist() == [1]
    assert table.record_locations(["k01"], as_of=first)["partition_path"].to_pylist() == ["city=c1"]
    assert table.record_locations(["k01"], as_of=second)["partition_path"].to_pylist() == ["city=c5"]


def clean_index(table: hoodie.Table) -> None:
    """Delete what belongs to older slices of the buckets, as the cleaner does in time."""
    from hoodie.metadata.services.cleaning import obsolete_files

    view = table.view()
    folder = MetadataFolder(view.store, view.config)
    where = partition_folder(RECORD_INDEX)
    names = [info.name for info in view.store.list(where)]
    timeline = folder.timeline()
    newest = timeline.instants[-1].requested_time
    gone = obsolete_files(names, timeline, {}, newest)
    assert gone
    for name in gone:
        view.store.delete(f"{where}/{name}")


def test_a_reader_does_not_see_entries_of_commits_that_it_does_not_count(tmp_path: Path) -> None:
    """The view was loaded before the commit: its slices lack the new file, so the old entry must still be there."""
    table = new_table(tmp_path / "t", properties=EAGER)
    view = table.view()
    before = rows(table)
    table.upsert(one("k01", "c5", 1))
    for number in range(6):
        table.upsert(one(f"new{number}", "c0", 0))
    from hoodie.read.key_holders import locate

    keys = pa.array([*sorted(before), "new0"])
    found = locate(view, keys)
    assert found is not None
    places = [found.locations[code].partition_path if code >= 0 else None for code in found.codes.tolist()]
    assert places == [*(before[key] for key in sorted(before)), None]


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
    assert _counted(table.inspect.index_changes(None)["change"].to_pylist()) == {"put": 350, "delete": 10}


def _counted(values: list[str]) -> dict[str, int]:
    return {value: values.count(value) for value in set(values)}
