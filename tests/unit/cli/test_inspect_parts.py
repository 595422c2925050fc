"""`hoodie inspect TABLE PART`: each report as JSON lines, and as text for people."""

from __future__ import annotations

from pathlib import Path

import hoodie
from hoodie.cli.reads import Part
from hoodie.table import Table
from tests.support.archived import OFTEN
from tests.support.command_line import Run
from tests.support.tables import new_table, rows

_REPORTS = {
    "summary": "findings",
    "sizes": "histogram",
    "waits": "command",
    "growth": "small_files",
    "writers": "extra",
    "flows": "place",
    "backlog": "cost_bytes",
    "metadata": "newest_compaction",
    "schemas": "columns",
}


def _logged(path: Path) -> Table:
    """A table of a stream, with log files and a plan."""
    table = new_table(rows().schema, path=path, type="merge_on_read", partition_by="city")
    for batch in range(8):
        table.write_batch(rows("a", "b", ts=batch), batch, identifier="clicks")
    assert table.schedule_compaction()
    return table


def test_each_report_is_printed_for_people_and_for_programs(tmp_path: Path, run: Run) -> None:
    path = _logged(tmp_path / "t").path
    for part, field in _REPORTS.items():
        documents = run.rows("inspect", path, part)
        assert documents, part
        assert all(field in document for document in documents), part
        text = run.text("inspect", path, part)
        assert "{" not in text.replace("hoodie.table.create.schema: {", "").partition("properties")[0], part
        assert "[" not in text.partition("properties")[0], part
    assert set(_REPORTS) < set(Part)


def test_the_reports_are_those_of_the_library(tmp_path: Path, run: Run) -> None:
    table = _logged(tmp_path / "t")
    assert run.json("inspect", table.path, "sizes") == table.inspect.sizes()
    (wait,) = run.rows("inspect", table.path, "waits")
    assert wait["command"] == f"hoodie compact {tmp_path / 't'} --instant {wait['instant']}"
    (flow,) = run.rows("inspect", table.path, "flows")
    assert (flow["flow"], flow["kind"], flow["place"]) == ("clicks", "stream", "7")
    assert len(run.rows("inspect", table.path, "writers", "--limit", 1)) == 1
    assert run.rows("inspect", table.path, "writers")[0]["extra"] == {}
    assert run.rows("inspect", table.path, "backlog", "--limit", 0) == []
    assert run.rows("inspect", table.path, "growth", "--days", 1)[0]["inserted"] == 2
    assert run.json("inspect", table.path, "summary")["newest"]["instant"] == _newest(table)
    assert "id string, ts int64, city string" in " ".join(run.text("inspect", table.path, "schemas").split())


def test_notes_are_on_standard_error(tmp_path: Path, run: Run) -> None:
    table = new_table(path=tmp_path / "t")
    for ts in range(10):
        table.upsert(rows("a", ts=ts), properties=OFTEN)
    for options in ((), ("--json",)):
        assert (
            "note: the commits of the archived timeline are not read"
            in run("inspect", table.path, "flows", *options).err
        )


def _newest(table: Table) -> str:
    return table.timeline.completed().writes().instants[-1].requested_time


def test_facts_of_a_table_without_rows(tmp_path: Path, run: Run) -> None:
    path = new_table(path=tmp_path / "t").path
    assert "files" in run.text("inspect", path, "sizes")
    assert run.rows("inspect", path, "waits") == []
    assert hoodie.open(path, spark=False).inspect.summary()["newest"] is None
    assert "record key" in run.text("inspect", path, "summary")
