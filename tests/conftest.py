"""Fixtures of all lanes: one Spark session per process, and the tables that JVM Hudi wrote."""

from __future__ import annotations

import os
import signal
import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import samples, seeds
from tests.support.sessions import open_classic_session, open_connect_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = Path(__file__).parent / "contract"
GOLDEN_TABLES = Path(__file__).parent / "golden" / "tables.tar.gz"


def pytest_configure(config: pytest.Config) -> None:
    """Decide where random tests take their data from, and who notes what passed."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As in a job that a shell began with `&`. A program inherits this, and would ignore an early Ctrl-C of a test.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    seeds.load_profile(config)
    samples.NOTES.append(not hasattr(config, "workerinput"))


def pytest_report_header() -> list[str]:
    """Say how to repeat the run."""
    fixed = "random tests: fixed seeds (`make fuzz` draws fresh ones)"
    fresh = f"random tests: HOODIE_FUZZ_SEED={seeds.FUZZ_SEED} HOODIE_FUZZ_FACTOR={seeds.FACTOR}"
    return [fresh if seeds.IS_FUZZ else fixed, samples.describe()]


def _lane() -> str:
    """Which kind of Spark session this process tests: a classic and a Connect session cannot share one."""
    lane = os.environ.get("HOODIE_TEST_SPARK", "classic")
    if lane not in {"classic", "connect"}:
        pytest.exit(f"HOODIE_TEST_SPARK is '{lane}': set it to 'classic' or 'connect'", returncode=2)
    return lane


def _repeats_the_contract() -> bool:
    """Whether this process tests another Spark than the classic session of the newest one, which runs every case."""
    return _lane() == "connect" or version("pyspark").startswith("3.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this lane: all but the Connect-only ones, or the ones marked `connect`; sample its matrices."""
    marks = [item.get_closest_marker("connect") for item in items]
    if _lane() == "connect":
        belongs = [mark is not None for mark in marks]
    else:
        belongs = [mark is None or not mark.kwargs.get("only", False) for mark in marks]
    kept = [item for item, stays in zip(items, belongs, strict=True) if stays]
    on_spark = [item for item in kept if item.get_closest_marker("spark")]
    if outside := [item.nodeid for item in on_spark if CONTRACT not in item.path.parents]:
        raise pytest.UsageError(
            f"the lanes of `make test` look for tests with a Spark session in {CONTRACT}: {outside}"
        )
    kept = samples.without_passed(samples.a_part(samples.first_tier(kept)))
    stays = set(kept)
    on_spark = [item for item in on_spark if item in stays]
    elsewhere = [item for item in kept if CONTRACT not in item.path.parents]
    left_out = set(elsewhere) - set(samples.sample_matrices(elsewhere))
    kept = [item for item in kept if item not in left_out]
    if _repeats_the_contract():
        dropped = set(on_spark) - set(samples.sample_lane(on_spark, f"{_lane()} of Spark {version('pyspark')[:3]}"))
        kept = [item for item in kept if item not in dropped]
    if _lane() == "connect" and version("pyspark").startswith("4.0"):
        stays = set(samples.sample_surface([item for item in kept if item.get_closest_marker("surface")]))
        kept = [item for item in kept if item in stays or not item.get_closest_marker("surface")]
    if len(kept) < len(items):
        stays = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in stays])
        items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what passed."""
    if report.when == "call" and report.passed:
        samples.note_passed(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that leaves out all of its tests, as all have passed before, has passed."""
    if Path(samples.PASSED).is_file() and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_runtest_setup() -> None:
    """Leave out tests for which the run has no time any more."""
    samples.leave_out_for_time()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of this process, of the kind that HOODIE_TEST_SPARK asks for."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = open_connect_session(warehouse) if _lane() == "connect" else open_classic_session(warehouse)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def golden_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the tables `{v6,v8,v9}_{cow,mor}` by JVM Hudi 1.2.0. Read only: copy a table before changing it."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN_TABLES) as archive:
        archive.extractall(folder, filter="data")
    return folder
