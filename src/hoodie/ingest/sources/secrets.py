"""Errors of databases in one line, without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from hoodie.errors import SourceError

MASK: Final = "***"
_NAME = r"[\w.-]*(?:password|passwd|pwd|passphrase|secret|token|credential)[\w.-]*"
_IN_URL: Final = (
    re.compile(r"//[^/?#:@\s]*:([^/?#\s]*)@"),
    re.compile(r"thin:[^/@\s]+/([^@\s]+)@"),
    re.compile(rf"(?i)\b{_NAME}\s*=\s*('[^']*'|[^&;,\s)]*)"),
)
_FAILURE = re.compile(r".*(?:^|[\s(:])(?:[\w$]+\.)+([\w$]+(?:Exception|Error))[):]+\s*(\S.*)")
_LENGTH_MAX = 500


def secrets_of(url: str, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the passwords in a URL and in options, as written and decoded."""
    found = {match.group(1) for pattern in _IN_URL for match in pattern.finditer(url)}
    found |= {value for key, value in (options or {}).items() if re.fullmatch(f"(?i){_NAME}", key)}
    return tuple(found | {unquote(secret) for secret in found})


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text with `***` in the place of passwords: the given ones, and those in URLs."""
    for pattern in _IN_URL:
        text = pattern.sub(_mask, text)
    forms = {form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK) if form else text
    return text


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


def _mask(match: re.Match[str]) -> str:
    (start, end), offset, text = match.span(1), match.start(), match.group(0)
    return f"{text[: start - offset]}{MASK if end > start else ''}{text[end - offset :]}"
