"""Text and HTML of results: sizes with units, counts with separators, tables for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence


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


def seconds_text(seconds: Mapping[str, float]) -> str:
    """Format the seconds of an operation: the total, then the phases that took at least 5 ms.

    >>> seconds_text({"tag": 0.02, "commit": 0.001, "total": 0.03})
    '0.03 s (tag 0.02)'
    """
    phases = [f"{name} {took:.2f}" for name, took in seconds.items() if name != "total" and took >= 0.005]
    return f"{seconds.get('total', 0.0):.2f} s" + (f" ({', '.join(phases)})" if phases else "")


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
