"""`docs/operations/verify-and-repair.md` has a row for each kind of finding, and one for each wound that is tested."""

from __future__ import annotations

from pathlib import Path

from hoodie.services.check.kinds import KINDS
from hoodie.services.check.repair import Step
from tests.unit.services.check.wounds import WOUNDS

PAGE = Path(__file__).parents[4] / "docs" / "operations" / "verify-and-repair.md"


def kind_rows() -> list[str]:
    """The rows of the table of findings."""
    return [
        f"| `{kind.name}` | {kind.severity.value} | {kind.meaning} | {_remedy(kind.remedy)} |"
        for kind in KINDS.values()
    ]


def wound_rows() -> list[str]:
    """The rows of the table of wounds."""
    return [
        f"| {wound.name} | {', '.join(f'`{name}`' for name in sorted(kind.name for kind in wound.findings))} | "
        f"{'`hoodie repair`' if wound.rows is not None else 'not mended by `repair`'} |"
        for wound in WOUNDS
    ]


def _remedy(text: str) -> str:
    return f"`{text}`" if text.startswith("hoodie ") else text


def test_the_page_has_every_finding_and_every_wound() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("| finding | severity | meaning | mended by |") + 2
    assert lines[start : start + len(KINDS) + 1] == [*kind_rows(), ""]
    start = lines.index("| wound | findings | mended by |") + 2
    assert lines[start : start + len(WOUNDS)] == wound_rows()


def test_each_kind_that_a_repair_mends_has_a_wound() -> None:
    mended = {kind.name for kind in KINDS.values() if kind.is_repaired}
    assert mended == mended & {kind.name for wound in WOUNDS for kind in wound.findings}


def test_the_page_has_the_steps_of_a_repair() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("## What a repair does")
    numbered = [line for line in lines[start : lines.index("## Notes")] if line[:1].isdigit()]
    # The record index and the statistics are built in the step that builds the metadata table.
    assert len(numbered) == len(Step) - 2
