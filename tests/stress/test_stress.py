"""A short stress of four processes; `make stress` runs eight for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.run import Stress, run
from tests.support.samples import SEED


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_writers_that_are_killed_and_stopped(tmp_path: Path, table_type: str) -> None:
    stress = Stress(table_type=table_type, seconds=6, seed=SEED, processes=4, answers_min=15, faults_min=6)
    outcome = run(stress, tmp_path)
    print(outcome)
    assert outcome.acknowledged > 0
    assert outcome.faults["killed"] > 0
    assert outcome.on_timeline >= outcome.acknowledged
