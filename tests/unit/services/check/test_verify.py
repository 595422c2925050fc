"""Services that do not run are warnings: they name the service, and never fail the check."""

from __future__ import annotations

import shlex

import pytest

from hoodie.errors import UnsupportedError
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.check.verify import overdue_problems
from hoodie.services.recovery import plan
from hoodie.table import Table
from hoodie.timeline import parse_instant_time
from hoodie.view.slices import list_slices
from tests.support.switched import KEYS, with_other_buckets
from tests.support.tables import TYPES, trips, trips_store

OFF = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
VERSIONS = [{"a": (ts, "sf")} for ts in range(7)]


def a_day_later(table: Table, requested: str | None) -> list[Problem]:
    """What is overdue 25 hours after this instant was requested."""
    survey = Survey.of(table.view().state)
    later = parse_instant_time(str(requested), survey.view.layout.zone).timestamp() + 25 * 3600
    return list(overdue_problems(survey, list_slices(survey.view), now_seconds=later))


def check(table: Table, *warnings: str) -> None:
    """The check passes, with each of these warnings once."""
    report = table.verify()
    assert (report.ok, report.warnings) == (True, dict.fromkeys(warnings, 1)), report


def test_compactions_and_plans_that_wait() -> None:
    due = {**OFF, "hoodie.compact.inline.max.delta.commits": "2"}
    table = Table(trips_store(*VERSIONS, table_type="merge_on_read", properties=due))
    check(table, "compaction-overdue")
    assert "plan-waiting" in [problem.kind.name for problem in a_day_later(table, table.schedule_compaction())]
    table.compact()
    check(table)


def test_versions_that_no_clean_deletes() -> None:
    table = Table(trips_store(*VERSIONS, properties={**OFF, "hoodie.clean.commits.retained": "2"}))
    check(table, "cleaning-overdue")
    assert f"hoodie clean {table.path}" in str(table.verify())
    table.clean()
    check(table)


@pytest.mark.parametrize(
    ("policy", "retained", "is_overdue"),
    [("versions", "2", True), ("versions", "4", False), ("hours", "1", False)],
)
def test_the_versions_that_a_clean_keeps_are_those_of_its_policy(policy: str, retained: str, is_overdue: bool) -> None:
    key = {"versions": "hoodie.clean.fileversions.retained", "hours": "hoodie.clean.hours.retained"}[policy]
    given = {**OFF, "hoodie.clean.commits.retained": "1", key: retained}
    named = {"versions": "KEEP_LATEST_FILE_VERSIONS", "hours": "KEEP_LATEST_BY_HOURS"}[policy]
    table = Table(trips_store(*VERSIONS, properties={**given, "hoodie.clean.policy": named}))
    check(table, *(["cleaning-overdue"] if is_overdue else []))
    if is_overdue:
        table.clean()
        check(table)


def test_a_table_that_cannot_be_clustered_gets_no_advice() -> None:
    buckets = {**OFF, "hoodie.bucket.index.num.buckets": "16"}
    table = Table(trips_store(index="bucket", properties=buckets))
    table.upsert(trips({f"k{number}": (1, "sf") for number in range(100)}))
    assert len(list_slices(table.view())) == 16
    check(table)
    assert not table.clustering_advice().is_advised
    with pytest.raises(UnsupportedError, match="has a bucket index"):
        table.cluster()


def test_many_small_files() -> None:
    table = Table(trips_store(properties=OFF))
    for number in range(12):
        table.bulk_insert(trips({f"k{number}": (1, "sf")}))
    check(table, "small-files")


def test_a_planned_clustering_that_waits_names_its_command() -> None:
    table = Table(trips_store(properties=OFF))
    for number in range(2):
        table.bulk_insert(trips({f"k{number}": (1, "sf")}))
    (found,) = a_day_later(table, table.schedule_clustering())
    assert found.kind.remedy == "hoodie cluster TABLE --run"


@pytest.mark.parametrize(("commits_max", "is_overdue"), [("3", True), ("4", False)])
def test_a_long_timeline_is_twice_the_commits_that_the_table_keeps(commits_max: str, is_overdue: bool) -> None:
    table = Table(trips_store(*VERSIONS, properties={"hoodie.archive.automatic": "false"}))
    table.alter.set_properties({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": commits_max})
    check(table, *(["archiving-overdue"] if is_overdue else []))


@pytest.mark.parametrize("key", ["C:\\Users\\x", r"\1", "TABLE of FILE"])
def test_a_remedy_takes_paths_and_keys_as_they_are(key: str) -> None:
    assert kinds.KEY_DOUBLED.remedy_for("memory://t", key) == kinds.KEY_DOUBLED.remedy
    for kind, word in ((kinds.FILE_MISSING, "--accept-loss"), (kinds.SAVEPOINT_FILE_MISSING, "delete")):
        remedy = kind.remedy_for("file:///a FILE/of TABLE/INSTANT", key)
        words = shlex.split(remedy.partition(": ")[2])
        assert words[words.index(word) :] in ([word, key], [word, "/a FILE/of TABLE/INSTANT", key])
    assert "/a FILE/of TABLE/INSTANT" in words


def test_a_doubled_key_with_a_backslash_is_found() -> None:
    table = Table(trips_store(index="bloom"))
    for ts in (1, 2):
        table.bulk_insert(trips({"C:\\Users\\x": (ts, "sf")}))
    report = table.verify(full=True)
    assert report.problems == {"key-doubled": 1}
    assert "C:\\Users\\x" in str(report)
    assert any("C:\\Users\\x" in note for note in table.repair(full=True).notes)


@pytest.mark.parametrize("table_type", TYPES)
def test_keys_of_other_buckets_are_found(table_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JVM Hudi restores a table to before its switch to other buckets without a check."""
    table, first = with_other_buckets(type=table_type)
    assert table.verify(full=True).ok
    monkeypatch.setattr(plan, "check_past_state", lambda *_, **__: None)
    table.restore(first)
    assert table.verify().ok
    report = table.verify(full=True)
    assert report.problems == {"bucket-wrong": 2}
    assert "'k2'" in str(report)
    table.insert_overwrite_table(table.to_arrow())
    assert table.verify(full=True).ok
    assert [table.count(f"id = '{key}'") for key in KEYS] == [1] * len(KEYS)
