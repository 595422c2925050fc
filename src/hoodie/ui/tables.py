"""Print Arrow tables for people: as a grid if it fits the terminal, otherwise each record as a block of lines.

Users' data is printed unchanged. In the library's own tables (`own`) numbers have thousands separators, sizes have
units, and headings have spaces instead of underscores.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hoodie.display import size_text
from hoodie.ui.values import printable_values, shown

_COLUMN_GAP = 2
_FOLDED_CHARS_MIN = 20
_CELL_CHARS_MAX = 120
_TIME: Final = re.compile(r"T(\d\d:\d\d:\d\d)(?:\.(\d{3})\d*)?")


def print_table(console: Console, rows: pa.Table, *, own: bool = False) -> None:
    """Print all rows; the caller must limit their number."""
    texts = _texts(rows, own)
    least = [_least_width(name, column, own) for name, column in texts.items()]
    if sum(least) <= console.width or rows.num_columns <= 2:
        print_grid(console, rows, own=own)
    else:
        names = {name: name.replace("_", " ") if own else name for name in texts}
        _print_records(console, {names[name]: column for name, column in texts.items()}, rows.num_rows)


def print_grid(console: Console, rows: pa.Table, *, own: bool = False) -> None:
    """Print all rows as a grid.

    If the terminal is too narrow, long values are folded, and the headings of `own` tables have line breaks between
    their words.
    """
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    texts = _texts(rows, own)
    is_narrow = sum(_width(name, column) for name, column in texts.items()) > console.width
    for field in rows.schema:
        grid.add_column(
            Text(field.name.replace("_", "\n" if is_narrow else " ") if own else shown(field.name)),
            justify="right" if _is_number(field.type) else "left",
            overflow="fold",
            # Numbers and instants are not folded.
            no_wrap=max(map(len, texts[field.name]), default=0) <= _FOLDED_CHARS_MIN,
        )
    for row in zip(*texts.values(), strict=True):
        # Plain text, because square brackets in data are not markup.
        grid.add_row(*map(Text, row))
    console.print(grid)


def _width(heading: str, cells: list[str]) -> int:
    return max([len(heading), *map(len, cells)]) + _COLUMN_GAP


def _least_width(name: str, cells: list[str], own: bool) -> int:
    """Return the characters that a column needs if its heading is broken between words and long values are folded."""
    heading = max(name.split("_"), key=len) if own else name
    return min(_width(heading, cells), _FOLDED_CHARS_MIN + _COLUMN_GAP) if own else _width(heading, cells)


def _texts(rows: pa.Table, own: bool) -> dict[str, list[str]]:
    is_time = {field.name: pa.types.is_timestamp(field.type) for field in rows.schema}
    return {
        name: [cell(name, value, own=own, is_time=is_time[name]) for value in printable_values(rows[name])]
        for name in rows.column_names
    }


def _print_records(console: Console, texts: dict[str, list[str]], count: int) -> None:
    longest = max(len(shown(name)) for name in texts)
    for number in range(count):
        console.rule(f"row {number + 1}", align="left", style="dim")
        for name, column in texts.items():
            console.print(f"{shown(name):<{longest}}  {column[number]}", markup=False, soft_wrap=True)


def cell(name: str, value: Any, *, own: bool = False, is_time: bool = False) -> str:
    """Convert one value to a string.

    ISO texts of times (`is_time`) get milliseconds, control characters are escaped, and long strings are truncated.

    >>> cell("size_bytes", 1500, own=True), cell("rows", 336776, own=True), cell("flight", 1545), cell("x", None)
    ('1.5 kB', '336,776', '1545', '')
    """
    if value is None:
        return ""
    if own and isinstance(value, int) and not isinstance(value, bool):
        is_size = name.endswith("_bytes") or name.startswith("bytes_")
        return size_text(value) if is_size else f"{value:,}"
    if is_time:
        return _TIME.sub(_with_milliseconds, value)
    text = shown(str(value))
    return text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 1]}…"


def _with_milliseconds(clock: re.Match[str]) -> str:
    return f" {clock[1]}.{clock[2] or '000'}"


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))
