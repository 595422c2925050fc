"""The engines of the table contract: each test with the fixture `lane` runs once in process and once on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.table_lanes import Lane

ENGINES = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.connect])]


@pytest.fixture(params=ENGINES)
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Lane:
    """The engine under test: this process, or the Spark session of the lane (classic, Connect, 3.5)."""
    return _lane(request, tmp_path)


@pytest.fixture(scope="module", params=ENGINES)
def shared_lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lane:
    """As `lane`, one for all tests of a module: for tables that tests only read."""
    return _lane(request, tmp_path_factory.mktemp("shared"))


def _lane(request: pytest.FixtureRequest, folder: Path) -> Lane:
    return Lane(None if request.param == "local" else request.getfixturevalue("spark"), folder)
