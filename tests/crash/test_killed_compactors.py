"""Compactors in processes of their own share the plans of a table through its lock; one that is killed is replaced."""

from __future__ import annotations

from pathlib import Path

from tests.support.compactor_processes import (
    CITIES,
    instants_of,
    planned_table,
    start_and_kill_compactor,
    start_compactor,
)
from tests.support.merge_on_read import merged_rows


def test_three_compactors_do_each_plan_once_and_take_up_what_a_killed_one_left(tmp_path: Path) -> None:
    table, rows = planned_table(tmp_path / "table")
    plans = table.pending_compactions().instants
    assert len(plans) == len(CITIES)
    start_and_kill_compactor(tmp_path / "table")
    first, *_ = table.pending_compactions()
    assert first.state == "interrupted"
    compactors = [start_compactor(tmp_path / "table") for _ in range(3)]
    done = [instants_of(compactor) for compactor in compactors]
    assert sorted(instant for instants in done for instant in instants) == plans
    assert merged_rows(table.view().store) == rows
    assert len(table.pending_compactions()) == 0
    commits = table.timeline.filter(lambda found: found.action.value == "commit")
    assert [found.requested_time for found in commits] == plans
    names = [info.name for info in table.view().store.list("", recursive=True) if info.name.endswith(".parquet")]
    assert len(names) == 2 * len(CITIES), "a base file of the one that was killed is left"
