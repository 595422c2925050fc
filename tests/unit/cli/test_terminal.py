"""Tables, JSON lines and progress bars for people and programs, on wide and on narrow terminals."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from rich.progress import Progress as Bars

import hoodie
from hoodie.cli.terminal import Answer, ProgressBar, cell, print_table, progress_bar
from hoodie.cli.words import in_words
from hoodie.format.json_values import to_json
from hoodie.progress import Progress
from hoodie.results import Finding, Report
from tests.support.command_line import Run
from tests.support.tables import new_table


def _printed(rows: pa.Table, width: int, *, own: bool = False) -> str:
    sink = io.StringIO()
    print_table(Console(file=sink, width=width), rows, own=own)
    return sink.getvalue()


def test_a_table_that_fits_is_a_grid() -> None:
    rows = pa.table({"name": ["a", "b"], "all_rows": [1000, None]})
    lines = [line.split() for line in _printed(rows, 80).splitlines() if line.strip()]
    assert lines[::2] == [["name", "all_rows"], ["a", "1000"]]
    ours = [line.split() for line in _printed(rows, 80, own=True).splitlines() if line.strip()]
    assert ours[::2] == [["name", "all", "rows"], ["a", "1,000"]]


def test_a_table_that_is_too_wide_is_one_record_after_the_other() -> None:
    text = _printed(pa.table({f"column_{number}": ["x" * 10] for number in range(10)}), 60)
    assert "row 1" in text
    assert text.count("x" * 10) == 10


def test_text_is_not_taken_for_markup() -> None:
    assert "[red]x[/nothing]" in _printed(pa.table({"name": ["[red]x[/nothing]"]}), 80)


def test_cells_keep_instants_whole_and_cut_long_texts() -> None:
    assert cell("instant", "20261121123616628") == "20261121123616628"
    assert len(cell("schema", "x" * 500)) == 120


def test_json_has_a_form_for_every_type() -> None:
    value = {
        "at": datetime(2013, 1, 1, tzinfo=UTC),
        "price": Decimal("1.10"),
        "raw": b"\x00\xff",
        "odd": [float("inf"), float("-inf"), float("nan"), None, "ü"],
    }
    assert json.loads(to_json(value)) == {
        "at": "2013-01-01T00:00:00+00:00",
        "price": "1.10",
        "raw": "AP8=",
        "odd": ["Infinity", "-Infinity", "NaN", None, "ü"],
    }


def _tasks(bars: Bars) -> list[tuple[str, float, float | None]]:
    return [(task.description, task.completed, task.total) for task in bars.tasks]


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ('t.cluster(instant="12") executes it', "`hoodie cluster /t --instant 12` executes it"),
        ("t.compact(instant='12')", "`hoodie compact /t --instant 12`"),
        ("t.schedule_compaction(strategy='unbounded')", "`hoodie compact /t --plan --strategy unbounded`"),
        ("t.restore('12') completes it", "`hoodie restore /t 12` completes it"),
        ("t.restore() or t.rollback()", "`hoodie restore /t` or `hoodie rollback /t`"),
        ("t.restore(COMMIT)", "`hoodie restore /t COMMIT`"),
        ("the commit completed; call t.rollback again", "the commit completed; call `hoodie rollback /t` again"),
        ("roll that write back (t.rollback), or", "roll that write back (`hoodie rollback /t`), or"),
        ("(t.timeline shows which)", "(`hoodie timeline /t` shows which)"),
        ("none; t.timeline.pending() returns some", "none; `hoodie timeline /t` returns some"),
        ("t.verify() or `hoodie verify /t` has details", "`hoodie verify /t` has details"),
        ("open it, or pass exist_ok=True", "open it, or pass --exist-ok"),
        ("as_of='2026' is before the first commit", "--as-of '2026' is before the first commit"),
        ("since='2' is later than until='1'", "--since '2' is later than --until '1'"),
        ("takes no properties=, found x", "takes no --option, found x"),
        ("options in properties= of the write", "options in --option of the write"),
        ("properties= of t.index.build are options", "--option of t.index.build are options"),
        ("give x=UTC (properties=, --option)", "give x=UTC (--option)"),
    ],
)
def test_calls_in_messages_are_commands(call: str, command: str) -> None:
    assert in_words(call, "/t") == command


@pytest.mark.parametrize(
    "text",
    [
        "file:///lake/storage_options is no table",
        "flow 'trips', storage_options: expected a text",
        "error file-missing: hoodie repair /t --accept-loss until=2026/x.parquet",
        "until=2026/x.parquet: expected 12 bytes",
        "as_of=2026/city=sf: as_of=2026 has no rows",
        "exist_ok=True/x.parquet",
        "properties=1/x.parquet, properties=2",
        "no column 'p': WHERE properties= 5 AND (properties=, 6)",
        "expected a condition, found properties= of",
        "not a Spark SQL statement: \"UPDATE hoodie.`/t` AS t SET t.timeline = 1 WHERE t.restore AND until='2026'\"",
        "no column 't.clean()', found t.timeline",
        "/lake/t.clean()/x.parquet",
    ],
)
def test_values_in_messages_stay(text: str) -> None:
    assert in_words(text, "/t") == text


def test_keys_of_findings_stay() -> None:
    finding = Finding(kind="key-doubled", key="t.clean()", found="none: t.clean() frees it", remedy="t.clean()")
    report = Report(subject="t.clean()", problems={"key-doubled": 1}, findings=(finding,), notes=("t.clean()",))
    assert Answer.of(report, table="/t").text.splitlines() == [
        "t.clean(): 1 key-doubled",
        "   in 0.00 s",
        "  error key-doubled: 1 -> `hoodie clean /t`",
        "    key-doubled: t.clean(): found none: `hoodie clean /t` frees it",
        "  note: `hoodie clean /t`",
    ]


def test_the_path_of_a_table_is_printed_as_it_is(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": ["a"], "until": ["2026"]})
    options = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    path = tmp_path / "storage_options"
    new_table(rows.schema, rows, path=path, name=path.name, partition_by="until", properties=options)
    monkeypatch.chdir(tmp_path)
    card = run.text("info", path.name).splitlines()
    assert card[:2] == [f"file://{path}", "  name            storage_options"]
    assert card[-1].endswith(f"none on the timeline; `hoodie verify {path}` checks the files")
    (path / "until=2026" / ".hoodie_partition_metadata").unlink()
    for command in ("verify", "repair"):
        assert "until=2026/.hoodie_partition_metadata" in run(command, path.name).out


def test_steps_and_tasks_are_counted_apart() -> None:
    bars = Bars(disable=True)
    bar = ProgressBar(bars)
    bar.begin("load")
    bar.expect(3)
    bar.begin("upsert")
    assert _tasks(bars) == [("all steps", 1, 3), ("upsert", 0, None)]
    bar.show(Progress("tag", 1, 4))
    bar.show(Progress("write"))
    assert _tasks(bars) == [("all steps", 1, 3), ("upsert · write", 0, None)]
    bar.show(Progress("write", 2, 5))
    assert _tasks(bars)[1] == ("upsert · write", 2, 5)
    bar.begin("read")
    assert _tasks(bars) == [("all steps", 2, 3), ("read", 0, None)]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_sees_the_bar(is_terminal: bool) -> None:
    sink = io.StringIO()
    with progress_bar("upsert", console=Console(file=sink, force_terminal=is_terminal, width=80)) as bar:
        bar.show(Progress("write", 1, 2))
    assert ("upsert" in sink.getvalue()) == is_terminal


# Terminals of 40 and 60 columns: what commands print fits, and no value or name is broken

ROWS = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.5, 2.0], "updated_at": [1, 1], "note": ["", "x"]})

each_width = pytest.mark.parametrize("width", [40, 60])


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """A table with two commits."""
    table = new_table(ROWS.schema, ROWS, path=tmp_path / "t", partition_by="city")
    table.delete(["a"])
    return table


@pytest.fixture
def printed(width: int, monkeypatch: pytest.MonkeyPatch, run: Run) -> Callable[..., str]:
    """The output of command lines on a terminal of the test's width; each line must fit."""
    monkeypatch.setenv("COLUMNS", str(width))

    def printed(*arguments: str) -> str:
        found = run.text(*arguments)
        too_long = [line for line in found.splitlines() if len(line.rstrip()) > width]
        assert not too_long, f"{arguments}: {too_long}"
        return found

    return printed


@each_width
def test_timeline(printed: Callable[..., str], table: hoodie.Table) -> None:
    found = printed("timeline", table.path)
    assert [instant.requested_time in found for instant in table.timeline.instants] == [True, True]
    assert "2 inserted" in found
    assert "1 deleted" in found
    assert "_" not in found, "names of the library's own tables are words"


@each_width
def test_head(printed: Callable[..., str], table: hoodie.Table) -> None:
    words = printed("head", table.path).split()
    assert {*ROWS.column_names, "b", "nyc", "2.0"} <= set(words)


@each_width
def test_inspect(printed: Callable[..., str], table: hoodie.Table) -> None:
    assert "city=nyc" in printed("inspect", table.path)


@each_width
@pytest.mark.parametrize("command", [(), ("upsert",), ("index", "build")], ids=" ".join)
def test_help(printed: Callable[..., str], command: tuple[str, ...]) -> None:
    found = printed(*command, "--help")
    assert f"Usage: hoodie {' '.join(command)}".strip() in " ".join(found.split())
    assert "--help" in found
