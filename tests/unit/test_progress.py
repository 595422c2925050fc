"""Reports of a write: phases in order, tasks counted, nothing without a listener."""

from __future__ import annotations

import pyarrow as pa

from hoodie import progress
from hoodie.engine import LocalEngine, TaskContext
from hoodie.progress import Progress, listening
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b", "c", "d"], "p": ["1", "2", "3", "4"]})


def test_an_upsert_reports_its_phases_in_order_and_every_file() -> None:
    table = new_table(ROWS.schema, partition_by="p")
    reports: list[Progress] = []
    with listening(reports.append):
        table.upsert(ROWS)
        table.upsert(ROWS)
    assert list(dict.fromkeys(report.phase for report in reports)) == ["stage", "tag", "write", "index", "commit"]
    written = [report for report in reports if report.phase == "write" and report.tasks_total]
    assert all(0 < report.tasks_done <= report.tasks_total for report in written)


def test_tasks_are_reported_as_they_end() -> None:
    def work(task: int, context: TaskContext) -> int:
        return task * 2

    reports: list[Progress] = []
    with listening(reports.append), progress.phase("count"):
        assert LocalEngine(threads=2).run(work, [1, 2, 3]) == [2, 4, 6]
    assert reports == [Progress("count"), *(Progress("count", done, 3) for done in (1, 2, 3))]


def test_nobody_listens_after_the_block() -> None:
    reports: list[Progress] = []
    with listening(reports.append):
        assert progress.is_heard()
    progress.report(1, 2)
    assert not progress.is_heard()
    assert reports == []
