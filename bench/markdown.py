"""Markdown: tables, and sections of a page that are written anew with each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is on the left, the figures on the right."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def machine_line(machine: Mapping[str, Any]) -> str:
    """On what it was measured, and when."""
    return f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['when'][:10]}"


def seconds_text(values: Sequence[float]) -> str:
    """Median, and the range if there are several: seconds, with as many digits as mean something."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    text = _digits(median)
    return text if len(ordered) == 1 else f"{text} ({_digits(ordered[0])}-{_digits(ordered[-1])})"


def section(path: Path, name: str) -> tuple[str, str, str]:
    """The text of a page before, in and after a section: between its markers `bench:NAME:begin` and `bench:NAME:end`.

    Raises: ValueError if the page has no such markers.
    """
    begin, end = f"<!-- bench:{name}:begin -->\n", f"<!-- bench:{name}:end -->"
    before, found_begin, rest = path.read_text("utf-8").partition(begin)
    inside, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path}: the markers bench:{name}:begin and bench:{name}:end are missing")
    return before + begin, inside, end + after


def put_section(path: Path, name: str, text: str) -> None:
    """Replace what a section of a page holds.

    Raises: ValueError if the page has no such section.
    """
    before, _, after = section(path, name)
    path.write_text(before + text.rstrip() + "\n" + after, "utf-8")


def _digits(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"
