"""Bad input is refused with the same error, whichever engine meets it: also on a worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import ON_WORKERS, TRIPS, Lane, trips
from tests.support.rows import assert_same_rows

GOOD = trips(("a", 1, 1.0, "sf"))
NULL_KEYS = trips(
    ("x", 1, 1.0, "sf"), (None, 2, 1.0, "sf"), ("", 3, 1.0, "sf"), (None, 4, 1.0, "la"), (None, 5, 1.0, "la")
)


@pytest.mark.parametrize("index", [pytest.param("simple", marks=pytest.mark.surface), "global_simple"])
def test_null_keys_are_refused_with_how_many_and_three_examples(lane: Lane, index: str) -> None:
    table, data = lane.table(GOOD, partition_by="city", index=index), lane.data(NULL_KEYS)
    writes: list[Callable[[Any], object]] = [table.upsert, table.bulk_insert, table.delete]
    writes.append(partial(table.bulk_insert, sort="global"))
    for write in writes:
        with pytest.raises(
            hoodie.RecordKeyError, match=r"'id': null or empty in 4 of 5 rows \(row 1 None; row 2 ''; row 3 None\)"
        ):
            write(data)
    assert_same_rows(lane.read(table), GOOD, key="id")
    assert table.upsert(lane.data(trips(("b", 1, 1.0, "sf")))).inserted == 1


def test_a_value_that_fits_no_column_is_refused_by_name(lane: Lane) -> None:
    strict = pa.schema([TRIPS.field(0), pa.field("ts", pa.int64(), nullable=False), *list(TRIPS)[2:]])
    table = lane.create(strict, partition_by="city")
    rows = trips(("a", None, 1.0, "sf")).cast(TRIPS)
    if lane.session is None:
        rows = pa.Table.from_arrays(rows.columns, schema=strict)
        with pytest.raises(hoodie.SchemaMismatchError, match="'ts'"):
            table.upsert(rows)
    else:
        # Spark's columns may always be null: the table's column becomes nullable, as with the JVM.
        table.upsert(lane.data(rows))
        assert_same_rows(lane.read(table), rows, key="id")


@pytest.mark.parametrize("properties", [{}, ON_WORKERS], ids=["small", "on-workers"])
def test_a_truncated_file_is_named(lane: Lane, properties: dict[str, str]) -> None:
    table = lane.table(GOOD, properties=properties)
    file = next(lane.path.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(hoodie.CorruptFileError, match=file.name) as caught:
        table.upsert(lane.data(trips(("a", 2, 2.0, "sf"))))
    assert caught.value.path.endswith(file.name)


def test_a_merger_that_fails_fails_the_write(lane: Lane) -> None:
    def refuse(older: pa.Table, newer: pa.Table) -> pa.Table:
        raise ArithmeticError("no such sum")

    table = lane.create(merge_mode=refuse)
    table.upsert(lane.data(GOOD))
    with pytest.raises(Exception, match="no such sum"):
        table.upsert(lane.data(trips(("a", 2, 2.0, "sf"))), properties=ON_WORKERS)
    assert_same_rows(lane.read(table), GOOD, key="id")


@pytest.mark.surface
def test_what_is_wrong_in_a_call_is_refused_before_anything_is_written(lane: Lane) -> None:
    table, data = lane.table(GOOD, partition_by="city"), lane.data(GOOD)
    for where in ("fare >", "no_such = 1"):
        with pytest.raises(Exception, match=r"(?i)no_such|fare|parse|syntax"):
            table.delete_where(where)
    with pytest.raises(hoodie.UnsupportedError, match="Spark DataFrame"):
        table.upsert(42)
    with pytest.raises(hoodie.InvalidConfigError, match=r"hoodie\.parquet\.max\.file\.size"):
        table.upsert(data, properties={"hoodie.parquet.max.file.sise": "1"})
    assert len(table.timeline.instants) == 1


@pytest.mark.parametrize("linked", ["city=sf", "file"])
def test_a_read_does_not_follow_a_link_out_of_the_table(lane: Lane, linked: str) -> None:
    """Spark's own scan opens files by their path, and the metadata table names them: no listing meets the link."""
    lane.table(trips(("a", 1, 1.0, "sf"), ("b", 1, 1.0, "la")), partition_by="city")
    inside = lane.path / "city=sf"
    if linked == "file":
        (inside,) = inside.glob("*.parquet")
    outside = lane.folder / "outside"
    inside.rename(outside)
    inside.symlink_to(outside)
    with pytest.raises(hoodie.PartitionPathError, match="outside the table's folder"):
        lane.read(lane.open())
    assert_same_rows(lane.read(lane.open(), where="city = 'la'"), trips(("b", 1, 1.0, "la")), key="id")


def test_a_durable_table_is_written_and_read(lane: Lane) -> None:
    table = lane.create(partition_by="city", properties={"hoodie.python.durable": "true", **ON_WORKERS})
    table.upsert(lane.data(GOOD))
    assert_same_rows(lane.read(lane.open()), GOOD, key="id")
    assert lane.open().view().store.spec.options == (("durable", "true"),)
