"""Text and HTML of results: sizes with units, counts with separators, tables for notebooks."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


def size_text(size_bytes: int) -> str:
    """Format a number of bytes in B, kB, MB, GB or TB, with a short number; 1 kB is 1,000 bytes.

    >>> size_text(812), size_text(1500), size_text(2_300_000)
    ('812 B', '1.5 kB', '2.3 MB')
    """
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def counted(count: int, nouns: str) -> str:
    """Return a count with its plural noun, and the singular for 1: the first word that ends with an s loses it.

    >>> counted(1, "log files deleted"), counted(1200, "rows"), counted(1, "entries")
    ('1 log file deleted', '1,200 rows', '1 entry')
    """
    if count == 1:
        nouns = re.sub(r"(ie)?s\b", lambda ending: "y" if ending[1] else "", nouns, count=1)
    return f"{count:,} {nouns}"


def command_text(command: str, uri: str, **others: str) -> str:
    """Return a command of the shell for the table with this URI instead of TABLE; a path, if it is on a local disk.

    `others`: what stands instead of other words, such as FILE. No value is searched for words.

    >>> command_text("hoodie repair TABLE --execute", "file:///data/my trips")
    "hoodie repair '/data/my trips' --execute"
    """
    values = {"TABLE": uri.removeprefix("file://"), **others}
    return re.sub(rf"\b(?:{'|'.join(values)})\b", lambda found: shlex.quote(values[found[0]]), command)


def seconds_text(seconds: Mapping[str, float]) -> str:
    """Format the seconds of an operation: the total, then the phases that took at least 5 ms.

    >>> seconds_text({"tag": 0.02, "commit": 0.001, "total": 0.03})
    '0.03 s (tag 0.02)'
    """
    phases = [f"{name} {took:.2f}" for name, took in seconds.items() if name != "total" and took >= 0.005]
    return f"{seconds.get('total', 0.0):.2f} s" + (f" ({', '.join(phases)})" if phases else "")


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What a call did: text for people, an HTML table for notebooks, and plain values for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_facts(self.facts())

    def facts(self) -> Mapping[str, object]:
        """Return what people look for, by name; a fact without a value is an empty text."""
        raise NotImplementedError


def html_facts(facts: Mapping[str, object]) -> str:
    """Return an HTML table with one row for each fact; names and values are escaped, facts without a value omitted.

    >>> html_facts({"path": "a<b", "notes": ""})
    "<table><tr><th style='text-align:left'>path</th><td style='text-align:left'>a&lt;b</td></tr></table>"
    """
    rows = (
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{_cell(value)}</td></tr>"
        for name, value in facts.items()
        if str(value)
    )
    return f"<table>{''.join(rows)}</table>"


def html_rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table with a heading; all text is escaped.

    >>> html_rows(["n"], [[1000]])
    '<table><tr><th>n</th></tr><tr><td>1,000</td></tr></table>'
    """
    heading = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><tr>{heading}</tr>{body}</table>"


def _cell(value: object) -> str:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return html.escape(f"{value:,}" if is_count else str(value)).replace("\n", "<br>")
