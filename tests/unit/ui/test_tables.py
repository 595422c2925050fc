"""Tables and JSON lines for people and programs."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
from rich.console import Console

from hoodie.display import size_text
from hoodie.ui.json_lines import to_json
from hoodie.ui.tables import cell, print_table


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


def test_sizes_have_readable_units() -> None:
    assert [size_text(size) for size in (0, 999, 1000, 123_456_789, 5 * 10**13)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "123.5 MB",
        "50.0 TB",
    ]


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
