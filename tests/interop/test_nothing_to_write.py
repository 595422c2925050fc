"""Commits without files: JVM Hudi and hudi-rs read over them, and the JVM continues the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.interop.shared_trips import SCHEMA, jvm_write, new_table, newest_of, trips
from tests.support.rows import assert_same_rows


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_batches_that_change_nothing_leave_commits_that_the_jvm_reads(
    jvm: Jvm, tmp_path: Path, table_type: str
) -> None:
    path = tmp_path / "trips"
    table = new_table(path, table_type)
    table.bulk_insert(trips(range(40), 5))
    late = table.upsert(trips(range(10, 20), 4))
    assert (late.bytes_written, late.ignored) == (0, 10)

    def check(expected: dict[int, range]) -> None:
        rows = newest_of(expected)
        for found in (table.to_arrow(SCHEMA.names), jvm.read(path, SCHEMA.names), read_with_hudi_rs(path)):
            assert_same_rows(found.select(SCHEMA.names), rows, key="id")

    check({5: range(40)})
    jvm_write(jvm, path, table_type, trips(range(30, 50), 6))
    again = table.upsert(trips(range(20), 5))
    if table_type == "copy_on_write":
        assert (again.bytes_written, again.updated) == (0, 20)
    jvm_write(jvm, path, table_type, trips(range(45, 55), 7))
    check({5: range(40), 6: range(30, 50), 7: range(45, 55)})
    assert table.verify(full=True).ok
