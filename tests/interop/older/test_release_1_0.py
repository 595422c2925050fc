"""JVM Hudi 1.0.2, whose tables have version 8: all readers agree on what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoodie
from tests.interop.judges import Jvm
from tests.interop.older.trips import assert_all_read, trips, write

RELEASE = "1.0.2"


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tables_of_the_release_are_read(older: Jvm, tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "trips"
    expected: dict[str, int] = {}
    for numbers, ts, operation in ((range(10), 1, "upsert"), (range(5, 15), 3, "upsert"), (range(3), 4, "delete")):
        write(older, path, trips(numbers, ts), table_type=table_type, operation=operation)
        if operation == "delete":
            expected = {key: value for key, value in expected.items() if int(key[1:]) not in numbers}
        else:
            expected |= {f"k{n:02}": ts for n in numbers}
        assert_all_read(older, path, expected)
    assert hoodie.open(path).view().config.version.value == 8
