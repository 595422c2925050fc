"""Write Markdown: tables, and sections of a page that each run replaces."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_LINE_MAX: Final = 250
"""Characters of a line of a page, at most (`tests/tidy/test_pages.py`)."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table; the first column is left-aligned, the other columns are right-aligned."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def machine_line(machine: Mapping[str, Any]) -> str:
    """Describe the machine, the day and the commit of a measurement."""
    return f"{machine['cores']} cores, {machine['memory_gib']} GiB, {day_and_commit(machine)}"


def day_and_commit(machine: Mapping[str, Any]) -> str:
    """Return the day of a measurement, and the commit that was measured if it is known."""
    commit = machine.get("commit")
    return str(machine["when"])[:10] + (f", commit {commit}" if commit else "")


def seconds_text(values: Sequence[float]) -> str:
    """Format the median of seconds, and the range if there are several values, with two or three decimals."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    text = _digits(median)
    return text if len(ordered) == 1 else f"{text} ({_digits(ordered[0])}-{_digits(ordered[-1])})"


def section(path: Path, name: str) -> tuple[str, str, str]:
    """Return the text of a page before, in and after a section.

    The section is between the markers `bench:NAME:begin` and `bench:NAME:end`; the markers are in the outer texts.

    Raises: ValueError if the page has no such markers.
    """
    begin, end = f"<!-- bench:{name}:begin -->\n", f"<!-- bench:{name}:end -->"
    before, found_begin, rest = path.read_text("utf-8").partition(begin)
    inside, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path}: the markers bench:{name}:begin and bench:{name}:end are missing")
    return before + begin, inside, end + after


def put_section(path: Path, name: str, text: str) -> None:
    """Replace the content of a section of a page; long lines of prose are broken.

    Raises: ValueError if the page has no such section.
    """
    before, _, after = section(path, name)
    lines = "\n".join(map(_broken, text.rstrip().split("\n")))
    path.write_text(before + lines + "\n" + after, "utf-8")


def _broken(line: str) -> str:
    if len(line) <= _LINE_MAX or line.startswith("|"):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, 160, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _digits(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"
