"""What writes append to the logs of a merge-on-read table, where rows go that a log cannot take, and late events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import UnsupportedError
from hoodie.files.logs.log_scan import ScanRule, scan_blocks
from hoodie.files.slices import FileSlice
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write.files import task_changes
from tests.support import tables
from tests.support.index_check import check_index
from tests.unit.write.tables import ids_of, untouched

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
DELETABLE = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}


def new_table(*rows: tuple[Any, ...], schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    """A merge-on-read table ordered by `ts`, with these rows."""
    named: dict[str, Any] = {"partition_by": "city", "ordering": "ts", "type": "merge_on_read"}
    return tables.new_table(schema, *([trips(*rows, schema=schema)] if rows else []), **{**named, **options})


def trips(*rows: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    return tables.table_of(schema, *rows)


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return tables.values_of(table, "id", "ts", "city", "fare")


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


def test_changes_of_a_file_group_are_one_log_file_of_the_delta_commit() -> None:
    table = new_table()
    first = table.upsert(trips(("a", 1, "sf", 1.0), ("b", 1, "sf", 1.0)))
    assert (first.action, first.files_created, first.log_files_appended, first.backlog) == ("deltacommit", 1, 0, 0.0)
    second = table.upsert(trips(("a", 2, "sf", 2.0), ("c", 1, "sf", 3.0)))
    assert (second.inserted, second.updated, second.files_updated, second.log_files_appended) == (1, 1, 0, 1)
    table.delete(["b"])
    found = only_slice(table)
    assert found.base_file is not None
    assert found.base_file.instant_time == first.instant
    assert next((log.name.instant_time, log.name.version) for log in found.log_files) == (second.instant, 1)
    (data, inserted), (deletes,) = logged(table)
    assert data.headers[HeaderKey.INSTANT_TIME] == second.instant
    assert [keys_of(block) for block in (data, inserted, deletes)] == [["a"], ["c"], ["b"]]
    rows = read_data_block(data, path="")
    assert rows["_hoodie_file_name"].to_pylist() == [found.file_id]
    assert rows_of(table) == [("a", 2, "sf", 2.0), ("c", 1, "sf", 3.0)]
    check_index(table.view())


def test_what_the_commit_says_of_a_log_file() -> None:
    table = new_table(("a", 1, "sf", 1.0))
    done = table.upsert(trips(("a", 2, "sf", 2.0)))
    view = table.view()
    (stat,) = view.commit_metadata(view.timeline.instants[-1]).write_stats()
    (log,) = only_slice(table).log_files
    assert (stat.path, stat.prev_commit, stat.log_version, stat.log_offset) == (log.path, done.instant, 1, 0)
    assert (stat.base_file, stat.log_files, stat.num_writes, stat.num_update_writes) == ("", (log.name.name,), 1, 1)
    assert stat.file_size_bytes == log.size_bytes == len(table.view().store.read(log.path))


@pytest.mark.parametrize(
    ("ordering", "data_format", "expected"),
    [
        ("ts", None, BlockType.PARQUET_DATA),
        ("ts", "avro", BlockType.AVRO_DATA),
        ("city", None, BlockType.AVRO_DATA),
        ("city", "parquet", BlockType.PARQUET_DATA),
    ],
)
def test_the_format_of_data_blocks(ordering: str, data_format: str | None, expected: BlockType) -> None:
    """Avro where a text orders versions, unless an option says otherwise."""
    asked = {"hoodie.logfile.data.block.format": data_format} if data_format else {}
    table = new_table(("a", 1, "nyc", 1.0), ordering=ordering, partition_by=[], properties=asked)
    table.upsert(trips(("a", 2, "sf", None)))
    ((block,),) = logged(table)
    assert block.block_type is expected
    assert rows_of(table) == [("a", 2, "sf", None)]


def test_blocks_have_a_size() -> None:
    names = [f"k{number:02}" for number in range(100)]
    table = new_table(*((name, 1, "sf", 1.0) for name in names))
    changed = trips(*((name, 2, "sf", 2.0) for name in names))
    table.upsert(changed, properties={"hoodie.logfile.data.block.max.size": "2000"})
    (blocks,) = logged(table)
    assert len(blocks) > 3
    assert sorted(key for block in blocks for key in keys_of(block)) == names
    assert rows_of(table) == [(name, 2, "sf", 2.0) for name in names]


def test_a_record_that_comes_back_late_goes_to_another_file_group() -> None:
    """In the log that deletes it, its low ordering value would bring the deleted row back."""
    table = new_table(("a", 20, "sf", 1.0), ("b", 1, "sf", 1.0))
    table.delete(["a"])
    back = table.upsert(trips(("a", 5, "sf", 9.0), ("c", 1, "sf", 1.0)))
    assert (back.files_created, back.log_files_appended, back.inserted) == (1, 1, 2)
    assert rows_of(table) == [("a", 5, "sf", 9.0), ("b", 1, "sf", 1.0), ("c", 1, "sf", 1.0)]
    check_index(table.view())


@pytest.mark.parametrize(("ts", "is_there"), [(4, True), (5, False), (6, False)])
def test_deletes_in_order_are_decided_where_the_record_index_must_know(ts: int, is_there: bool) -> None:
    table = new_table(("a", 1, "sf", 1.0, False), schema=DELETABLE)
    table.upsert(trips(("a", 5, "sf", 2.0, False), schema=DELETABLE))
    done = table.upsert(trips(("a", ts, "sf", 0.0, True), schema=DELETABLE))
    assert (done.deleted, done.log_files_appended) == ((0, 0) if is_there else (1, 1))
    assert ids_of(table) == (["a"] if is_there else [])
    check_index(table.view())
    table.upsert(trips(("a", 0, "sf", 3.0, False), schema=DELETABLE))
    assert rows_of(table)[0][3] == (2.0 if is_there else 3.0)
    check_index(table.view())


def test_deletes_in_order_wait_for_late_rows_without_a_record_index() -> None:
    table = new_table(("a", 1, "sf", 1.0, False), ("b", 1, "sf", 1.0, False), schema=DELETABLE, index="simple")
    table.upsert(trips(("a", 5, "sf", 0.0, True), schema=DELETABLE))
    ((block,),) = logged(table)
    assert DeleteRecords.parse(block.content, path="").ordering.to_pylist() == [5]
    table.upsert(trips(("a", 4, "sf", 2.0, False), schema=DELETABLE))
    assert ids_of(table) == ["b"]
    table.upsert(trips(("a", 5, "sf", 3.0, False), schema=DELETABLE))
    assert rows_of(table)[0] == ("a", 5, "sf", 3.0)


def test_rows_that_a_deleted_base_row_hides_are_noted() -> None:
    """Without a record index the row stays in its file group: elsewhere the JVM's next upsert would double it."""
    table = new_table(
        ("a", 20, "sf", 1.0), ("b", 20, "sf", 1.0), ("c", 20, "sf", 1.0), ("d", 20, "sf", 1.0), index="simple"
    )
    gone = [{"id": key, "city": "sf"} for key in ("a", "b", "d")]
    assert table.delete(gone).notes == ()
    again = table.upsert(trips(("a", 10, "sf", 2.0), ("b", 20, "sf", 2.0), ("c", 10, "sf", 2.0)))
    (note,) = again.notes
    assert note.startswith("1 rows have the key of a record that a log file deletes")
    assert rows_of(table) == [("a", 20, "sf", 1.0), ("b", 20, "sf", 2.0), ("c", 20, "sf", 1.0)]
    assert table.upsert(trips(("a", 10, "sf", 3.0), ("b", 30, "sf", 3.0))).notes == ()
    # The remedies that the note names.
    table.delete(gone)
    table.schedule_compaction()
    table.compact()
    done = table.upsert(trips(("a", 10, "sf", 4.0), ("d", 10, "sf", 4.0)))
    assert (done.inserted, done.notes) == (2, ())
    assert rows_of(table) == [("a", 10, "sf", 4.0), ("c", 20, "sf", 1.0), ("d", 10, "sf", 4.0)]


def test_a_record_that_moves_is_deleted_in_the_old_log() -> None:
    table = new_table(("a", 1, "sf", 1.0), ("b", 1, "sf", 1.0), ("c", 1, "nyc", 1.0))
    moved = table.upsert(trips(("a", 2, "nyc", 2.0)))
    assert (moved.updated, moved.inserted, moved.deleted, moved.log_files_appended) == (1, 0, 0, 2)
    assert rows_of(table)[0] == ("a", 2, "nyc", 2.0)
    table.upsert(trips(("a", 1, "sf", 0.0)))
    assert rows_of(table)[0] == ("a", 2, "nyc", 2.0)
    table.upsert(trips(("a", 2, "sf", 3.0)))
    assert rows_of(table)[0] == ("a", 2, "sf", 3.0)
    check_index(table.view())


def test_inserts_stay_out_of_logs_where_the_index_does_not_look() -> None:
    table = new_table(("a", 1, "sf", 1.0), index="simple")
    small = table.upsert(trips(("a", 2, "sf", 2.0), ("b", 1, "sf", 1.0)))
    assert (small.files_updated, small.files_created, small.log_files_appended) == (1, 0, 0)
    assert table.upsert(trips(("a", 3, "sf", 3.0))).log_files_appended == 1
    other = table.upsert(trips(("a", 4, "sf", 4.0), ("c", 1, "sf", 1.0)))
    assert (other.files_updated, other.files_created, other.log_files_appended) == (0, 1, 1)
    assert rows_of(table) == [("a", 4, "sf", 4.0), ("b", 1, "sf", 1.0), ("c", 1, "sf", 1.0)]


def test_an_update_logs_the_changed_columns_only() -> None:
    table = new_table(("a", 7, "sf", 1.0), ("b", 7, "sf", 2.0), index="simple", merge_mode="commit_time")
    done = table.update({"fare": "fare + 10"}, where="id = 'a'")
    assert (done.updated, done.inserted, done.log_files_appended) == (1, 0, 1)
    ((block,),) = logged(table)
    assert block.headers[HeaderKey.IS_PARTIAL] == "true"
    assert [name for name in read_data_block(block, path="").column_names if name[0] != "_"] == ["fare"]
    assert rows_of(table) == [("a", 7, "sf", 11.0), ("b", 7, "sf", 2.0)]


@pytest.mark.parametrize(("schema", "index"), [(DELETABLE, "simple"), (SCHEMA, "record")])
def test_whole_rows_are_logged_where_the_jvm_fails_on_parts(schema: pa.Schema, index: str) -> None:
    table = new_table(("a", 7, "sf", 1.0, False)[: len(schema)], schema=schema, index=index)
    table.update({"fare": "fare + 10"})
    ((block,),) = logged(table)
    assert HeaderKey.IS_PARTIAL not in block.headers
    assert rows_of(table) == [("a", 7, "sf", 11.0)]
    table.update({"fare": "fare + 1"}, properties={"hoodie.python.partial.updates": "always"})
    assert [HeaderKey.IS_PARTIAL in block.headers for (block,) in logged(table)] == [False, True]
    assert rows_of(table) == [("a", 7, "sf", 12.0)]


def total(older: pa.Table, newer: pa.Table) -> pa.Table:
    """A Python merger: fares add up."""
    added = pa.compute.add(older["fare"], newer["fare"])
    return newer.set_column(newer.column_names.index("fare"), "fare", added)


def test_a_python_merger_folds_logs() -> None:
    with pytest.raises(UnsupportedError, match="index='simple'"):
        new_table(merge_mode=total)
    table = new_table(merge_mode=total, index="simple")
    for fare in (1.0, 2.0, 4.0):
        table.upsert(trips(("a", 1, "sf", fare), ("b", 1, "nyc", 1.0)))
    assert rows_of(table) == [("a", 1, "sf", 7.0), ("b", 1, "nyc", 3.0)]
    table.update({"fare": "100.0"}, where="id = 'b'")
    assert rows_of(table)[1][3] == 103.0


def test_a_backlog_is_told() -> None:
    table = new_table()
    results = [table.upsert(trips(("a", number, "sf", 1.0))) for number in range(11)]
    assert [result.backlog for result in results] == list(range(11))
    assert not any(result.notes for result in results[:10])
    assert "hoodie.compact.inline=true" in results[10].notes[0]
    assert "10.0 log files per file slice" in str(results[10])
    done = table.upsert(trips(("a", 11, "sf", 1.0)), properties=INLINE)
    assert done.compaction is not None
    assert (only_slice(table).base_instant_time, done.backlog) == (done.compaction.instant, 0.0)


EVENTS = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("a", pa.string()), ("n", pa.int64())]
)
FIRST = ("k", 20, "sf", "a0", 0)


def events(*rows: tuple[Any, ...], schema: pa.Schema = EVENTS, **options: Any) -> Table:
    return new_table(*rows, schema=schema, **options)


def data(*rows: tuple[Any, ...], schema: pa.Schema = EVENTS) -> pa.Table:
    return tables.table_of(schema, *rows)


def found(table: Table) -> list[tuple[Any, ...]]:
    return tables.values_of(table, *EVENTS.names)


@pytest.mark.parametrize("late_comes_first", [True, False])
def test_an_update_does_not_bring_a_late_row_back(late_comes_first: bool) -> None:
    table = events(FIRST, index="simple")
    late = data(("k", 10, "sf", "late", 99))
    if late_comes_first:
        table.upsert(late)
    table.update({"n": "n + 1"})
    if not late_comes_first:
        table.upsert(late)
    assert found(table) == [("k", 20, "sf", "a0", 1)]
    table.schedule_compaction()
    table.compact()
    assert found(table) == [("k", 20, "sf", "a0", 1)]


@pytest.mark.parametrize("index", ["record", "partitioned_record", "simple"])
def test_inserts_of_known_keys_stay_rows_of_their_own(index: str) -> None:
    table = events(FIRST, index=index)
    rows = [("k", 10, "sf", "again", 1), ("m", 1, "sf", "one", 1), ("m", 1, "sf", "two", 2)]
    done = table.insert(data(*rows))
    assert (done.inserted, done.files_updated, done.log_files_appended) == (3, 1, 0)
    assert found(table) == [rows[0], ("k", 20, "sf", "a0", 0), *rows[1:]]
    table.upsert(data(("k", 30, "sf", "new", 2)))
    table.delete([{"id": "m", "city": "sf"}])
    assert found(table) == [("k", 30, "sf", "new", 2)] * 2
    # The group has a log now.
    table.insert(data(("k", 5, "sf", "third", 3)))
    assert len(found(table)) == 3


def sums(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
    """A Python merger: numbers add up, and a negative sum deletes."""
    added = pc.add(older["n"], newer["n"])
    merged = newer.set_column(newer.column_names.index("n"), "n", added)
    return merged, pc.less(added, 0).combine_chunks()


def test_a_merge_function_does_not_see_what_was_deleted() -> None:
    rows = [(key, 1, "sf", "x", 100) for key in "dgu"]
    table = events(*rows, index="simple", ordering=None, merge_mode=sums)
    table.upsert(data(("g", 1, "sf", "x", -300), ("u", 1, "sf", "x", 1)))
    table.delete([{"id": "d", "city": "sf"}])
    after = [("u", 1, "sf", "x", 101)]
    assert found(table) == after
    for n in (5, 7):
        table.upsert(data(("d", 1, "sf", "x", n)))
    after = [("d", 1, "sf", "x", 12), *after]
    assert found(table) == after
    assert table.schedule_log_compaction(1) is not None
    table.compact()
    assert found(table) == after
    table.schedule_compaction()
    table.compact()
    assert found(table) == after


@pytest.mark.parametrize("index", ["record", "simple"])
def test_a_delete_without_ordering_value_wins(index: str) -> None:
    schema = EVENTS.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    rows = [(key, 20, "sf", "a", 0, False) for key in "km"]
    table = events(*rows, schema=schema, index=index)
    table.upsert(data(("k", None, "sf", "a", 0, True), schema=schema))
    assert [row[0] for row in found(table)] == ["m"]


def test_deletes_name_the_partition_that_they_are_in() -> None:
    moves = {"hoodie.record.index.update.partition.path": "true"}
    table = events(("k", 1, "sf", "a", 0), ("m", 1, "sf", "a", 0), properties=moves)
    table.upsert(data(("k", 2, "nyc", "a", 0)))
    table.delete(["m"])
    view = table.view()
    blocks = [block for piece in list_slices(view) for block in scan_blocks(view.store, piece.log_files, ScanRule())]
    deletes = [DeleteRecords.parse(block.read(view.store).content, path="") for block in blocks]
    assert [records.partition_paths.to_pylist() for records in deletes] == [["city=sf"], ["city=sf"]]
    assert table.to_arrow(columns=["id"]).to_pylist() == [{"id": "k"}]


def test_many_records_that_come_back_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_changes, "_PART_BYTES", 64)
    rows = [(f"k{n}", 20, "sf", "a", n) for n in range(50)]
    table = events(*rows)
    table.delete([row[0] for row in rows[10:]])
    back = [(f"k{n}", 5, "sf", "back", n) for n in range(10, 60)]
    done = table.upsert(data(*back))
    assert (done.inserted, done.files_created, done.log_files_appended) == (50, 1, 1)
    assert found(table) == sorted(rows[:10] + back)
    check_index(table.view())


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_kept_values_are_not_merged_with_themselves(table_type: str) -> None:
    """Calls that keep some values of a stored row would add them up; they are refused."""
    table = events(("k", 1, "sf", "x", 10), index="simple", ordering=None, merge_mode=sums, type=table_type)
    part = pa.table({"id": ["k"], "city": ["sf"], "ts": [2]})
    merge = table.merge(part, "t.id = s.id AND t.city = s.city").when_matched_update({"ts": "s.ts"})
    for call in (merge.execute, lambda: table.upsert(part, partial=True)):
        with untouched(table, "merge the values that a row keeps with themselves", UnsupportedError):
            call()
