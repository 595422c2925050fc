"""JVM Hudi 0.15.0, whose tables have version 6: it and we read and continue each other's tables, also after deaths.

After each step it, we and hudi-rs see the same rows, and our full check finds nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.judges import Jvm
from tests.interop.older.life import TABLE_TYPES, Life, roll_back_each_other, take_turns
from tests.support.seeds import seeded

RELEASE = "0.15.0"
VERSION = 6


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
@pytest.mark.parametrize("is_ours", [True, False], ids=["our table", "its table"])
@seeded(7)
def test_two_writers_take_turns(older: Jvm, tmp_path: Path, table_type: str, is_ours: bool, seed: int) -> None:
    take_turns(Life(older, tmp_path / "trips", table_type, VERSION), is_ours=is_ours, seed=seed)


@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_each_rolls_back_a_dead_write_of_the_other(older: Jvm, tmp_path: Path, table_type: str) -> None:
    roll_back_each_other(Life(older, tmp_path / "trips", table_type, VERSION), tmp_path / "copy")
