"""What writes append to the logs of a merge-on-read table, and where rows go that a log cannot take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.files.slices import FileSlice
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support.index_check import check_index

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
DELETABLE = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
IS_PARTIAL = HeaderKey.IS_PARTIAL
INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}


def new_table(path: Path, schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    """A merge-on-read table ordered by `ts`, in this process."""
    named: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", "type": "merge_on_read"}
    return hoodie.create(path, schema, **{**named, **options}, spark=False)


def trips(*rows: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as data to write."""
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)


def rows_of(table: Table) -> dict[str, tuple[int, str, float | None]]:
    found = table.to_arrow(columns=["id", "ts", "city", "fare"]).to_pylist()
    rows = {row["id"]: (row["ts"], row["city"], row["fare"]) for row in found}
    assert len(rows) == len(found), found
    return rows


def only_slice(table: Table) -> FileSlice:
    (found,) = list_slices(table.view())
    return found


def logged(table: Table) -> list[list[LogBlock]]:
    """Blocks of each log file of the only file slice."""
    return [parse_log_blocks(table.view().store.read(log.path), path=log.path) for log in only_slice(table).log_files]


def keys_of(block: LogBlock) -> list[str]:
    if block.block_type is BlockType.DELETE:
        keys: pa.Array | pa.ChunkedArray = DeleteRecords.parse(block.content, path="").record_keys
    else:
        keys = read_data_block(block, path="")["_hoodie_record_key"]
    return list(keys.to_pylist())


def test_changes_of_a_file_group_are_one_log_file_of_the_delta_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    first = table.upsert(trips(("a", 1, "sf", 1.0), ("b", 1, "sf", 1.0)))
    assert (first.action, first.files_created, first.log_files_appended, first.backlog) == ("deltacommit", 1, 0, 0.0)
    second = table.upsert(trips(("a", 2, "sf", 2.0), ("c", 1, "sf", 3.0)))
    assert (second.inserted, second.updated, second.files_updated, second.log_files_appended) == (1, 1, 0, 1)
    table.delete(pa.table({"id": ["b"]}))
    found = only_slice(table)
    assert found.base_file is not None
    assert found.base_file.instant_time == first.instant
    assert next((log.name.instant_time, log.name.version) for log in found.log_files) == (second.instant, 1)
    (data, inserted), (deletes,) = logged(table)
    assert data.headers[HeaderKey.INSTANT_TIME] == second.instant
    assert [keys_of(block) for block in (data, inserted, deletes)] == [["a"], ["c"], ["b"]]
    rows = read_data_block(data, path="")
    assert rows["_hoodie_file_name"].to_pylist() == [found.file_id]
    assert rows_of(table) == {"a": (2, "sf", 2.0), "c": (1, "sf", 3.0)}
    check_index(table.view())


def test_what_the_commit_says_of_a_log_file(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(trips(("a", 1, "sf", 1.0)))
    done = table.upsert(trips(("a", 2, "sf", 2.0)))
    view = table.view()
    (stat,) = view.commit_metadata(view.timeline.instants[-1]).write_stats()
    (log,) = only_slice(table).log_files
    assert (stat.path, stat.prev_commit, stat.log_version, stat.log_offset) == (log.path, done.instant, 1, 0)
    assert (stat.base_file, stat.log_files, stat.num_writes, stat.num_update_writes) == ("", (log.name.name,), 1, 1)
    assert stat.file_size_bytes == log.size_bytes == (tmp_path / "t" / log.path).stat().st_size


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_the_format_of_data_blocks(tmp_path: Path, data_format: str) -> None:
    table = new_table(tmp_path / "t", properties={"hoodie.logfile.data.block.format": data_format})
    table.upsert(trips(("a", 1, "sf", 1.0)))
    table.upsert(trips(("a", 2, "sf", None)))
    assert [block.block_type.name for block in logged(table)[0]] == [f"{data_format.upper()}_DATA"]
    assert rows_of(table) == {"a": (2, "sf", None)}


def test_blocks_have_a_size(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    names = [f"k{number}" for number in range(100)]
    table.upsert(trips(*((name, 1, "sf", 1.0) for name in names)))
    changed = trips(*((name, 2, "sf", 2.0) for name in names))
    table.upsert(changed, properties={"hoodie.logfile.data.block.max.size": "2000"})
    (blocks,) = logged(table)
    assert len(blocks) > 3
    assert sorted(key for block in blocks for key in keys_of(block)) == sorted(names)
    assert set(rows_of(table).values()) == {(2, "sf", 2.0)}


def test_a_record_that_comes_back_late_goes_to_another_file_group(tmp_path: Path) -> None:
    """In the log that deletes it, its low ordering value would bring the deleted row back."""
    table = new_table(tmp_path / "t")
    table.upsert(trips(("a", 20, "sf", 1.0), ("b", 1, "sf", 1.0)))
    table.delete(pa.table({"id": ["a"]}))
    back = table.upsert(trips(("a", 5, "sf", 9.0), ("c", 1, "sf", 1.0)))
    assert (back.files_created, back.log_files_appended, back.inserted) == (1, 1, 2)
    assert rows_of(table) == {"a": (5, "sf", 9.0), "b": (1, "sf", 1.0), "c": (1, "sf", 1.0)}
    check_index(table.view())


@pytest.mark.parametrize(("ts", "is_there"), [(4, True), (5, False), (6, False)])
def test_deletes_in_order_are_decided_where_the_record_index_must_know(tmp_path: Path, ts: int, is_there: bool) -> None:
    table = new_table(tmp_path / "t", DELETABLE)
    table.upsert(trips(("a", 1, "sf", 1.0, False), schema=DELETABLE))
    table.upsert(trips(("a", 5, "sf", 2.0, False), schema=DELETABLE))
    done = table.upsert(trips(("a", ts, "sf", 0.0, True), schema=DELETABLE))
    assert (done.deleted, done.log_files_appended) == ((0, 0) if is_there else (1, 1))
    assert list(rows_of(table)) == (["a"] if is_there else [])
    check_index(table.view())
    table.upsert(trips(("a", 0, "sf", 3.0, False), schema=DELETABLE))
    assert rows_of(table)["a"][2] == (2.0 if is_there else 3.0)
    check_index(table.view())


def test_deletes_in_order_wait_for_late_rows_without_a_record_index(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", DELETABLE, index="simple")
    table.upsert(trips(("a", 1, "sf", 1.0, False), ("b", 1, "sf", 1.0, False), schema=DELETABLE))
    table.upsert(trips(("a", 5, "sf", 0.0, True), schema=DELETABLE))
    ((block,),) = logged(table)
    assert DeleteRecords.parse(block.content, path="").ordering.to_pylist() == [5]
    table.upsert(trips(("a", 4, "sf", 2.0, False), schema=DELETABLE))
    assert list(rows_of(table)) == ["b"]
    table.upsert(trips(("a", 5, "sf", 3.0, False), schema=DELETABLE))
    assert rows_of(table)["a"] == (5, "sf", 3.0)


def test_rows_that_a_deleted_base_row_hides_are_noted(tmp_path: Path) -> None:
    """Without a record index the row stays in its file group: elsewhere the JVM's next upsert would double it."""
    table = new_table(tmp_path / "t", index="simple")
    table.upsert(trips(("a", 20, "sf", 1.0), ("b", 20, "sf", 1.0), ("c", 20, "sf", 1.0), ("d", 20, "sf", 1.0)))
    gone = pa.table({"id": ["a", "b", "d"], "city": ["sf"] * 3})
    assert table.delete(gone).notes == ()
    again = table.upsert(trips(("a", 10, "sf", 2.0), ("b", 20, "sf", 2.0), ("c", 10, "sf", 2.0)))
    (note,) = again.notes
    assert note.startswith("1 rows have the key of a record that a log file deletes")
    assert rows_of(table) == {"a": (20, "sf", 1.0), "b": (20, "sf", 2.0), "c": (20, "sf", 1.0)}
    assert table.upsert(trips(("a", 10, "sf", 3.0), ("b", 30, "sf", 3.0))).notes == ()
    # The remedies that the note names.
    table.delete(gone)
    table.schedule_compaction()
    table.compact()
    done = table.upsert(trips(("a", 10, "sf", 4.0), ("d", 10, "sf", 4.0)))
    assert (done.inserted, done.notes) == (2, ())
    assert rows_of(table) == {"a": (10, "sf", 4.0), "c": (20, "sf", 1.0), "d": (10, "sf", 4.0)}


def test_a_record_that_moves_is_deleted_in_the_old_log(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    table.upsert(trips(("a", 1, "sf", 1.0), ("b", 1, "sf", 1.0), ("c", 1, "nyc", 1.0)))
    moved = table.upsert(trips(("a", 2, "nyc", 2.0)))
    assert (moved.updated, moved.inserted, moved.deleted, moved.log_files_appended) == (1, 0, 0, 2)
    assert rows_of(table)["a"] == (2, "nyc", 2.0)
    table.upsert(trips(("a", 1, "sf", 0.0)))
    assert rows_of(table)["a"] == (2, "nyc", 2.0)
    table.upsert(trips(("a", 2, "sf", 3.0)))
    assert rows_of(table)["a"] == (2, "sf", 3.0)
    check_index(table.view())


def test_inserts_stay_out_of_logs_where_the_index_does_not_look(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", index="simple")
    table.upsert(trips(("a", 1, "sf", 1.0)))
    small = table.upsert(trips(("a", 2, "sf", 2.0), ("b", 1, "sf", 1.0)))
    assert (small.files_updated, small.files_created, small.log_files_appended) == (1, 0, 0)
    assert table.upsert(trips(("a", 3, "sf", 3.0))).log_files_appended == 1
    other = table.upsert(trips(("a", 4, "sf", 4.0), ("c", 1, "sf", 1.0)))
    assert (other.files_updated, other.files_created, other.log_files_appended) == (0, 1, 1)
    assert rows_of(table) == {"a": (4, "sf", 4.0), "b": (1, "sf", 1.0), "c": (1, "sf", 1.0)}


def test_an_update_logs_the_changed_columns_only(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", index="simple", merge_mode="commit_time")
    table.upsert(trips(("a", 7, "sf", 1.0), ("b", 7, "sf", 2.0)))
    done = table.update({"fare": "fare + 10"}, where="id = 'a'")
    assert (done.updated, done.inserted, done.log_files_appended) == (1, 0, 1)
    ((block,),) = logged(table)
    assert block.headers[IS_PARTIAL] == "true"
    assert [name for name in read_data_block(block, path="").column_names if name[0] != "_"] == ["fare"]
    assert rows_of(table) == {"a": (7, "sf", 11.0), "b": (7, "sf", 2.0)}


@pytest.mark.parametrize(("schema", "index"), [(DELETABLE, "simple"), (SCHEMA, "record")])
def test_whole_rows_are_logged_where_the_jvm_fails_on_parts(tmp_path: Path, schema: pa.Schema, index: str) -> None:
    table = new_table(tmp_path / "t", schema, index=index)
    table.upsert(trips(("a", 7, "sf", 1.0, False)[: len(schema)], schema=schema))
    table.update({"fare": "fare + 10"})
    ((block,),) = logged(table)
    assert IS_PARTIAL not in block.headers
    assert rows_of(table) == {"a": (7, "sf", 11.0)}
    table.update({"fare": "fare + 1"}, properties={"hoodie.python.partial.updates": "always"})
    assert [IS_PARTIAL in block.headers for (block,) in logged(table)] == [False, True]
    assert rows_of(table) == {"a": (7, "sf", 12.0)}


def total(older: pa.Table, newer: pa.Table) -> pa.Table:
    """A Python merger: fares add up."""
    added = pa.compute.add(older["fare"], newer["fare"])
    return newer.set_column(newer.column_names.index("fare"), "fare", added)


def test_a_python_merger_folds_logs(tmp_path: Path) -> None:
    with pytest.raises(hoodie.UnsupportedError, match="index='simple'"):
        new_table(tmp_path / "t", merge_mode=total)
    table = new_table(tmp_path / "t", merge_mode=total, index="simple")
    for fare in (1.0, 2.0, 4.0):
        table.upsert(trips(("a", 1, "sf", fare), ("b", 1, "nyc", 1.0)))
    assert rows_of(table) == {"a": (1, "sf", 7.0), "b": (1, "nyc", 3.0)}
    table.update({"fare": "100.0"}, where="id = 'b'")
    assert rows_of(table)["b"][2] == 103.0


def test_a_backlog_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    results = [table.upsert(trips(("a", number, "sf", 1.0))) for number in range(11)]
    assert [result.backlog for result in results] == list(range(11))
    assert not any(result.notes for result in results[:10])
    assert "hoodie.compact.inline=true" in results[10].notes[0]
    assert "10.0 log files per file slice" in str(results[10])


def test_compaction_inline(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", properties=INLINE)
    first = table.upsert(trips(("a", 1, "sf", 1.0)))
    assert first.compaction is None
    second = table.upsert(trips(("a", 2, "sf", 2.0)))
    assert second.compaction is not None
    assert second.compaction.instant is not None
    assert second.backlog == 0.0
    assert only_slice(table).base_instant_time == second.compaction.instant
    assert rows_of(table) == {"a": (2, "sf", 2.0)}
    check_index(table.view())


@pytest.mark.parametrize(
    ("ordering", "properties", "expected"),
    [
        ("ts", {}, BlockType.PARQUET_DATA),
        ("city", {}, BlockType.AVRO_DATA),
        ("city", {"hoodie.logfile.data.block.format": "parquet"}, BlockType.PARQUET_DATA),
    ],
)
def test_blocks_are_avro_where_a_text_orders_versions(
    tmp_path: Path, ordering: str, properties: dict[str, str], expected: BlockType
) -> None:
    table = new_table(tmp_path / "t", ordering=ordering, partition_by=[], properties=properties)
    table.upsert(trips(("a", 1, "nyc", 1.0)))
    table.upsert(trips(("a", 2, "sf", 2.0)))
    ((block,),) = logged(table)
    assert block.block_type is expected
