"""JSON from files of a table, parsed with limits.

Whoever can write to the table's storage decides the content of its files.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import numpy as np

from hoodie.errors import CorruptFileError

DEPTH_MAX: Final = 300
"""How deep objects and lists may be nested. A schema needs four levels for each nested record."""
_INT_MAX: Final = 2**63
_INT_DIGITS: Final = 19
"""Numbers of fewer digits have 64 bits."""
_PIECE_BYTES: Final = 1024 * 1024
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_json(data: bytes | str, *, path: str, expected: str = "JSON") -> Any:
    """Parse JSON text from the file `path`; `expected` names the text in errors.

    The result can be encoded as UTF-8, its numbers are finite and its integers have 64 bits. Objects and lists are
    nested up to `DEPTH_MAX` levels.

    Raises: CorruptFileError if the text is not such JSON, or an object has a key twice with different values.
    """
    try:
        raw = data.encode() if isinstance(data, str) else data
        return _parsed(raw, data if isinstance(data, str) else data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        message = f"{expected} expected, found {data[:20]!r}: {_reason(error)}; restore the file from a copy"
        raise CorruptFileError(message, path=path) from error


def parse_json_object(data: bytes | str, *, path: str, expected: str = "a JSON object") -> dict[str, Any]:
    """Parse JSON text that is an object. Raises: CorruptFileError as `parse_json`, or if the text is not an object."""
    found = parse_json(data, path=path, expected=expected)
    if not isinstance(found, dict):
        message = f"{expected} expected, found a {type(found).__name__}; restore the file from a copy"
        raise CorruptFileError(message, path=path)
    return found


def _parsed(raw: bytes, text: str) -> Any:
    """Parse text, and once more with a call for each object and number if the text may break a limit.

    These calls take four times as long as the rest, and almost no text needs them. The parser of the standard library
    raises a RecursionError before its own recursion is too deep.
    """
    found = json.loads(text, parse_float=_float, parse_constant=_constant)
    if _key_count(found) != _written_keys(raw) or _has_long_numbers(raw):
        found = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    if b"\\u" in raw and _SURROGATE.search(raw):
        # UTF-8 cannot encode half of a surrogate pair.
        json.dumps(found, ensure_ascii=False).encode()
    return found


def _key_count(found: Any) -> int:
    """Return the number of keys of all objects in a parsed value. Raises: ValueError if the value nests too deep."""
    count, depth, level = 0, 0, [found] if isinstance(found, dict | list) else []
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise ValueError(f"at most {DEPTH_MAX} nested levels expected, found more")
        objects = [one for one in level if type(one) is dict]
        count += sum(map(len, objects))
        below = [value for one in objects for value in one.values() if type(value) is dict or type(value) is list]
        lists = (one for one in level if type(one) is list)
        level = below + [value for one in lists for value in one if type(value) is dict or type(value) is list]
    return count


def _written_keys(raw: bytes) -> int:
    """Return how many keys JSON text has; another number, at least -1, if counting needs a parser.

    A colon after a quote ends a key, as in `"a":` and `"a" :`, except after an escaped quote in a string, as in
    `"{\\"a\\":1}"`. A string that begins with a colon counts as a key more: the number is never too small.
    """
    code = np.frombuffer(b"   " + raw, np.uint8)
    colons = np.flatnonzero(code == ord(":"))
    before = code[colons - 1]
    colons = colons - (before == ord(" "))
    last = code[colons - 1]
    if np.isin(last, np.frombuffer(b" \t\n\r", np.uint8)).any():
        return -1
    quotes = colons[last == ord('"')] - 1
    is_escaped = code[quotes - 1] == ord("\\")
    if (code[quotes[is_escaped] - 2] == ord("\\")).any():
        return -1
    return int(len(quotes) - np.count_nonzero(is_escaped))


def _has_long_numbers(raw: bytes) -> bool:
    """Return whether the text has `_INT_DIGITS` digits in a row anywhere, in a string too."""
    code = np.frombuffer(raw, np.uint8)
    for start in range(0, len(code), _PIECE_BYTES):
        run = code[start : start + _PIECE_BYTES + _INT_DIGITS] - np.uint8(ord("0")) < 10
        for shift in (1, 2, 4, 8, 3):
            # A place is true if the 2, 4, 8, 16 and at last 19 bytes from there are digits.
            run = run[:-shift] & run[shift:]
        if run.any():
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next((key for key, value in pairs if found[key] != value), None)
        if repeated is not None:
            raise ValueError(f"the key {repeated[:100]!r} has two different values")
    return found


def _integer(text: str) -> int:
    number = int(text) if len(text) <= 20 else _INT_MAX
    if not -_INT_MAX <= number < _INT_MAX:
        raise ValueError(f"a number of 64 bits expected, found {text[:30]}")
    return number


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a finite number expected, found {text[:30]}")
    return number


def _constant(text: str) -> float:
    raise ValueError(f"a finite number expected, found {text}")


def _reason(error: Exception) -> str:
    return "too many nested levels" if isinstance(error, RecursionError) else str(error)[:200]
