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


def put_section(path: Path, name: str, text: str) -> None:
    """Replace what stands between the markers `bench:NAME:begin` and `bench:NAME:end` of a page.

    Raises: ValueError if the page has no such markers.
    """
    before, begin, rest = path.read_text("utf-8").partition(f"<!-- bench:{name}:begin -->\n")
    _, end, after = rest.partition(f"<!-- bench:{name}:end -->")
    if not begin or not end:
        raise ValueError(f"{path}: the markers bench:{name}:begin and bench:{name}:end are missing")
    path.write_text(before + begin + text.rstrip() + "\n" + end + after, "utf-8")


def _digits(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"
