"""Files whose instant is not on the active timeline: archived, or never committed."""

from __future__ import annotations

import re

import pytest

from hoodie.errors import HoodieWarning
from hoodie.files.markers import TEMP_FOLDER
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support import tables
from tests.support.archived import active_times, archived_times
from tests.support.savepoints import drop_savepoint
from tests.support.tables import Rows, made_once, rows_of, trips, trips_store

PROPERTIES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.compact.inline.max.delta.commits": "1",
}
TYPES = pytest.mark.parametrize("table_type", tables.TYPES)
COMMITS = 9
ROWS: Rows = {f"k{i}": (min(i + 1, COMMITS), f"p{i}") for i in range(1, COMMITS + 1)}
"""The rows of `archived_store`."""


@made_once
def archived_store(table_type: str, saved: int = 0) -> MemoryStore:
    """A table whose commits fill a partition each, most of them archived; one may have a savepoint."""
    store = trips_store(table_type=table_type, properties=PROPERTIES)
    table = Table(store)
    for i in range(1, COMMITS + 1):
        # The second version of a key is in a log file if the table has them.
        table.upsert(trips({f"k{j}": (i, f"p{j}") for j in (i, i - 1) if j}))
        if i == saved:
            table.savepoint()
    assert table.archive().counts["commits"] > 0
    return store


def instants_of(store: MemoryStore) -> list[str]:
    """The commits, from number 1 on."""
    return ["", *sorted({*archived_times(store), *active_times(store)})]


@TYPES
def test_commits_between_a_deleted_savepoint_and_the_timeline_stay(table_type: str) -> None:
    store = archived_store(table_type, saved=2)
    instants = instants_of(store)
    drop_savepoint(Table(store), instants[2])
    view = Table(store).view()
    assert view.timeline.start == instants[2]
    assert view.timeline.get(instants[4]) is None
    assert rows_of(store) == ROWS
    past = Table(store).to_arrow(["id", "ts"], as_of=instants[5]).to_pylist()
    assert {row["id"]: row["ts"] for row in past} == {"k1": 2, "k2": 3, "k3": 4, "k4": 5, "k5": 5}
    files = Table(store).inspect.files()
    assert {f"city=p{i}" for i in range(1, 10)} == set(files["partition_path"].to_pylist())
    assert [str(found) for found in Table(store).verify().findings] == []
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning, match="listed from storage"):
        assert rows_of(store) == ROWS
    done = Table(store).upsert(trips({"k4": (99, "p4")}))
    assert (done.inserted, done.updated) == (0, 1)
    assert rows_of(store) == {**ROWS, "k4": (99, "p4")}


def test_left_over_markers_of_an_archived_commit_delete_nothing() -> None:
    store = archived_store("copy_on_write", saved=2)
    instants = instants_of(store)
    files = drop_savepoint(Table(store), instants[2]).inspect.files().to_pylist()
    file = next(row for row in files if row["instant"] == instants[4] and row["partition_path"] == "city=p4")
    store.create(f"{TEMP_FOLDER}/{instants[4]}/MARKERS.type", b"DIRECT")
    store.create(f"{TEMP_FOLDER}/{instants[4]}/city=p4/{file['file']}.marker.CREATE", b"")
    Table(store).upsert(trips({"z": (1, "sf")}))
    assert rows_of(store) == {**ROWS, "z": (1, "sf")}
    assert store.list(f"{TEMP_FOLDER}/{instants[4]}") == []


@TYPES
def test_a_file_that_was_never_committed_does_not_count_once_it_is_older_than_the_timeline(table_type: str) -> None:
    store = archived_store(table_type)
    instants = instants_of(store)
    (found,) = [path for path in list_slices(Table(store).view()) if path.partition_path == "city=p3"]
    assert found.base_file is not None
    never = str(int(instants[4]) + 1)
    assert never not in instants
    # What a dead task of a write leaves that was rolled back: newer than every file of its file group.
    store.create(re.sub(r"_\d+\.parquet", f"_{never}.parquet", found.base_file.path), b"not a file of the table")
    assert rows_of(store) == ROWS
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning, match="listed from storage"):
        assert rows_of(store) == ROWS
    Table(store).upsert(trips({"z": (1, "sf")}))
    assert rows_of(store) == {**ROWS, "z": (1, "sf")}


def test_without_an_archive_all_old_files_count() -> None:
    store = archived_store("copy_on_write")
    store.delete_folder(".hoodie/timeline/history")
    store.delete_folder(".hoodie/metadata")
    with pytest.warns(HoodieWarning, match="listed from storage"):
        assert rows_of(store) == ROWS
