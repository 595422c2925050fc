"""The HBase index of tables with automatic record keys, which the tasks that stage or write the rows make."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.table import Table
from tests.hbase.rows import KINDS, QUIET, again, hbase_versions
from tests.support.steps import once_at

KEY = "_hoodie_record_key"
each_kind = pytest.mark.parametrize("table_type", KINDS)


def events(numbers: range, level: str = "info") -> pa.Table:
    return pa.table({"n": list(numbers), "level": [level] * len(numbers)})


def table_of(options: dict[str, str], table_type: str, **more: str) -> Table:
    return hoodie.create(
        f"memory://{options['hoodie.index.hbase.table']}-automatic", events(range(1)).schema, partition_by="level",
        index="hbase", type=table_type, properties={**QUIET, **options, **more},
    )  # fmt: skip


def stored(table: Table, where: str | None = None) -> pa.Table:
    return table.to_arrow(where=where)


def numbers(table: Table) -> list[int]:
    found: list[int] = stored(table)["n"].to_pylist()
    return sorted(found)


def check_index(table: Table) -> None:
    """The index has every key of the table, and no other."""
    report = table.index.verify()
    assert report.ok, str(report)
    assert report.checked["keys"] == stored(table).num_rows


@each_kind
def test_rows_of_all_inserts_are_found_by_their_stored_keys(options: dict[str, str], table_type: str) -> None:
    table = table_of(options, table_type)
    table.insert(events(range(3)))
    table.insert(events(range(3, 5), "warn"))
    table.bulk_insert(events(range(5, 8)))
    check_index(table)
    table.insert_overwrite(events(range(10, 12), "warn"))
    assert numbers(table) == [0, 1, 2, 5, 6, 7, 10, 11]
    check_index(table)
    # A row that moves to another partition keeps its key.
    rows = stored(table, "n = 1 or n = 6")
    moved = rows.set_column(rows.schema.get_field_index("level"), "level", pa.array(["warn", "warn"]))
    done = table.upsert(moved)
    assert (done.inserted, done.updated) == (0, 2)
    found = stored(table, "n = 1 or n = 6")
    assert sorted(found[KEY].to_pylist()) == sorted(rows[KEY].to_pylist())
    assert found["level"].to_pylist() == ["warn", "warn"]
    check_index(table)
    # The index is global: a key alone names its record.
    assert table.delete(stored(table, "n = 0 or n = 10").select([KEY])).deleted == 2
    table.update({"n": "n + 100"}, where="n = 2")
    table.delete_where("n = 5")
    assert numbers(table) == [1, 6, 7, 11, 102]
    check_index(table)
    assert sorted(table.read_keys(found[KEY])["n"].to_pylist()) == [1, 6]


def test_a_write_that_is_tried_again_has_the_keys_of_its_last_attempt(options: dict[str, str]) -> None:
    table = table_of(options, "copy_on_write")
    table.insert(events(range(2)))
    first = stored(table)

    with once_at(Step.WRITTEN, lambda: again(table).update({"n": "n + 10"}, where="n = 0")):
        result = again(table).insert(events(range(2, 4)))
    assert any("retried" in note for note in result.notes)
    assert numbers(table) == [1, 2, 3, 10]
    added = set(stored(table)[KEY].to_pylist()) - set(first[KEY].to_pylist())
    assert {key.split("_")[0] for key in added} == {result.instant}
    # The attempt that failed left locations in HBase; they do not count.
    assert len(hbase_versions(table)) == 6
    check_index(table)


def test_a_rollback_takes_the_keys_back_and_a_build_finds_the_stored_keys(options: dict[str, str]) -> None:
    table = table_of(options, "merge_on_read")
    table.insert(events(range(3)))
    table.rollback(table.insert(events(range(3, 6))).instant)
    assert numbers(table) == [0, 1, 2]
    check_index(table)
    table.index.drop("hbase")
    table.insert(events(range(6, 9)))
    assert table.index.build("hbase", properties=options).counts["entries"] == 6
    check_index(table)
    rows = stored(table, "n = 7")
    assert table.upsert(rows).updated == 1
    assert numbers(table) == [0, 1, 2, 6, 7, 8]
