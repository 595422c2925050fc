"""The pages of the project: those at its top and docs/, and their code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One Markdown file; `name` is its path in the project."""

    name: str
    text: str

    def blocks(self, language: str) -> list[str]:
        """Return the code blocks of a language, in order."""
        return [code for _, tag, code in _BLOCK.findall(self.text) if tag == language]

    def programs(self) -> list[tuple[str, str]]:
        """Return the language and the code of each block that runs, in order."""
        return [(tag, code) for _, tag, code in _BLOCK.findall(self.text) if tag in {"python", "shell"}]

    def languages(self) -> set[str]:
        """Return the languages of the blocks; an empty string for a block without one."""
        return {tag for _, tag, _ in _BLOCK.findall(self.text)}

    def prose(self) -> str:
        """Return the text without code blocks."""
        return _BLOCK.sub("", self.text)

    def relative_links(self) -> Iterator[str]:
        """Return the targets of links to files of the project, without the part of the page."""
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", self.prose())):
            if not re.match(r"[a-z]+:", target):
                yield target.partition("#")[0]


def pages() -> tuple[Page, ...]:
    """Return all pages."""
    paths = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return tuple(Page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths)
