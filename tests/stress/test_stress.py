"""A short stress of four processes on one type of table; `make stress` runs eight on both for minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.run import Stress, run
from tests.support.samples import draw, sample_of


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", sample_of(["copy_on_write", "merge_on_read"], 1, "short stress"))
def test_writers_that_are_killed_and_stopped(tmp_path: Path, table_type: str) -> None:
    seed = draw(range(10**6), 1, "stress")[0]
    stress = Stress(table_type=table_type, seconds=6, seed=seed, processes=4, answers_min=15, faults_min=6)
    outcome = run(stress, tmp_path)
    print(outcome)
    assert outcome.acknowledged > 0
    assert outcome.faults["killed"] > 0
    assert outcome.on_timeline >= outcome.acknowledged
