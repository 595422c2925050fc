"""Table services beside the batches of flows."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.ingest.flow import Flow, Pace
from hoodie.ingest.runner import Runner
from hoodie.ingest.services import ServicesBeside, switch_off
from hoodie.ingest.target import Target
from hoodie.results import ServiceResult
from tests.support.flows import CREATE, Numbers

RETAINED = {"hoodie.clean.commits.retained": "1"}


def flow(folder: Path, name: str = "a", table: str = "t") -> Flow:
    target = Target(path=str(folder / table), create=CREATE)
    return Flow(name=name, source=Numbers(12, step=1), target=target, operation="insert_overwrite", properties=RETAINED)


def cleans(folder: Path) -> int:
    timeline = hoodie.open(folder / "t", spark=False).timeline
    return sum(found.action.value == "clean" for found in timeline.completed().instants)


def test_inline_services_follow_the_writes(tmp_path: Path) -> None:
    Runner(flows=[flow(tmp_path)]).run()
    assert cleans(tmp_path) > 0


def test_without_services_nothing_is_cleaned(tmp_path: Path) -> None:
    one = flow(tmp_path)
    switch_off([one])
    Runner(flows=[one]).run()
    assert cleans(tmp_path) == 0


def test_a_round_after_the_batches(tmp_path: Path) -> None:
    found: list[ServiceResult] = []
    one = flow(tmp_path)
    beside = ServicesBeside(flows=[one], report=lambda _path, result: found.append(result))
    beside.run_once()
    Runner(flows=[one]).run()
    assert (cleans(tmp_path), found) == (0, [])
    beside.run_once()
    assert cleans(tmp_path) == 1
    assert [result.operation for result in found] == ["clean"]


def test_rounds_run_beside_the_batches_until_the_end(tmp_path: Path) -> None:
    stop, one = threading.Event(), flow(tmp_path)
    beside = ServicesBeside(flows=[one], interval=0.05, report=lambda *_: stop.set())
    with beside:
        threading.Timer(30, stop.set).start()
        Runner(flows=[one], pace=Pace(continuous=True)).run(stop)
    assert cleans(tmp_path) >= 1
    assert not [thread for thread in threading.enumerate() if thread.name == "hoodie-ingest-services"]


def test_one_table_is_served_once_and_errors_are_reported(tmp_path: Path) -> None:
    errors: list[str] = []
    flows = [flow(tmp_path, "a"), flow(tmp_path, "b")]
    for one in flows:
        one.is_named = True
    flows[0].properties = {"hoodie.clean.commits.retained": "none"}
    beside = ServicesBeside(flows=flows, on_error=lambda path, error: errors.append(f"{path}: {error}"))
    Runner(flows=[flows[1]]).run()
    flows[0].target.table = flows[1].target.table
    beside.run_once()
    assert len(errors) == 1
    assert "hoodie.clean.commits.retained='none'" in errors[0]
    with pytest.raises(InvalidConfigError, match="services_interval=0"):
        ServicesBeside(flows=[], interval=0)
