"""Errors of databases in one line, without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hoodie.config.secrets import masked
from hoodie.errors import SourceError

_FAILURE = re.compile(r".*(?:^|[\s(:])(?:[\w$]+\.)+([\w$]+(?:Exception|Error))[):]+\s*(\S.*)")
_LENGTH_MAX = 500


def cause(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the innermost cause that the message of an error contains, in one line of at most 500 characters."""
    text = str(error) or type(error).__name__
    found = [match for line in text.splitlines() if (match := _FAILURE.search(line))]
    line = f"{found[-1][1]}: {found[-1][2]}" if found else text.strip().splitlines()[0]
    return masked(" ".join(line.split()), secrets)[:_LENGTH_MAX]


def unreadable(
    error: BaseException, name: str, url: str, secrets: Iterable[str], remedies: Mapping[str, str]
) -> SourceError:
    """Return the error of a source whose database cannot be read. `remedies`: by a part of the error's text."""
    text = cause(error, secrets)
    remedy = next((f"; {remedy}" for part, remedy in remedies.items() if part in str(error)), "")
    return SourceError(f"{name} of {masked(url, secrets)}: the database cannot be read: {text}{remedy}")
