"""The last releases of JVM Hudi for tables of version 8 (1.0.2) and 6 (0.15.0): it and we continue each other's tables.

After each step it and we see the same rows, meta columns included, and our full check finds nothing. hudi-rs sees them
too, in tables of version 6 always. In version 8 it does so until the second writer comes: hudi-rs 0.5 does not read a
metadata table with rows of Hudi 1.0 and of later schemas (JVM Hudi 1.2.0 beside 1.0.2 makes such ones too).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.format.table.versions import VERSIONS
from tests.interop.judges import NEWEST_TABLE_VERSION, Jvm
from tests.interop.older.life import TABLE_TYPES, Life, leave_and_return, roll_back_each_other, take_turns
from tests.support.seeds import seeded

RELEASES = ("1.0.2", "0.15.0")


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
@seeded(7)
def test_two_writers_take_turns(older: Jvm, tmp_path: Path, table_type: str, is_ours: bool, seed: int) -> None:
    take_turns(Life(older, tmp_path / "trips", table_type), is_ours=is_ours, seed=seed)


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_each_rolls_back_a_dead_write_of_the_other(older: Jvm, tmp_path: Path, table_type: str) -> None:
    roll_back_each_other(Life(older, tmp_path / "trips", table_type), tmp_path / "copy")


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
@pytest.mark.parametrize("place", [0, 1], ids=["the older other version", "the later one"])
def test_a_table_leaves_its_version_and_returns(
    older: Jvm, tmp_path: Path, table_type: str, is_ours: bool, place: int
) -> None:
    other = [version.value for version in VERSIONS if version.value != NEWEST_TABLE_VERSION[older.release]][place]
    leave_and_return(Life(older, tmp_path / "trips", table_type), other, is_ours=is_ours)
