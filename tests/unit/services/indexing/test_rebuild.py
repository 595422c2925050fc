"""A metadata table or record index that is missing or damaged: reads go on, the next write or a call builds it anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, CorruptFileError, HoodieWarning, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.index.record.file_groups import list_index_files
from hoodie.metadata.table import MetadataTable
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.cleaned_tables import check_listing
from tests.support.fault_store import FaultStore
from tests.support.index_check import check_index
from tests.support.steps import begin, once_at
from tests.support.tables import FEW_BUCKETS, TYPES, new_table

ROWS = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3]})
NEW = pa.table({"id": ["c", "d"], "x": [30, 40]})
MERGED = {"a": 1, "b": 2, "c": 30, "d": 40}
MISSING_NOTE = "the metadata table was missing and was built anew from the files in storage"


def made(index: str = "record", *more: pa.Table, table_type: str = "copy_on_write") -> Table:
    """A table with the rows of `ROWS`."""
    return new_table(ROWS.schema, ROWS, *more, index=index, type=table_type, properties=FEW_BUCKETS)


def without_index() -> Table:
    """A table whose index a JVM rollback removed: its name and its files are gone, and the options stay."""
    table = made()
    view = table.view()
    update_table_config(view.store, {"hoodie.table.metadata.partitions": "files"})
    MetadataTable(view.store, view.config).drop_partitions({"record_index"})
    return table


def again(table: Table) -> Table:
    """A new handle: it has read nothing."""
    return Table(table.view().store)


def lose_metadata(table: Table) -> None:
    table.view().store.delete_folder(".hoodie/metadata")


def rows_of(table: Table) -> dict[str, int]:
    found = again(table).to_arrow(columns=["id", "x"]).to_pydict()
    assert len(set(found["id"])) == len(found["id"])
    return dict(zip(found["id"], found["x"], strict=True))


def check_sound(table: Table, rows: dict[str, int], *, has_index: bool = True) -> None:
    """The next reader warns of nothing, and finds the rows; the metadata table is the data."""
    assert rows_of(table) == rows
    view = again(table).view()
    check_listing(again(table))
    assert list(view.timeline.pending()) == []
    if has_index:
        check_index(view)
        report = table.index.verify()
        assert report.ok
        assert report.checked["entries"] == len(rows)


@pytest.mark.parametrize("index", ["record", "simple"])
def test_reads_of_a_table_without_its_metadata_table_list_the_storage_and_warn_once(index: str) -> None:
    table = made(index)
    lose_metadata(table)
    with pytest.warns(HoodieWarning, match=r"files are listed from storage.*/\.hoodie/metadata: .* is missing"):
        assert table.to_arrow().num_rows == 3
    assert table.to_arrow().num_rows == 3
    if index == "record":
        with pytest.warns(HoodieWarning, match="keys are looked up in the data files"):
            assert table.read_keys(["b"])["x"].to_pylist() == [2]
    assert table.read_keys(["b"])["x"].to_pylist() == [2]
    assert table.changes().num_rows == 3
    assert table.inspect.files().num_rows == 1


WRITES: dict[str, tuple[Callable[[Table], hoodie.WriteResult], dict[str, int]]] = {
    "upsert": (lambda table: table.upsert(NEW), MERGED),
    "delete": (lambda table: table.delete(["a", "b"]), {"c": 3}),
    "delete_where": (lambda table: table.delete_where("x = 1"), {"b": 2, "c": 3}),
    "update": (lambda table: table.update({"x": "x + 1"}), {"a": 2, "b": 3, "c": 4}),
    "insert": (lambda table: table.insert(NEW.slice(1)), {"a": 1, "b": 2, "c": 3, "d": 40}),
    "bulk_insert": (lambda table: table.bulk_insert(NEW.slice(1)), {"a": 1, "b": 2, "c": 3, "d": 40}),
    "insert_overwrite_table": (lambda table: table.insert_overwrite_table(NEW), {"c": 30, "d": 40}),
    "delete_partitions": (lambda table: table.delete_partitions([""]), {}),
}


@pytest.mark.matrix(keep=16)
@pytest.mark.parametrize("lost", ["metadata table, record", "metadata table, simple", "record index"])
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")
def test_the_next_write_builds_anew_what_is_lost(name: str, lost: str) -> None:
    """The metadata table, or the record index, as another writer leaves the table that dropped it."""
    has_index, is_whole = "record" in lost, lost != "record index"
    table = made("record" if has_index else "simple") if is_whole else without_index()
    if is_whole:
        lose_metadata(table)
    write, expected = WRITES[name]
    notes = write(again(table)).notes
    assert (MISSING_NOTE in notes) == is_whole
    told = [note for note in notes if "record index" in note]
    assert [note.partition(", with")[0] for note in told] == [
        "the record index was missing and was built again"
    ] * has_index
    assert is_whole or told[0].endswith("with 3 entries")
    check_sound(table, expected, has_index=has_index)
    assert again(table).upsert(NEW).notes == ()


def test_reads_by_key_and_checks_tell_that_the_record_index_was_dropped() -> None:
    table = without_index()
    with pytest.warns(HoodieWarning, match="keys are looked up in the data files: the record index of .* is missing"):
        assert table.read_keys(["b"])["x"].to_pylist() == [2]
    report = table.index.verify()
    assert not report.ok
    assert report.problems == {"missing index": 1}
    with pytest.raises(UnsupportedError, match=r"is missing: the properties enable it.*the next write builds it"):
        table.inspect.index()


def test_an_index_that_the_user_dropped_is_not_built_again() -> None:
    table = made()
    table.index.drop()
    assert again(table).upsert(NEW).notes == ()
    assert again(table).read_keys(["b"]).num_rows == 1
    assert table.view().config.metadata_partitions == ("files",)
    assert rows_of(table) == MERGED


def test_a_large_index_is_left_to_its_own_call() -> None:
    table = without_index()
    small = {"hoodie.python.index.rebuild.bytes.max": "10"}
    (note,) = again(table).upsert(NEW, properties=small).notes
    assert "was not built again" in note
    assert "more than hoodie.python.index.rebuild.bytes.max=10" in note
    assert rows_of(table) == MERGED
    table.index.build("record")
    check_sound(table, MERGED)


def test_an_index_that_cannot_be_built_does_not_stop_writes_and_is_tried_once() -> None:
    table = made("global_simple")
    table.insert(ROWS)
    switches = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"}
    update_table_config(table.view().store, dict(switches))
    table = again(table)
    for _ in range(2):
        (note,) = table.upsert([{"id": "e", "x": 5}]).notes
        assert "was not built again" in note
        assert "key" in note
    assert [found.action for found in table.timeline] == [Action.COMMIT] * 4


def test_a_write_of_another_engine_makes_the_build_wait() -> None:
    table = without_index()
    later = begin(table, Action.COMMIT, only_requested=True)
    table.view().store.create(f".hoodie/.heartbeat/{later}", b"")
    (note,) = again(table).upsert(NEW).notes
    assert "of another engine is pending" in note
    assert rows_of(table) == MERGED


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")
@pytest.mark.parametrize(
    "damage",
    ["files/", "record_index/record-index-0000-0", ".hoodie/timeline/", "files/files-0000-0_0-0-0_0000000000"],
)
def test_the_call_that_errors_name_mends_every_damage(damage: str, table_type: str) -> None:
    table = made("record", NEW, table_type=table_type)
    store = table.view().store
    files = [info.path for info in store.list(".hoodie/metadata", recursive=True)]
    lost = [path for path in files if path.replace("/.record", "/record").startswith(f".hoodie/metadata/{damage}")]
    assert lost
    for path in lost:
        store.delete(path)
    if damage.startswith(".hoodie"):
        assert rows_of(table) == MERGED
    else:
        before = {info.path for info in store.list(".hoodie/timeline")}
        with pytest.raises(CorruptFileError, match=r"t\.index\.rebuild\(\)"):
            again(table).upsert(NEW)
        assert {info.path for info in store.list(".hoodie/timeline")} == before
        with pytest.raises(CorruptFileError, match=r"t\.index\.rebuild\(\)"):
            again(table).read_keys(["a"])
    result = again(table).index.rebuild()
    assert result.counts["partitions"] == 2
    check_sound(table, MERGED)
    assert again(table).upsert(NEW).notes == ()


def test_a_lost_base_file_of_the_record_index_is_no_index_of_fewer_keys() -> None:
    table = made("simple")
    table.index.build(buckets=2)
    table.upsert(NEW)
    store = table.view().store
    # After a compaction the cleaner deletes the log file that began the file group.
    first = [path for path in list_index_files(store) if "-0000-0_" in path and "004." in path]
    assert len(first) == 2
    for path in first:
        store.delete(path)
    with pytest.raises(CorruptFileError, match=r"lost its base file.*t\.index\.rebuild\(\)"):
        again(table).upsert(ROWS)
    again(table).index.rebuild()
    check_sound(table, MERGED)


def test_a_rebuild_keeps_the_index_of_a_table_that_stores_no_index_type() -> None:
    """Tables of the JVM have a record index and store no option of it."""
    table = made()
    options = ("index.type", "metadata.record.index.enable", "metadata.global.record.level.index.enable")
    update_table_config(table.view().store, dict.fromkeys(f"hoodie.{name}" for name in options))
    again(table).index.rebuild()
    check_sound(table, {"a": 1, "b": 2, "c": 3})


at_each_step = pytest.mark.parametrize("step", [Step.BEGUN, Step.WRITTEN, Step.LOCATED])


@at_each_step
def test_a_write_that_runs_during_a_rebuild_commits_and_is_indexed(step: Step) -> None:
    table = made()
    with once_at(step, again(table).index.rebuild):
        table.upsert(NEW)
    check_sound(table, MERGED)


@pytest.mark.filterwarnings("ignore::hoodie.HoodieWarning")
@at_each_step
def test_a_metadata_table_that_is_lost_while_a_write_runs_is_built_anew_by_its_commit(step: Step) -> None:
    table = made()
    with once_at(step, partial(lose_metadata, table)):
        try:
            notes = table.upsert(NEW).notes
        except CommitConflictError:
            assert rows_of(table) == {"a": 1, "b": 2, "c": 3}
            notes = again(table).upsert(NEW).notes
    assert MISSING_NOTE in notes
    check_sound(table, MERGED)


def test_a_rebuild_rolls_back_dead_writes_without_the_damaged_metadata_table() -> None:
    table = made()
    later = begin(table, Action.COMMIT, only_requested=True)
    result = again(table).index.rebuild()
    assert result.notes[0] == f"rolled back {later}, whose writer had died (0 files)"
    check_sound(table, {"a": 1, "b": 2, "c": 3})


def test_a_partitioned_index_that_is_given_up_is_told() -> None:
    table = made("partitioned_record")
    (note,) = again(table).index.rebuild().notes
    assert "record_index was removed, and is not built by this release" in note
    check_sound(table, {"a": 1, "b": 2, "c": 3}, has_index=False)


def test_a_sound_metadata_table_is_not_looked_for() -> None:
    """The listings that reads and writes need anyway tell that it exists; its folder is not listed for that."""
    store = FaultStore(made().view().store, count_reads=True)
    store.register()
    assert Table(store).to_arrow().num_rows == 3
    timeline = (".hoodie/metadata/.hoodie/timeline", ".hoodie/timeline")
    assert [call.path for call in store.calls if call.operation == "names" and call.path in timeline] == [
        ".hoodie/timeline",
        ".hoodie/metadata/.hoodie/timeline",
    ]
    Table(store).upsert(NEW)
    Table(store).bulk_insert(NEW)
    listed = {call.path for call in store.calls if call.operation in ("list", "names", "folders")}
    assert not listed & {".hoodie", ".hoodie/metadata", ".hoodie/metadata/.hoodie", ".hoodie/timeline/history"}
