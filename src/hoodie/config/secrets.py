"""Passwords in texts and properties: `***` stands for them wherever a text is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote

MASK: Final = "***"
_NAME = r"[\w.-]*(?:password|passwd|pwd|passphrase|secret|token|credential)[\w.-]*"
_KEY = re.compile(r"(?i)(?:.*[._-])?(?:access|account|api|private|sas|encryption)[._-]?key(?:[._-].*)?")
_IN_URL: Final = (
    re.compile(r"//[^/?#:@\s]*:([^/?#\s]*)@"),
    re.compile(r"thin:[^/@\s]+/([^@\s]+)@"),
    re.compile(rf"(?i)\b{_NAME}\s*=\s*('[^']*'|[^&;,\s)]*)"),
)


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


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties with `***` for the values of secret keys, and for passwords in URLs of other values.

    >>> redacted({"a.password": "x", "fs.s3a.access.key": "y", "url": "jdbc:h2://me:pw@db", "hoodie.table.name": "t"})
    {'a.password': '***', 'fs.s3a.access.key': '***', 'url': 'jdbc:h2://me:***@db', 'hoodie.table.name': 't'}
    """
    return {
        key: MASK if value and (re.fullmatch(f"(?i){_NAME}", key) or _KEY.fullmatch(key)) else masked(value)
        for key, value in properties.items()
    }


def _mask(match: re.Match[str]) -> str:
    (start, end), offset, text = match.span(1), match.start(), match.group(0)
    return f"{text[: start - offset]}{MASK if end > start else ''}{text[end - offset :]}"
