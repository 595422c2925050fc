"""The runner of flows: fairness, retries, stops, chains of flows, and the cost of idle ones."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SourceError
from hoodie.ingest.flow import Flow, Pace
from hoodie.ingest.runner import FlowState, Runner
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.hudi import Hudi
from hoodie.ingest.target import Target
from tests.support.flows import Numbers, rows_of_numbers

CREATE = {"record_key": "id"}


def flow(folder: Path, name: str, source: Any, **options: Any) -> Flow:
    return Flow(name=name, source=source, target=Target(path=str(folder / name), create=CREATE), **options)


@dataclass
class Failing:
    """Numbers, after some failures; `failures` below 0: for ever. `times` are those of its plans."""

    failures: int
    times: list[float] = field(default_factory=list)

    def plan(self, request: Request) -> Batch | None:
        self.times.append(time.monotonic())
        if len(self.times) <= self.failures or self.failures < 0:
            raise SourceError(f"refused {len(self.times)}")
        return Numbers(2).plan(request)


def test_a_flow_that_fails_stops_no_other(tmp_path: Path) -> None:
    errors: list[str] = []
    flows = [flow(tmp_path, "bad", Failing(-1)), flow(tmp_path, "good", Numbers(5))]
    runner = Runner(flows=flows, on_error=lambda name, error: errors.append(f"{name}: {error}"))
    bad, good = runner.run()
    assert (bad.error, bad.batches) == ("refused 1", 0)
    assert (good.error, good.batches, good.inserted, good.place) == (None, 3, 5, "5")
    assert errors == ["bad: refused 1"]
    assert hoodie.open(tmp_path / "good", spark=False).count() == 5


def test_a_flow_is_tried_again_as_often_as_it_may_be(tmp_path: Path) -> None:
    pace = Pace(retries=2, back_off=0.01)
    patient, short = Failing(2), Failing(3)
    runner = Runner(flows=[flow(tmp_path, "a", patient), flow(tmp_path, "b", short)], pace=pace)
    first, second = runner.run()
    assert (first.error, first.inserted) == (None, 2)
    assert (second.error, second.inserted) == ("refused 3", 0)
    assert [state.failures_total for state in runner.states] == [2, 3]
    assert runner.states[0].failures == 0


def test_flows_that_end_do_not_pause_between_their_batches(tmp_path: Path) -> None:
    """An hour between two batches would be far beyond the time limit of the test."""
    flows = [flow(tmp_path, "first", Numbers(5)), flow(tmp_path, "second", Hudi(path=str(tmp_path / "first")))]
    flows[1].after = ["first"]
    runner = Runner(flows=flows, pace=Pace(interval=3600))
    first, second = runner.run()
    assert (first.batches, first.inserted, second.inserted) == (3, 5, 5)


def test_the_wait_after_an_error_doubles_up_to_its_most(tmp_path: Path) -> None:
    """Without a most, fourteen waits would be far beyond the time limit of the test."""
    source, stop = Failing(14), threading.Event()
    pace = Pace(continuous=True, back_off=0.05, back_off_max=0.1, idle=60, interval=0)
    runner = Runner(flows=[flow(tmp_path, "a", source)], pace=pace, report=lambda *_: stop.set())
    (result,) = runner.run(stop)
    waits = [after - before for before, after in zip(source.times, source.times[1:], strict=False)][:14]
    assert result.error is None
    assert all(wait >= least for wait, least in zip(waits, (0.05, *[0.1] * 13), strict=True))


def test_a_continuous_flow_that_fails_at_the_end_has_its_error(tmp_path: Path) -> None:
    stop = threading.Event()
    runner = Runner(
        flows=[flow(tmp_path, "a", Failing(-1))],
        pace=Pace(continuous=True, back_off=60),
        on_error=lambda *_: stop.set(),
    )
    assert runner.run(stop)[0].error == "refused 1"
    assert runner.states[0].last_error_at is not None


def test_a_stop_ends_after_the_batch_that_runs(tmp_path: Path) -> None:
    stop, began = threading.Event(), threading.Event()

    class Slow(Numbers):
        def plan(self, request: Request) -> Batch | None:
            began.set()
            stop.wait(10)
            return super().plan(request)

    def stop_soon() -> None:
        began.wait(10)
        stop.set()

    threading.Thread(target=stop_soon).start()
    (result,) = Runner(flows=[flow(tmp_path, "a", Slow(100))], pace=Pace(continuous=True)).run(stop)
    assert (result.batches, result.inserted) == (1, 2)


def test_a_flow_ends_after_its_most_batches(tmp_path: Path) -> None:
    flows = [flow(tmp_path, "a", Numbers(100)), flow(tmp_path, "b", Numbers(100))]
    flows[1].pace = Pace(batches_max=1)
    first, second = Runner(flows=flows, pace=Pace(batches_max=3, continuous=True)).run()
    assert (first.batches, second.batches) == (3, 1)


def test_one_thread_serves_all_flows_in_turn(tmp_path: Path) -> None:
    order: list[str] = []
    flows = [flow(tmp_path, name, Numbers(6)) for name in "abc"]
    Runner(flows=flows, pace=Pace(threads=1), report=lambda name, _batch: order.append(name)).run()
    assert order == list("abcabcabc")


def test_no_more_batches_run_at_once_than_threads(tmp_path: Path) -> None:
    lock, running, most = threading.Lock(), [0], [0]

    class Counted(Numbers):
        def plan(self, request: Request) -> Batch | None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.05)
            with lock:
                running[0] -= 1
            return None

    Runner(flows=[flow(tmp_path, f"f{n}", Counted(0)) for n in range(9)], pace=Pace(threads=3)).run()
    assert most[0] == 3


def test_flows_that_read_the_tables_of_others_run_in_one_call(tmp_path: Path) -> None:
    flows = [
        flow(tmp_path, "c", Hudi(str(tmp_path / "b"))),
        flow(tmp_path, "b", Hudi(str(tmp_path / "a"))),
        flow(tmp_path, "a", Numbers(5)),
    ]
    flows[0].after, flows[1].after = ["b"], ["a"]
    results = Runner(flows=flows).run()
    assert [(found.inserted, found.batches, found.error) for found in results] == [
        (5, 1, None),
        (5, 1, None),
        (5, 3, None),
    ]
    assert [found.batches for found in Runner(flows=flows).run()] == [0, 0, 0]


def test_a_chain_runs_on_in_continuous_mode(tmp_path: Path) -> None:
    stop = threading.Event()
    numbers = Numbers(4)
    flows = [
        flow(tmp_path, "b", Hudi(str(tmp_path / "a"))),
        flow(tmp_path, "c", Hudi(str(tmp_path / "b"))),
        flow(tmp_path, "a", numbers),
    ]

    def changed(state: FlowState) -> None:
        if state.name == "c" and state.result.inserted == 4:
            numbers.count = 6
        if state.name == "c" and state.result.inserted == 6:
            stop.set()

    flows[0].after, flows[1].after = ["a"], ["b"]
    runner = Runner(flows=flows, pace=Pace(continuous=True, idle=0.2), on_change=changed)
    threading.Timer(30, stop.set).start()
    assert [found.inserted for found in runner.run(stop)] == [6, 6, 6]
    assert [found.error for found in runner.run(stop)] == [None] * 3


def test_a_table_that_no_flow_creates_is_a_note(tmp_path: Path) -> None:
    flows = [flow(tmp_path, "a", Failing(-1)), flow(tmp_path, "b", Hudi(str(tmp_path / "a")))]
    flows[1].after = ["a"]
    _, second = Runner(flows=flows).run()
    assert second.error is None
    assert "does not exist, and no earlier flow has created it" in second.notes[0]


def test_flows_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    flows = [flow(tmp_path, name, Numbers(0)) for name in "ab"]
    flows[0].after, flows[1].after = ["b"], ["a"]
    with pytest.raises(InvalidConfigError, match="wait for each other: "):
        Runner(flows=flows)
    with pytest.raises(InvalidConfigError, match="two flows have one name"):
        Runner(flows=[flows[0], flows[0]])


@pytest.mark.parametrize("wrong", [{"interval": -1}, {"threads": 0}, {"batches_max": 0}, {"back_off": float("nan")}])
def test_a_wrong_pace_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError, match=f"{next(iter(wrong))}=.*expected a number from"):
        Pace(**wrong)


def test_a_report_that_fails_ends_the_run(tmp_path: Path) -> None:
    def report(name: str, batch: Any) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Runner(flows=[flow(tmp_path, "a", Numbers(100))], report=report).run()


def test_two_hundred_idle_flows_take_a_small_part_of_a_core(tmp_path: Path) -> None:
    """Each look loads the timeline of its table; all of them together take about a tenth of a core."""
    rows, seconds = rows_of_numbers(range(1)), 3.0
    hoodie.create(tmp_path / "t", rows, record_key="id", spark=False).upsert(rows)

    @dataclass
    class Idle:
        def plan(self, request: Request) -> Batch | None:
            return None

    flows = [
        Flow(name=f"f{n}", is_named=True, source=Idle(), target=Target(path=str(tmp_path / "t"))) for n in range(200)
    ]
    runner, stop = Runner(flows=flows, pace=Pace(continuous=True)), threading.Event()
    warm = threading.Event()

    def changed(_state: FlowState) -> None:
        if not warm.is_set() and all(state.last_success for state in runner.states):
            warm.set()
            began.append(time.process_time())
            threading.Timer(seconds, stop.set).start()

    began: list[float] = []
    runner.on_change = changed
    runner.run(stop)
    used = time.process_time() - began[0]
    print(f"CPU of an idle flow: {used / seconds * 3600 / 200:.2f} s an hour")
    assert used < 0.5 * seconds
