"""Arrow tables as a person reads them: a grid where it fits the terminal, else one record under the other."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_COLUMN_CHARS_MIN = 6
_CELL_CHARS_MAX = 120
_PLAIN_NUMBERS = frozenset({"year"})


def print_table(console: Console, rows: pa.Table) -> None:
    """Print all rows; the caller keeps them few."""
    texts = _texts(rows)
    # A grid takes three characters per column besides the text.
    width = sum(max([_COLUMN_CHARS_MIN, len(name), *map(len, column)]) + 3 for name, column in texts.items())
    if width <= console.width or rows.num_columns <= 2:
        print_grid(console, rows)
    else:
        _print_records(console, texts, rows.num_rows)


def print_grid(console: Console, rows: pa.Table) -> None:
    """Print all rows as a grid; cells are folded where the terminal is narrow."""
    texts = _texts(rows)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in rows.schema:
        grid.add_column(field.name, justify="right" if _is_number(field.type) else "left", overflow="fold")
    for row in zip(*texts.values(), strict=True):
        # As plain text: what stands in square brackets is data, no markup.
        grid.add_row(*map(Text, row))
    console.print(grid)


def _texts(rows: pa.Table) -> dict[str, list[str]]:
    return {name: [cell(name, value) for value in rows[name].to_pylist()] for name in rows.column_names}


def _print_records(console: Console, texts: dict[str, list[str]], count: int) -> None:
    longest = max(map(len, texts))
    for number in range(count):
        console.rule(f"row {number + 1}", align="left", style="dim")
        for name, column in texts.items():
            console.print(f"{name:<{longest}}  {column[number]}", markup=False, soft_wrap=True)


def cell(name: str, value: Any) -> str:
    """One value as text; sizes in a readable unit, times to the millisecond, long texts cut.

    >>> cell("size_bytes", 1500), cell("rows", 336776), cell("x", None)
    ('1.5 kB', '336,776', '')
    """
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        is_bytes = name.endswith("_bytes") or name.startswith("bytes_")
        return size_text(value) if is_bytes else str(value) if name in _PLAIN_NUMBERS else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    text = str(value)
    return text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 1]}…"


def size_text(size_bytes: int) -> str:
    """Bytes in the unit that leaves the number short; 1 kB is 1,000 bytes."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type))
