"""Rounds of services: what runs, in which order, and that a failure stops nothing else."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from hoodie.commit.call import Call
from hoodie.errors import InvalidConfigError, LockTimeoutError
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.services import registry
from hoodie.services.cleaning.clean import CLEAN
from hoodie.services.registry import all_services
from hoodie.services.runner import ServiceChoice, ServiceRunner, run_round
from hoodie.services.service import TableService
from hoodie.table import Table
from hoodie.timeline import Action
from hoodie.view.table_state import TableState
from tests.support.cleaned_tables import check_listing, table_of_versions, version_of
from tests.support.fault_store import FaultStore
from tests.support.steps import begin
from tests.support.tables import trips, trips_store

FEW = {"hoodie.clean.commits.retained": "2", "hoodie.clean.automatic": "true"}


def test_what_the_properties_turn_on_runs_in_order() -> None:
    table = table_of_versions(6, table_type="merge_on_read")
    runner = table.services(properties=FEW)
    done = runner.run_once()
    assert [result.operation for result in done.results] == ["compaction"]
    assert done.errors == ()
    for version in range(6, 9):
        table.upsert(version_of(version))
    assert [result.operation for result in runner.run_once().results] == ["clean"]
    assert runner.run_once().results == ()
    assert [result.operation for result in runner.results] == ["compaction", "clean"]
    check_listing(table)


def test_services_of_these_names_run_even_if_they_are_off() -> None:
    table = table_of_versions(6)
    few = {"hoodie.clean.commits.retained": "2"}
    assert table.services(properties=few).run_once().results == ()
    (result,) = table.services(["clean"], properties=few).run_once().results
    assert result.operation == "clean"
    with pytest.raises(InvalidConfigError, match="no service 'cleen'; expected some of"):
        table.services(["cleen"])
    with pytest.raises(InvalidConfigError, match="above 0"):
        table.services(interval=0)


def test_a_round_folds_logs_by_its_own_threshold() -> None:
    store = trips_store({"a": (1, "sf")}, {"a": (2, "sf")}, {"a": (3, "sf")}, table_type="merge_on_read")
    table = Table(store)
    assert table.services(["log-compact"]).run_once().results == ()
    low = {"hoodie.log.compaction.blocks.threshold": "2"}
    results = table.services(["log-compact"], properties=low).run_once().results
    assert [result.operation for result in results] == ["schedule log compaction"]


def chosen(**runs: Callable[[], object]) -> ServiceChoice:
    """Services of these names that are always due and do this."""

    def service(name: str, act: Callable[[], object]) -> TableService:
        def run(call: object, report: object) -> None:
            act()

        return TableService(name=name, about="", is_on=lambda _: True, is_due=lambda call, view: True, run=run)

    return ServiceChoice(services=tuple(service(name, act) for name, act in runs.items()))


def test_a_failing_service_does_not_stop_the_others() -> None:
    table = table_of_versions(1)
    ran: list[str] = []

    def fail() -> None:
        ran.append("b")
        raise LockTimeoutError("held")

    choice = chosen(a=lambda: ran.append("a"), b=fail, c=lambda: ran.append("c"))
    told: list[str] = []
    done = run_round(table._context.service(None), choice, on_error=lambda name, error: told.append(f"{name} {error}"))
    assert (ran, told) == (["a", "b", "c"], ["b held"])
    assert [name for name, _ in done.errors] == ["b"]


def test_every_error_is_recorded_and_the_thread_lives_on() -> None:
    table = table_of_versions(4)

    def fail() -> None:
        raise pa.ArrowInvalid("a damaged row group")

    told = threading.Event()
    failures: list[str] = []

    def heard(name: str, error: Exception) -> None:
        failures.append(f"{name} {error}")
        if len(failures) > 1:
            told.set()

    runner = ServiceRunner(table._context.service(None), chosen(broken=fail), interval_seconds=0.01, on_error=heard)
    with runner:
        assert told.wait(20)
        assert runner.is_running
    assert [(name, str(error)) for name, error in runner.errors] == [("broken", "a damaged row group")]
    assert set(failures) == {"broken a damaged row group"}


def test_a_store_that_fails_between_two_services_is_an_error_of_the_round() -> None:
    store = table_of_versions(1).view().store
    failing = FaultStore(store, None, count_reads=True)
    failing.register()
    table = Table(failing)
    calls: list[str] = []

    def run() -> None:
        calls.append("ran")
        failing._fail_at = len(failing.calls) + 1

    done = run_round(table._context.service(None), chosen(first=run, second=run))
    failing.unregister()
    assert (calls, [name for name, _ in done.errors]) == (["ran"], ["second"])


def test_a_thread_serves_until_it_is_stopped() -> None:
    table = table_of_versions(4)
    cleaned = threading.Event()
    runner = table.services(["clean"], interval=0.01, properties=FEW, report=lambda _: cleaned.set())
    with runner:
        assert cleaned.wait(20)
        assert runner.is_running
    assert not runner.is_running
    with pytest.raises(InvalidConfigError, match="started before"):
        runner.start()
    assert len({service.name for service in all_services()}) == len(all_services())


def test_a_round_with_a_clean_rolls_back_dead_writes_which_hold_the_window() -> None:
    table = table_of_versions(2)
    dead = begin(table, Action.COMMIT)
    # No further write of ours, which would roll it back: the writers are of another implementation.
    runner = table.services(["clean"], properties=FEW)
    (result,) = runner.run_once().results
    assert result.notes == (f"rolled back {dead}, whose writer had died (0 files)",)
    assert list(table.timeline.pending()) == []
    assert runner.run_once().results == ()


def test_a_round_leaves_a_clean_that_a_jvm_may_be_executing() -> None:
    table = table_of_versions(2)
    pending = begin(table, Action.CLEAN, CleanerPlan(policy="KEEP_LATEST_COMMITS").to_bytes(), only_requested=True)
    (result,) = table.services(["clean"], properties=FEW).run_once().results
    assert "is being executed by another process" in result.notes[0]
    assert [str(found.action) for found in table.timeline.pending()] == ["clean"]
    assert table.clean().instant == pending


def test_archiving_in_a_round_waits_for_the_lock_as_the_caller_says_and_tells_what_holds_it_back() -> None:
    often = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.archive.automatic": "false"}
    table = table_of_versions(1, properties=often)
    table.savepoint()
    for version in range(1, 8):
        table.upsert(version_of(version))
    with Table(table.view().store).view().state.table_lock():
        waits = table.services(["archive"], properties={"hoodie.write.lock.wait_time_ms": "5"})
        ((_, error),) = waits.run_once().errors
        assert isinstance(error, LockTimeoutError)
    waited = re.search(r"waited (\d+) ms", str(error))
    assert waited is not None
    assert int(waited[1]) < 2000, "the wait of the archiving that follows a write"
    runner = table.services(["archive"])
    (result,) = runner.run_once().results
    assert "the savepoint" in result.notes[0]
    assert runner.run_once().results == (), "told again although nothing changed"


@pytest.mark.parametrize("stored", ["true", "false"])
def test_a_service_gets_the_same_options_after_a_write_and_in_a_round(
    stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    def is_on(options: Mapping[str, str]) -> bool:
        seen.append(dict(options))
        return False

    store = trips_store({"a": (1, "sf")}, properties={"hoodie.clean.automatic": stored})
    watcher = replace(CLEAN, is_on=is_on)
    monkeypatch.setattr(registry, "SERVICES", (watcher,))
    given = {"hoodie.clean.commits.retained": "3"}
    Table(store).upsert(trips({"a": (2, "sf")}), properties=given)
    state = TableState(store)
    run_round(Call(state=state, properties=given), ServiceChoice(services=[watcher]))
    after_write, in_round = seen
    assert after_write == in_round == {**state.read_config().raw, **given}
