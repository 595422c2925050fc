"""Metadata partitions that are named and hold no file group: writes drop them, and build a record index again.

A restore by the JVM leaves them so, because it rolls back the instants that filled them.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.config.indexes import INDEX_TYPE_KEY
from hoodie.errors import CorruptFileError, HoodieWarning, MetadataPartitionMissingError
from hoodie.files.table_properties import update_table_config
from hoodie.format.metadata_table.partition_names import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from hoodie.metadata.paths import partition_folder
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action
from tests.support.deaths import deaths
from tests.support.index_check import check_index
from tests.support.tables import TYPES, made_once, new_table


def rows(numbers: range, x: int = 0) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in numbers], "p": ["ab"[n % 2] for n in numbers], "x": [x] * len(numbers)})


@made_once
def made(table_type: str = "copy_on_write", index: str = "record", **properties: str) -> Table:
    """A table with statistics and ten rows."""
    ten, given = rows(range(10)), {"hoodie.parquet.small.file.limit": "0", **properties}
    table = new_table(ten.schema, ten, partition_by="p", index=index, type=table_type, properties=given)
    table.index.build("column_stats")
    return table


def emptied(table: Table, *names: str) -> Table:
    """Delete the files of the file groups, and leave the folder and what names the partition; a new handle."""
    store = table.view().store
    for name in names:
        for info in store.list(partition_folder(name)):
            if not info.name.startswith(".hoodie_partition_metadata"):
                store.delete(info.path)
    return Table(store)


def restored(table: Table) -> Table:
    """Write to it, and go back to before that."""
    saved = str(table.savepoint().instant)
    table.upsert(rows(range(3), x=1))
    table.restore(saved)
    return table


def named(table: Table) -> set[str]:
    return {*table.view().config.metadata_partitions}


@pytest.mark.parametrize(
    ("table_type", "lost"),
    [
        ("copy_on_write", (COLUMN_STATS,)),
        ("copy_on_write", (PARTITION_STATS,)),
        ("merge_on_read", (COLUMN_STATS, PARTITION_STATS)),
    ],
)
def test_a_write_drops_lost_statistics(table_type: str, lost: tuple[str, ...]) -> None:
    table = emptied(made(table_type), *lost)
    written = table.upsert(rows(range(2), x=5))
    assert written.updated == 2
    assert any(f"{lost[0]} held no file group and was dropped" in note for note in written.notes), written.notes
    gone = {COLUMN_STATS, PARTITION_STATS} if COLUMN_STATS in lost else {*lost}
    assert named(table) == {FILES, RECORD_INDEX, COLUMN_STATS, PARTITION_STATS} - gone
    assert not any(table.view().store.list(partition_folder(name)) for name in gone)
    check_index(table.view())
    notes = table.upsert(rows(range(3), x=6)).notes
    # The build of the statistics asks for them since.
    assert [note for note in notes if "column statistics are missing" in note] == [*notes]
    assert bool(notes) == (COLUMN_STATS in gone)
    assert table.to_arrow(where="x = 6").num_rows == 3
    table.index.build("column_stats")
    assert table.index.verify("column_stats").ok
    assert table.to_arrow(where="x = 6").num_rows == 3


@pytest.mark.parametrize(("table_type", "asks"), [("copy_on_write", True), ("merge_on_read", False)])
def test_a_write_builds_a_lost_record_index_again(table_type: str, asks: bool) -> None:
    table = emptied(made(table_type), RECORD_INDEX)
    if not asks:
        asking = [key for key in table.view().config.raw if "record" in key and key.endswith("enable")]
        update_table_config(table.view().store, dict.fromkeys([*asking, INDEX_TYPE_KEY]))
        table = Table(table.view().store)
    with pytest.warns(HoodieWarning, match="keys are looked up in the data files"):
        assert table.to_arrow(where="id = 'k1'").num_rows == 1
    written = table.upsert(rows(range(8, 12), x=5))
    assert (written.updated, written.inserted) == (2, 2)
    assert "record_index held no file group and was dropped" in written.notes[0]
    assert "built again, with 10 entries" in written.notes[1]
    check_index(table.view())
    assert table.count() == 12


def test_after_a_restore_writes_without_look_ups_find_lost_partitions_too() -> None:
    table = restored(made())
    assert any(found.action is Action.RESTORE for found in table.timeline.completed())
    table = emptied(table, RECORD_INDEX, COLUMN_STATS)
    written = table.bulk_insert(rows(range(20, 24)))
    assert [note.split()[3] for note in written.notes[:3]] == [COLUMN_STATS, PARTITION_STATS, RECORD_INDEX]
    check_index(table.view())
    assert table.upsert(rows(range(20, 26))).updated == 4


@pytest.mark.parametrize("is_restored", [True, False])
def test_a_partitioned_record_index_without_file_groups_takes_no_key_for_a_new_one(is_restored: bool) -> None:
    table = made(index="partitioned_record")
    table = emptied(restored(table) if is_restored else table, RECORD_INDEX)
    if not is_restored:
        with pytest.raises(MetadataPartitionMissingError, match=r"t\.index\.drop\('record'\)"):
            table.upsert(rows(range(8, 12), x=5))
        table.index.drop("record")
    written = table.upsert(rows(range(8, 12), x=5))
    assert (written.updated, written.inserted) == (2, 2)
    assert any("record_index held no file group and was dropped" in note for note in written.notes) == is_restored
    assert table.count() == 12


def test_a_partitioned_record_index_of_a_table_without_rows_is_not_lost() -> None:
    table = made(index="partitioned_record")
    table.delete_partitions(["p=a", "p=b"])
    table = emptied(table, RECORD_INDEX)
    assert table.upsert(rows(range(4))).inserted == 4
    assert RECORD_INDEX in named(table)
    check_index(table.view())


@pytest.mark.parametrize("table_type", TYPES)
def test_a_clean_and_a_compaction_drop_lost_statistics(table_type: str) -> None:
    table = made(table_type)
    for x in range(4):
        table.upsert(rows(range(2), x=x))
    table = emptied(table, COLUMN_STATS, PARTITION_STATS)
    if table_type == "merge_on_read":
        table.schedule_compaction()
        done = table.compact()
    else:
        done = table.clean(properties={"hoodie.clean.commits.retained": "1"})
        assert done.counts["files_deleted"] > 0
    assert any("column_stats held no file group" in note for note in done.notes), done.notes
    assert named(table) == {FILES, RECORD_INDEX}
    check_index(table.view())
    assert table.count() == 10


def test_the_listing_without_file_groups_is_damage() -> None:
    table = emptied(made(), FILES)
    with pytest.raises(CorruptFileError, match=r"t\.index\.rebuild\(\)"):
        table.upsert(rows(range(2)))


def test_writes_that_die_while_they_drop_lost_partitions() -> None:
    """The next write finishes what a dead one began, wherever that one died."""
    table = emptied(made(), RECORD_INDEX, COLUMN_STATS)
    store = table.view().store
    assert isinstance(store, MemoryStore)

    def write(table: Table) -> object:
        return table.upsert(rows(range(8, 12), x=5))

    for death in deaths(store, write, keep=6):
        again = Table(death.store)
        again.upsert(rows(range(8, 13), x=6))
        assert again.count() == 13, death
        assert again.to_arrow(where="x = 6").num_rows == 5, death
        again.upsert(rows(range(1), x=7))
        check_index(again.view())
        assert COLUMN_STATS not in named(again), death


def test_a_partition_of_the_jvm_that_would_go_stale_is_dropped_with_a_warning() -> None:
    table = made()
    names = ",".join((*sorted(named(table)), "secondary_index_x"))
    update_table_config(table.view().store, {"hoodie.table.metadata.partitions": names})
    with pytest.warns(HoodieWarning, match="partitions secondary_index_x were dropped: this release does not maintain"):
        table.upsert(rows(range(3), x=1))
    assert "secondary_index_x" not in named(table)
    assert table.verify(full=True).ok
