"""A batch that changes nothing is a commit without files; a file group in which nothing changes is not rewritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write.files import file_task
from tests.support import tables
from tests.support.rows import assert_same_rows
from tests.support.tables import TYPES, made_once, table_of
from tests.unit.write.tables import NAMED, SCHEMA, ids_of, trips
from tests.unit.write.tables import new_table as table_with

INDEXES = ("record", "partitioned_record", "simple", "global_simple", "bloom", "bucket")
A, B, C = ("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "nyc")
STORED = trips(A, B, C)


def new_table(**options: Any) -> Table:
    return table_with(STORED, **options)


def wrote(result: hoodie.WriteResult) -> tuple[int, int, int]:
    """The numbers of new base files, rewritten base files and log files."""
    return result.files_created, result.files_updated, result.log_files_appended


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("type", TYPES)
def test_late_rows_write_no_file(index: str, type: str) -> None:
    table = new_table(index=index, type=type)
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("c", 1, 9.0, "nyc")))
    assert wrote(result) == (0, 0, 0)
    assert (result.inserted, result.updated, result.ignored) == (0, 0, 2)
    assert result.bytes_written == 0
    assert_same_rows(table.to_arrow(), STORED, key="id")
    assert table.history().to_pandas()["instant"].iloc[0] == result.instant
    table.upsert(trips(("a", 6, 9.0, "sf")))
    assert_same_rows(table.to_arrow(where="id = 'a'"), trips(("a", 6, 9.0, "sf")), key="id")


@pytest.mark.parametrize("type", TYPES)
def test_only_file_groups_with_a_change_are_written(type: str) -> None:
    table = new_table(type=type)
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("c", 6, 9.0, "nyc")))
    assert sum(wrote(result)) == 1
    assert_same_rows(table.to_arrow(), trips(A, B, ("c", 6, 9.0, "nyc")), key="id")


def test_a_batch_that_is_sent_again_writes_no_file() -> None:
    table = new_table()
    again = table.upsert(trips(B, C, ("a", 4, 9.0, "sf")))
    assert wrote(again) == (0, 0, 0)
    assert (again.updated, again.ignored) == (2, 1)
    assert set(table.to_arrow(columns=["_hoodie_commit_time"])[0].to_pylist()) != {again.instant}


def test_without_ordering_columns_every_row_wins() -> None:
    table = new_table(ordering=None)
    again = table.upsert(STORED)
    assert (wrote(again), again.updated) == ((0, 2, 0), 3)
    assert set(table.to_arrow(columns=["_hoodie_commit_time"])[0].to_pylist()) == {again.instant}


@pytest.mark.parametrize(("stored", "sent"), [(1.0, 1.5), (0.0, -0.0), (None, 0.0), (1.0, None), (float("nan"), 1.0)])
def test_values_that_look_the_same_are_told_apart(stored: float | None, sent: float | None) -> None:
    table = table_with(trips(("a", 5, stored, "sf"), B))
    assert wrote(table.upsert(trips(("a", 5, sent, "sf"), B))) == (0, 1, 0)
    found = table.to_arrow(where="id = 'a'")["fare"].to_pylist()
    assert str(found) == str([sent])
    assert wrote(table.upsert(trips(("a", 5, sent, "sf")))) == (0, 0, 0)


def test_floats_inside_of_lists_are_compared_by_their_bits() -> None:
    points, numbers = pa.list_(pa.float64()), pa.list_(pa.int64())
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("points", points), ("n", numbers)])

    def row(point: float) -> pa.Table:
        return table_of(schema, ("a", 1, [point, float("nan")], [1, 2]))

    table = tables.new_table(schema, row(0.0), ordering="ts")
    assert wrote(table.upsert(row(0.0))) == (0, 0, 0)
    assert wrote(table.upsert(row(-0.0))) == (0, 1, 0)


def test_deletes_count_as_changes_only_of_known_keys() -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))

    def marked(*rows: tuple[str, int, bool]) -> pa.Table:
        return table_of(schema, *((key, ts, 1.0, "sf", gone) for key, ts, gone in rows))

    table = tables.new_table(schema, marked(("a", 5, False), ("b", 5, False)), **NAMED, index="simple")
    late = table.upsert(marked(("a", 4, True), ("z", 9, True)))
    assert (wrote(late), late.deleted, late.ignored) == ((0, 0, 0), 0, 2)
    assert wrote(table.delete([{"id": "zz", "city": "sf"}])) == (0, 0, 0)
    assert wrote(table.delete([{"id": "a", "city": "sf"}])) == (0, 1, 0)
    assert ids_of(table) == ["b"]


def test_inserts_beside_rows_that_lose_are_written() -> None:
    table = new_table()
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("d", 1, 4.0, "sf")))
    assert (result.inserted, result.ignored, wrote(result)) == (1, 1, (0, 1, 0))
    assert ids_of(table) == ["a", "b", "c", "d"]


MANY = 300_000
"""Rows of a base file that is read in several pieces."""


def many_rows() -> pa.Table:
    keys = pc.utf8_lpad(pa.array(range(MANY)).cast(pa.string()), 8, "0")
    return pa.table({"id": keys, "ts": pa.repeat(pa.scalar(5), MANY), "n": pa.array(range(MANY))})


@made_once
def many_stored() -> Table:
    rows = many_rows()
    table = hoodie.create(MemoryStore().uri(""), rows.schema, record_key="id", ordering="ts", spark=False)
    table.bulk_insert(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    assert table.inspect.files().num_rows == 1
    return table


@pytest.mark.parametrize("held_bytes_max", [0, 1 << 30])
@pytest.mark.parametrize("changed", [None, 0, MANY - 1])
def test_changes_behind_many_unchanged_rows_are_found(
    changed: int | None, held_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_task, "_HELD_BYTES_MAX", held_bytes_max)
    table, sent = many_stored(), many_rows()
    if changed is not None:
        numbers = np.arange(MANY)
        numbers[changed] = -1
        sent = sent.set_column(2, "n", pa.array(numbers))
    result = table.upsert(sent.take([0, 1, MANY - 2, MANY - 1]))
    assert wrote(result) == (0, 0 if changed is None else 1, 0)
    assert table.to_arrow(columns=["id", "ts", "n"]).sort_by("id").equals(sent)


def test_a_log_file_is_appended_if_one_row_may_win() -> None:
    table = new_table(type="merge_on_read")
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("b", 6, 9.0, "sf")))
    assert wrote(result) == (0, 0, 1)
    assert_same_rows(table.to_arrow(where="city = 'sf'"), trips(A, ("b", 6, 9.0, "sf")), key="id")


def test_records_that_only_a_log_deletes_take_late_rows_without_an_index() -> None:
    table = new_table(type="merge_on_read", index="simple")
    table.delete([{"id": "a", "city": "sf"}])
    assert wrote(table.upsert(trips(("a", 4, 9.0, "sf")))) == (0, 0, 1)
