"""Write the part of `docs/migrating.md` that lists how the judged steps of scripts differ from JVM Hudi.

Usage: PYTHONPATH=. python scripts/write_migrating.py docs/migrating.md (or `make docs`). The steps and their known
differences are those of tests/interop/steps. A test of tests/tidy fails if the page is stale.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.interop.steps.differences import DIFFERENCES, PROPERTIES
from tests.interop.steps.run import page_of

BEGIN: Final = "<!-- steps:begin -->"
END: Final = "<!-- steps:end -->"
_WIDTH: Final = 180


def written(page: str) -> str:
    """Return the page with a new part between the markers. Raises: ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the markers {BEGIN} and {END}")
    return "\n".join((before + begin, *_part(), end + after))


def _part() -> Iterator[str]:
    yield from ("| page | steps | equal | different, see below |", "|---|---:|---:|---:|")
    counts = [(page_of(name).title, len(page_of(name).steps), len(DIFFERENCES[name])) for name in DIFFERENCES]
    for title, steps, different in (*counts, ("all", *(sum(row[place] for row in counts) for place in (1, 2)))):
        yield f"| {title} | {steps} | {steps - different} | {different} |"
    for name, differences in DIFFERENCES.items():
        yield from ("", f"### {page_of(name).title}", "")
        yield from _bullets(differences, "; ", "{}")
    yield from (
        "",
        "### Table properties",
        "",
        "The judge does not compare these properties of `hoodie.properties`:",
        "",
    )
    reason = ""
    reasons: dict[str, str] = {}
    for key, text in PROPERTIES.items():
        reason = text or reason
        reasons[key] = reason
    yield from _bullets(reasons, ", ", "`{}`")


def _bullets(reasons: Mapping[str, str], between: str, form: str) -> Iterator[str]:
    """Return one entry of a list for each reason, with all that it holds for."""
    found: dict[str, list[str]] = {}
    for item, reason in reasons.items():
        found.setdefault(reason, []).append(form.format(item))
    for reason, items in found.items():
        text = f"**{between.join(items)}**: {reason}." if form == "{}" else f"{between.join(items)}: {reason}."
        yield from textwrap.wrap(
            text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(written(target.read_text(encoding="utf-8")), encoding="utf-8")
