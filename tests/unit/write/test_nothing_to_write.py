"""A batch that changes nothing is a commit without files; a file group in which nothing changes is not rewritten."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.table import Table
from hoodie.write.files import file_task
from tests.support.rows import assert_same_rows
from tests.unit.write.tables import SCHEMA, trips

INDEXES = ("record", "partitioned_record", "simple", "global_simple", "bloom", "bucket")
_numbers = itertools.count()


def new_table(**options: Any) -> Table:
    """A table with the rows a, b (sf) and c (nyc), all at 5."""
    chosen = {"record_key": "id", "partition_by": "city", "ordering": "ts", "spark": False, **options}
    table = hoodie.create(f"memory://nothing-{next(_numbers)}", SCHEMA, **chosen)
    table.bulk_insert(STORED)
    return table


STORED = trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 5, 3.0, "nyc"))


def wrote(result: hoodie.WriteResult) -> tuple[int, int, int]:
    """The numbers of new base files, rewritten base files and log files."""
    return result.files_created, result.files_updated, result.log_files_appended


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("type", ["copy_on_write", "merge_on_read"])
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


@pytest.mark.parametrize("type", ["copy_on_write", "merge_on_read"])
def test_only_file_groups_with_a_change_are_written(type: str) -> None:
    table = new_table(type=type)
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("c", 6, 9.0, "nyc")))
    assert sum(wrote(result)) == 1
    assert_same_rows(table.to_arrow(), trips(("a", 5, 1.0, "sf"), ("b", 5, 2.0, "sf"), ("c", 6, 9.0, "nyc")), key="id")


def test_a_batch_that_is_sent_again_writes_no_file() -> None:
    table = new_table()
    again = table.upsert(pa.concat_tables([STORED, trips(("a", 4, 9.0, "sf"))]).slice(1))
    assert wrote(again) == (0, 0, 0)
    assert (again.updated, again.ignored) == (2, 1)
    assert set(table.to_arrow(columns=["_hoodie_commit_time"])[0].to_pylist()) != {again.instant}


def test_without_ordering_columns_every_row_wins() -> None:
    table = new_table(ordering=None)
    again = table.upsert(STORED)
    assert (wrote(again), again.updated) == ((0, 2, 0), 3)
    assert set(table.to_arrow(columns=["_hoodie_commit_time"])[0].to_pylist()) == {again.instant}


def test_a_row_that_differs_in_one_value_is_written() -> None:
    table = new_table()
    result = table.upsert(trips(("a", 5, 1.0, "sf"), ("b", 5, 2.5, "sf")))
    assert wrote(result) == (0, 1, 0)
    assert table.to_arrow(where="id = 'b'")["fare"].to_pylist() == [2.5]


@pytest.mark.parametrize(
    ("stored", "sent"),
    [(0.0, -0.0), (None, 0.0), (1.0, None), (float("nan"), 1.0)],
)
def test_values_that_look_the_same_are_told_apart(stored: float | None, sent: float | None) -> None:
    table = new_table()
    table.upsert(trips(("a", 5, stored, "sf")))
    assert wrote(table.upsert(trips(("a", 5, sent, "sf")))) == (0, 1, 0)
    found = table.to_arrow(where="id = 'a'")["fare"].combine_chunks()
    assert str(found.to_pylist()) == str([sent])
    assert wrote(table.upsert(trips(("a", 5, sent, "sf")))) == (0, 0, 0)


def test_floats_inside_of_lists_are_compared_by_their_bits() -> None:
    schema = pa.schema(
        [("id", pa.string()), ("ts", pa.int64()), ("points", pa.list_(pa.float64())), ("n", pa.list_(pa.int64()))]
    )

    def row(point: float) -> pa.Table:
        return pa.table({"id": ["a"], "ts": [1], "points": [[point, float("nan")]], "n": [[1, 2]]}, schema=schema)

    table = hoodie.create("memory://nothing-lists", schema, record_key="id", ordering="ts", spark=False)
    table.upsert(row(0.0))
    assert wrote(table.upsert(row(0.0))) == (0, 0, 0)
    assert wrote(table.upsert(row(-0.0))) == (0, 1, 0)


def test_deletes_count_as_changes_only_of_known_keys() -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))

    def marked(*rows: tuple[str, int, bool]) -> pa.Table:
        whole = trips(*((key, ts, 1.0, "sf") for key, ts, _ in rows))
        return whole.append_column(schema.field(4), pa.array([gone for *_, gone in rows]))

    def keys(key: str) -> pa.Table:
        return pa.table({"id": [key], "city": ["sf"]})

    table = hoodie.create(
        "memory://nothing-deletes",
        schema,
        record_key="id",
        partition_by="city",
        ordering="ts",
        index="simple",
        spark=False,
    )
    table.upsert(marked(("a", 5, False), ("b", 5, False)))
    late = table.upsert(marked(("a", 4, True), ("z", 9, True)))
    assert (wrote(late), late.deleted, late.ignored) == ((0, 0, 0), 0, 2)
    assert (wrote(table.delete(keys("zz"))), wrote(table.delete(keys("a")))) == ((0, 0, 0), (0, 1, 0))
    assert table.to_arrow()["id"].to_pylist() == ["b"]


def test_inserts_beside_rows_that_lose_are_written() -> None:
    table = new_table()
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("d", 1, 4.0, "sf")))
    assert (result.inserted, result.ignored, wrote(result)) == (1, 1, (0, 1, 0))
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b", "c", "d"]


def test_rows_without_an_ordering_value_are_noted() -> None:
    schema = SCHEMA
    table = new_table()
    late = pa.table({"id": ["a"], "ts": pa.array([None], pa.int64()), "fare": [9.0], "city": ["sf"]}, schema=schema)
    result = table.upsert(late)
    assert wrote(result) == (0, 0, 0)
    assert any("1 rows without a value of ts lost" in note for note in result.notes)


MANY = 300_000
"""Rows of a base file that is read in several pieces."""


def many_rows() -> pa.Table:
    keys = pc.utf8_lpad(pa.array(range(MANY)).cast(pa.string()), 8, "0")
    return pa.table({"id": keys, "ts": pa.repeat(pa.scalar(5), MANY), "n": pa.array(range(MANY))})


@pytest.mark.parametrize("held_bytes_max", [0, 1 << 30])
@pytest.mark.parametrize("changed", [None, 0, MANY - 1])
def test_changes_behind_many_unchanged_rows_are_found(
    changed: int | None, held_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_task, "_HELD_BYTES_MAX", held_bytes_max)
    rows = many_rows()
    table = hoodie.create(
        f"memory://nothing-{next(_numbers)}", rows.schema, record_key="id", ordering="ts", spark=False
    )
    table.bulk_insert(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    assert table.inspect.files().num_rows == 1
    sent = expected = rows
    if changed is not None:
        numbers = np.arange(MANY)
        numbers[changed] = -1
        sent = expected = rows.set_column(2, "n", pa.array(numbers))
    result = table.upsert(sent.take([0, 1, MANY - 2, MANY - 1]))
    assert wrote(result) == (0, 0 if changed is None else 1, 0)
    assert table.to_arrow(columns=["id", "ts", "n"]).sort_by("id").equals(expected)


def test_a_log_file_is_appended_if_one_row_may_win() -> None:
    table = new_table(type="merge_on_read")
    result = table.upsert(trips(("a", 4, 9.0, "sf"), ("b", 6, 9.0, "sf")))
    assert wrote(result) == (0, 0, 1)
    assert_same_rows(table.to_arrow(where="city = 'sf'"), trips(("a", 5, 1.0, "sf"), ("b", 6, 9.0, "sf")), key="id")


def test_records_that_only_a_log_deletes_take_late_rows_without_an_index() -> None:
    table = new_table(type="merge_on_read", index="simple")
    table.delete(pa.table({"id": ["a"], "city": ["sf"]}))
    result = table.upsert(trips(("a", 4, 9.0, "sf")))
    assert wrote(result) == (0, 0, 1)
