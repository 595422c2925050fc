"""The engines of the table contract: each test with the fixture `lane` runs once in process and once on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.table_lanes import Lane


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.connect])])
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Lane:
    """The engine under test: this process, or the Spark session of the lane (classic, Connect, 3.5)."""
    session = None if request.param == "local" else request.getfixturevalue("spark")
    return Lane(session, tmp_path)
