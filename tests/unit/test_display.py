"""How a table, its timeline and results show themselves on a terminal and in a notebook."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.display import html_facts, size_text
from hoodie.results import Finding, Report, ServiceResult
from hoodie.timeline import Timeline
from hoodie.write.result import WriteResult
from tests.support.fault_store import FaultStore
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})


@pytest.fixture
def table() -> hoodie.Table:
    return new_table(ROWS.schema, ROWS, name="a<b")


def test_a_table_shows_its_card_on_a_terminal_and_in_a_notebook(table: hoodie.Table) -> None:
    path = table.path
    commit = table.timeline.instants[-1]
    size_bytes = table.inspect.partitions()["size_bytes"][0].as_py()
    assert repr(table).splitlines() == [
        f"hoodie.open('{path}')",
        "  name           a<b",
        "  type           copy_on_write, version 9",
        "  record key     id",
        "  index          files, record_index",
        f"  newest commit  {commit}, the newest of 1 on the active timeline",
        "  rows           2",
        f"  size           {size_text(size_bytes)} in 1 file of 1 partition",
        "  columns        id string, x int64",
        f"  findings       none on the timeline; t.verify() or `hoodie verify {path}` checks the files",
    ]
    shown = table._repr_html_()
    for text in ("a&lt;b", "copy_on_write", "id string, x int64", ".commit (completed)"):
        assert text in shown


def test_a_card_opens_no_data_file_and_lists_no_folder_of_data(table: hoodie.Table) -> None:
    counting = FaultStore(table.view().store, count_reads=True)
    assert repr(hoodie.Table(counting)).splitlines()[1:7] == repr(table).splitlines()[1:7]
    read = [call.path for call in counting.calls]
    assert read
    assert all(path.startswith(".hoodie") for path in read), read


def test_a_card_names_dead_writes_and_rows_in_logs() -> None:
    made = new_table(ROWS.schema, ROWS, ROWS, type="merge_on_read", index="simple")
    store = made.view().store
    assert "  rows           2; without the changes in log files; t.count() counts all" in repr(made).splitlines()
    store.create(".hoodie/timeline/20200101000000000.deltacommit.requested", b"")
    assert "write-dead: 20200101000000000: a write is pending" in repr(made)
    assert f"t.verify() or `hoodie verify {store.uri('')}` has details" in repr(made)


def test_a_card_names_a_damaged_commit_once() -> None:
    store = new_table(ROWS.schema, ROWS, index="simple").view().store
    path = next(info.path for info in store.list(".hoodie/timeline") if info.path.endswith(".commit"))
    store.replace(path, b"garbage")
    assert repr(hoodie.Table(store)).count("found b'garbage'") == 1


def test_a_damaged_table_shows_its_error_in_a_notebook(table: hoodie.Table) -> None:
    table.view().store.replace(".hoodie/hoodie.properties", b"hoodie.table.name=x")
    assert "<th style='text-align:left'>error</th>" in table._repr_html_()
    assert f"  error  {table.path}" in repr(table)


def test_a_timeline_is_one_line_and_a_table_in_a_notebook(table: hoodie.Table) -> None:
    newest = table.timeline.instants[-1]
    assert repr(table.timeline) == f"Timeline(1 completed, 0 pending, newest {newest})"
    assert repr(Timeline()) == "Timeline(0 completed, 0 pending)"
    assert f"<td>{newest.requested_time}</td><td>commit</td><td>completed</td>" in table.timeline._repr_html_()


def test_an_inspection_names_what_it_has(table: hoodie.Table) -> None:
    assert repr(table.inspect).startswith(f"Inspection of {table.path}: files(), slices()")


def test_results_print_their_summary_and_escape_text() -> None:
    result = ServiceResult(operation="compact", counts={"rows": 1234}, bytes_written=1500, notes=("a<b", "c"))
    assert repr(result) == str(result) == "compact: 1,234 rows\n  1.5 kB in 0.00 s\n  note: a<b\n  note: c"
    assert "a&lt;b<br>c" in result._repr_html_()
    assert "1,234" in result._repr_html_()
    report = Report(
        subject="index", checked={"keys": 2}, problems={"lost": 1}, findings=(Finding(kind="lost", key="<"),)
    )
    assert repr(report) == str(report)
    assert "lost: &lt;" in report._repr_html_()
    assert repr(new_table(ROWS.schema).pending_compactions()) == "no compaction is pending"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (123_456_789, "123.5 MB"),
        (5 * 10**13, "50.0 TB"),
        (10**15, "1,000.0 TB"),
    ],
)
def test_sizes_have_units(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_facts_without_a_value_are_left_out() -> None:
    assert "notes" not in html_facts({"notes": "", "rows": 0})
    assert "rows" in html_facts({"notes": "", "rows": 0})


def test_a_write_result_shows_itself_in_short() -> None:
    result = WriteResult(
        instant="20260102030405678",
        action="commit",
        operation="upsert",
        inserted=1_234,
        ignored=None,
        files_created=1,
        bytes_written=1_500,
        seconds={"tag": 0.02, "total": 0.03},
        notes=("a<b",),
    )
    lines = [
        "upsert at 20260102030405678: 1,234 inserted, 0 updated, 0 deleted, ignored not counted",
        "  1 new and 0 rewritten files, 1.5 kB in 0.03 s (tag 0.02)",
        "  note: a<b",
    ]
    assert repr(result) == str(result) == "\n".join(lines)
    shown = result._repr_html_()
    assert "a&lt;b" in shown
    assert "<td style='text-align:left'>1,234</td>" in shown
    assert "<td style='text-align:left'>not counted</td>" in shown
    assert "1.5 kB" in shown
    assert "None" not in shown
