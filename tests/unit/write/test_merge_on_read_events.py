"""Late events, deletes and duplicates in the logs of a merge-on-read table: what must come out is what was written."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.files.logs.log_scan import ScanRule, scan_blocks
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.table import Table
from hoodie.view.slices import list_slices
from hoodie.write.files import task_changes
from tests.support.index_check import check_index

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("a", pa.string()), ("n", pa.int64())]
)
_NUMBERS = count()


def new_table(schema: pa.Schema = SCHEMA, **options: Any) -> Table:
    """A merge-on-read table in this process, ordered by `ts`."""
    named: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", "type": "merge_on_read"}
    return hoodie.create(f"memory://events-{next(_NUMBERS)}", schema, **{**named, **options}, spark=False)


def data(*rows: tuple[Any, ...], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)],
        schema=schema,
    )


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(columns=SCHEMA.names).to_pylist())


@pytest.mark.parametrize("late_comes_first", [True, False])
def test_an_update_does_not_bring_a_late_row_back(late_comes_first: bool) -> None:
    table = new_table(index="simple")
    table.upsert(data(("k", 20, "sf", "a0", 0)))
    late = data(("k", 10, "sf", "late", 99))
    if late_comes_first:
        table.upsert(late)
    table.update({"n": "n + 1"})
    if not late_comes_first:
        table.upsert(late)
    assert rows_of(table) == [("k", 20, "sf", "a0", 1)]
    table.schedule_compaction()
    table.compact()
    assert rows_of(table) == [("k", 20, "sf", "a0", 1)]


@pytest.mark.parametrize("index", ["record", "partitioned_record", "simple"])
def test_inserts_of_known_keys_stay_rows_of_their_own(index: str) -> None:
    table = new_table(index=index)
    table.upsert(data(("k", 20, "sf", "a0", 0)))
    rows = [("k", 10, "sf", "again", 1), ("m", 1, "sf", "one", 1), ("m", 1, "sf", "two", 2)]
    done = table.insert(data(*rows))
    assert (done.inserted, done.files_updated, done.log_files_appended) == (3, 1, 0)
    assert rows_of(table) == [rows[0], ("k", 20, "sf", "a0", 0), *rows[1:]]
    table.upsert(data(("k", 30, "sf", "new", 2)))
    table.delete(pa.table({"id": ["m"], "city": ["sf"]}))
    assert rows_of(table) == [("k", 30, "sf", "new", 2)] * 2
    # The group has a log now.
    table.insert(data(("k", 5, "sf", "third", 3)))
    assert len(rows_of(table)) == 3


def total(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
    """A Python merger: numbers add up, and a negative sum deletes."""
    added = pc.add(older["n"], newer["n"])
    merged = newer.set_column(newer.column_names.index("n"), "n", added)
    return merged, pc.less(added, 0).combine_chunks()


def test_a_merge_function_does_not_see_what_was_deleted() -> None:
    table = new_table(index="simple", ordering=None, merge_mode=total)
    table.upsert(data(("d", 1, "sf", "x", 100), ("g", 1, "sf", "x", 100), ("u", 1, "sf", "x", 100)))
    table.upsert(data(("g", 1, "sf", "x", -300), ("u", 1, "sf", "x", 1)))
    table.delete(pa.table({"id": ["d"], "city": ["sf"]}))
    after = [("u", 1, "sf", "x", 101)]
    assert rows_of(table) == after
    for n in (5, 7):
        table.upsert(data(("d", 1, "sf", "x", n)))
    after = [("d", 1, "sf", "x", 12), *after]
    assert rows_of(table) == after
    assert table.schedule_log_compaction(1) is not None
    table.compact()
    assert rows_of(table) == after
    table.schedule_compaction()
    table.compact()
    assert rows_of(table) == after


@pytest.mark.parametrize("index", ["record", "simple"])
def test_a_delete_without_ordering_value_wins(index: str) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = new_table(schema, index=index)
    table.upsert(data(("k", 20, "sf", "a", 0, False), ("m", 20, "sf", "a", 0, False), schema=schema))
    table.upsert(data(("k", None, "sf", "a", 0, True), schema=schema))
    assert [row[0] for row in rows_of(table)] == ["m"]


def test_deletes_name_the_partition_that_they_are_in() -> None:
    table = new_table(properties={"hoodie.record.index.update.partition.path": "true"})
    table.upsert(data(("k", 1, "sf", "a", 0), ("m", 1, "sf", "a", 0)))
    table.upsert(data(("k", 2, "nyc", "a", 0)))
    table.delete(pa.table({"id": ["m"]}))
    view = table.view()
    blocks = [block for found in list_slices(view) for block in scan_blocks(view.store, found.log_files, ScanRule())]
    deletes = [DeleteRecords.parse(block.read(view.store).content, path="") for block in blocks]
    assert [found.partition_paths.to_pylist() for found in deletes] == [["city=sf"], ["city=sf"]]
    assert table.to_arrow(columns=["id"]).to_pylist() == [{"id": "k"}]


def test_many_records_that_come_back_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_changes, "_PART_BYTES", 64)
    table = new_table()
    rows = [(f"k{n}", 20, "sf", "a", n) for n in range(50)]
    table.upsert(data(*rows))
    table.delete(pa.table({"id": [row[0] for row in rows[10:]]}))
    back = [(f"k{n}", 5, "sf", "back", n) for n in range(10, 60)]
    done = table.upsert(data(*back))
    assert (done.inserted, done.files_created, done.log_files_appended) == (50, 1, 1)
    assert rows_of(table) == sorted(rows[:10] + back)
    check_index(table.view())


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_kept_values_are_not_merged_with_themselves(table_type: str) -> None:
    """Calls that keep some values of a stored row would add them up; they are refused."""
    table = new_table(index="simple", ordering=None, merge_mode=total, type=table_type)
    table.upsert(data(("k", 1, "sf", "x", 10)))
    part = pa.table({"id": ["k"], "city": ["sf"], "ts": [2]})
    merge = table.merge(part, "t.id = s.id AND t.city = s.city").when_matched_update({"ts": "s.ts"})
    with pytest.raises(hoodie.UnsupportedError, match="merge the values that a row keeps with themselves"):
        table.upsert(part, partial=True)
    with pytest.raises(hoodie.UnsupportedError, match="merge the values that a row keeps with themselves"):
        merge.execute()
    assert rows_of(table) == [("k", 1, "sf", "x", 10)]
