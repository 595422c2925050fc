"""Plain English in docstrings, comments and messages: words that hide who does what are refused."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.sources import PACKAGE, Source, for_each, package_sources

WORDS = {
    r"\b(told|tell|tells|telling)\b": "contains, shows, reports, returns",
    r"\balso if\b": "even if",
    r"\bthat of\b": "repeat the noun",
    r"(?<!as )\bof which\b": "a second sentence, or whose",
    r"\bone that\b": "repeat the noun",
    r"\bas far as\b": "if, until, at most",
    r"\bnobody\b": "no writer, no reader, …",
    r"\bnothing (of|says)\b": "repeat the noun",
    r"\b(asks|asked|knows|wants|says|said)\b": "requires, enables, has, contains, reports",
}
"""Refused words, with words to write in their place."""


def sentences(source: Source) -> list[str]:
    """Return the texts and the blocks of comments, on one line each, without code in backticks and examples."""
    texts = [node.value for node in ast.walk(source.tree) if isinstance(node, ast.Constant) and type(node.value) is str]
    blocks = re.findall(r"(?m)(?:^|  )# .*(?:\n\s*# .*)*", source.text)
    texts += [re.sub(r"(?m)^\s*#", "", block) for block in blocks]
    words = (re.sub(r"(?m)`[^`]*`|^\s*>>>.*$", "`", text).split() for text in texts)
    return [" ".join(found) for found in words if len(found) > 1]


def check(source: Source) -> None:
    """Raise for the first refused word of each sentence."""
    found = [
        f"{sentence[max(match.start() - 40, 0) : match.end() + 40]!r}; write {better}"
        for sentence in sentences(source)
        for word, better in WORDS.items()
        if (match := re.search(word, sentence, re.IGNORECASE))
    ]
    assert not found, "\n  ".join(found)


@for_each(package_sources())
def test_sentences_name_who_does_what(source: Source) -> None:
    check(source)


@for_each(package_sources())
def test_no_name_is_told(source: Source) -> None:
    names = (getattr(node, "id", None) or getattr(node, "name", None) for node in ast.walk(source.tree))
    told = {name for name in names if isinstance(name, str) and "told" in name.lower().split("_")}
    assert not told, f"{sorted(told)}: name what was found, a function by a verb and a noun"


@pytest.mark.parametrize(
    "bad",
    [
        '"""The options tell which rows are read."""',
        '"""Return the rows,\n\nalso\n    if there are none."""',
        "key = 1  # that of the first row",
        "# The place of the rows, of\n# which one is kept.\nkey = 1",
        'raise ValueError(f"{key}: nobody" " has the lock")',
        'raise ValueError(f"{key}: the index says so")',
    ],
)
def test_a_bad_sentence_is_found(bad: str) -> None:
    with pytest.raises(AssertionError, match="write"):
        check(Source(PACKAGE / "read" / "example.py", bad, ast.parse(bad)))


def test_code_is_no_sentence() -> None:
    code = '"""Return `asked`."""\nasked = file.tell()\ntext = f"{asked}"\n'
    check(Source(PACKAGE / "read" / "example.py", code, ast.parse(code)))
