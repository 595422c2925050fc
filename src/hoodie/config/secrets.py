"""Passwords in texts, properties and contents: `***` stands for them wherever they are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

MASK: Final = "***"
# `writeToken` is a part of the names of data files.
_WORD = (
    r"(?:password|passwd|pwd|passphrase|secret|(?<!write)(?<!write[._-])token|credential|signature|auth\.user\.info"
    r"|(?:access|account|api|private|sas|shared|signing|encryption)[._-]?key)"
)
_NAME = re.compile(rf"(?i)[\w.-]*{_WORD}[\w.-]*|(?:.*[._-])?(?:pass|auth|authorization|sig|sas|sas[._-].*)")
_VALUE = r"""(?:\\+"(.*?)\\+"|"((?:[^"\\]|\\.)*)"?|'([^']*)'?|([^&;,\s)]*))"""
_IN_TEXT: Final = (
    re.compile(r"//[^/?#:@\s]*:([^/?#\s]*)@"),
    re.compile(r"thin:[^/@\s]{1,200}/([^@\s]{1,500})@"),
    # `name=value` as in URLs and options, and `"name": value` as in JSON.
    re.compile(rf"""(?is)(?:{_WORD}[\w.-]{{0,100}}|(?<![\w.-])sig)(?:\\*["']?\s*=|\\*["']\s*:)\s*{_VALUE}"""),
    re.compile(r"""(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+([^\s"',;]+)"""),
)
_DATA_FILE = re.compile(r"/?(?:[^/\s?&;]+/)*[^/\s?&;]+(?:\.(?:parquet|orc|hfile)|\.log\.\d+_[\d-]+(?:\.cdc)?)")
"""A path of a data file; folders such as `token=1` are partitions."""


def secrets_of(url: str, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the passwords in a URL and in options, as written and decoded."""
    found = {match[match.lastindex or 0] for pattern in _IN_TEXT for match in pattern.finditer(url)}
    found |= {value for key, value in (options or {}).items() if _is_secret(key)}
    return tuple(found | {unquote(secret) for secret in found})


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text with `***` in the place of passwords: the given ones, and those in URLs, options and JSON."""
    for pattern in _IN_TEXT:
        text = pattern.sub(_mask, text)
    forms = {form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, MASK) if form else text
    return text


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties with `***` for the values of secret keys, and for passwords in other values.

    >>> redacted({"a.password": "x", "fs.s3a.access.key": "y", "url": "jdbc:h2://me:pw@db", "hoodie.table.name": "t"})
    {'a.password': '***', 'fs.s3a.access.key': '***', 'url': 'jdbc:h2://me:***@db', 'hoodie.table.name': 't'}
    """
    return {key: redacted_content(value, key) for key, value in properties.items()}


def redacted_content(value: Any, name: str = "") -> Any:
    """Return plain values with `***` for secrets at every depth: below secret keys, and in texts, also texts of JSON.

    `name`: the key of the value. Below a secret key all texts are hidden, and numbers if their own key is secret.

    >>> redacted_content({"a": [{"token": 7, "n": 7}, "x?sig=s"], "credentials": {"id": "me"}, "b": '{"pwd": "p"}'})
    {'a': [{'token': '***', 'n': 7}, 'x?sig=***'], 'credentials': {'id': '***'}, 'b': '{"pwd": "***"}'}
    """
    match value:
        case dict():
            is_hidden = _is_secret(name)
            return {
                key: redacted_content(item, name if is_hidden and not isinstance(item, int | float) else str(key))
                for key, item in value.items()
            }
        case list() | tuple():
            return [redacted_content(item, name) for item in value]
        case "" | bool() | None:
            return value
        case str() | bytes() | int() | float() if _is_secret(name):
            return MASK
        case str():
            return value if _DATA_FILE.fullmatch(value) else _redacted_text(value)
        case _:
            return value


def _redacted_text(text: str) -> str:
    """Return a text without passwords; a text of JSON stays one."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = json.loads(text)
            shown = redacted_content(found)
        except (ValueError, RecursionError):
            return masked(text)
        return text if shown == found else json.dumps(shown, ensure_ascii=False)
    return masked(text)


@lru_cache(4096)
def _is_secret(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _mask(match: re.Match[str]) -> str:
    (start, end), offset, text = match.span(match.lastindex or 0), match.start(), match[0]
    return f"{text[: start - offset]}{MASK if end > start else ''}{text[end - offset :]}"
