"""Services that do not run are warnings: they name the service, and never fail the check."""

from __future__ import annotations

import pytest

from hoodie.services.check.survey import Survey
from hoodie.services.check.verify import overdue_problems
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import parse_instant_time
from hoodie.view.slices import list_slices
from tests.crash.tables import new_table, trips

OFF = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
DAY = 25 * 3600


def test_compactions_and_plans_that_wait() -> None:
    store = MemoryStore()
    new_table(store, table_type="merge_on_read", properties={**OFF, "hoodie.compact.inline.max.delta.commits": "2"})
    table = Table(store)
    for ts in range(1, 7):
        table.upsert(trips({"a": (ts, "sf")}))
    report = table.verify()
    assert report.ok
    assert report.warnings == {"compaction-overdue": 1}
    assert table.schedule_compaction()
    survey = Survey.of(table.view().state)
    requested = table.timeline.pending().instants[0].requested_time
    later = parse_instant_time(requested, survey.view.layout.zone).timestamp() + DAY
    found = [problem.kind.name for problem in overdue_problems(survey, list_slices(survey.view), now_seconds=later)]
    assert "plan-waiting" in found
    table.compact()
    assert table.verify().warnings == {}


def test_versions_that_no_clean_deletes() -> None:
    store = MemoryStore()
    new_table(store, properties={**OFF, "hoodie.clean.commits.retained": "2"})
    table = Table(store)
    for ts in range(1, 7):
        table.upsert(trips({"a": (ts, "sf")}))
    report = table.verify()
    assert report.ok
    assert report.warnings == {"cleaning-overdue": 1}
    assert f"hoodie clean {table.path}" in str(report)
    table.clean()
    assert table.verify().warnings == {}


def test_many_small_files() -> None:
    store = MemoryStore()
    new_table(store, properties=OFF)
    table = Table(store)
    for number in range(12):
        table.bulk_insert(trips({f"k{number}": (1, "sf")}))
    report = table.verify()
    assert report.ok
    assert report.warnings == {"small-files": 1}


def test_a_planned_clustering_that_waits_names_its_command() -> None:
    store = MemoryStore()
    new_table(store, properties=OFF)
    table = Table(store)
    for number in range(2):
        table.bulk_insert(trips({f"k{number}": (1, "sf")}))
    requested = table.schedule_clustering()
    assert requested is not None
    survey = Survey.of(table.view().state)
    later = parse_instant_time(requested, survey.view.layout.zone).timestamp() + DAY
    (found,) = overdue_problems(survey, list_slices(survey.view), now_seconds=later)
    assert found.kind.remedy == "hoodie cluster TABLE --run"


@pytest.mark.parametrize(("commits_max", "is_overdue"), [("3", True), ("4", False)])
def test_a_long_timeline_is_twice_the_commits_that_the_table_keeps(commits_max: str, is_overdue: bool) -> None:
    kept = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": commits_max, "hoodie.archive.automatic": "false"}
    store = MemoryStore()
    new_table(store, properties=kept)
    for ts in range(7):
        Table(store).upsert(trips({"a": (ts, "sf")}))
    report = Table(store).verify()
    assert report.ok
    assert report.warnings == ({"archiving-overdue": 1} if is_overdue else {})
