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

DEPTH_MAX: Final = 200
"""How deep objects and lists may be nested. A schema needs four levels for each nested record."""
_INT_MAX: Final = 2**63
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parse_json(data: bytes | str, *, path: str, expected: str = "JSON") -> Any:
    """Parse JSON text from the file `path`; `expected` says in errors what the text should be.

    The result can be encoded as UTF-8, its numbers are finite and its integers have 64 bits. Objects and lists are
    nested up to `DEPTH_MAX` levels.

    Raises:
        CorruptFileError: the text is not such JSON, or an object has a key twice with different values.
    """
    try:
        _check_depth(data.encode() if isinstance(data, str) else data)
        return json.loads(
            data, object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
    except (ValueError, RecursionError) as error:
        message = f"{expected} expected, found {data[:20]!r}: {_reason(error)}; restore the file from a copy"
        raise CorruptFileError(message, path=path) from error


def parse_json_object(data: bytes | str, *, path: str, expected: str = "a JSON object") -> dict[str, Any]:
    """Parse JSON text that is an object.

    Raises:
        CorruptFileError: as `parse_json`, or the text is not an object.
    """
    found = parse_json(data, path=path, expected=expected)
    if not isinstance(found, dict):
        message = f"{expected} expected, found a {type(found).__name__}; restore the file from a copy"
        raise CorruptFileError(message, path=path)
    return found


def _check_depth(data: bytes) -> None:
    """Refuse text that nests too deep or has half of a surrogate pair, which UTF-8 cannot encode."""
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX:
        code = np.frombuffer(_STRING.sub(b"", data), np.uint8)
        opened = (code == ord("[")) | (code == ord("{"))
        closed = (code == ord("]")) | (code == ord("}"))
        depth = int(np.cumsum(opened.astype(np.int32) - closed).max(initial=0))
        if depth > DEPTH_MAX:
            raise ValueError(f"at most {DEPTH_MAX} nested levels expected, found {depth}")
    if _SURROGATE.search(data):
        json.dumps(json.loads(data), ensure_ascii=False).encode()


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
