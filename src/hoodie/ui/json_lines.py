"""Print JSON for programs: one document per line, each printed as soon as it is available."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import typer

from hoodie.ui.values import printable_values

_CONTROLS: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""Characters that `json` leaves as they are: commands of some terminals, and ends of lines in Python."""


def print_json(value: Any) -> None:
    """Print one document on one line."""
    typer.echo(to_json(value))


def print_rows(batches: Iterable[pa.RecordBatch]) -> None:
    """Print each row as its own document; `hoodie upsert TABLE -` reads them back."""
    for batch in batches:
        columns = map(printable_values, batch.columns)
        # Without columns `zip` ends at once.
        for row in zip(*columns, strict=True) if batch.num_columns else [()] * batch.num_rows:
            print_json(dict(zip(batch.schema.names, row, strict=True)))


def to_json(value: Any) -> str:
    """Convert a value to JSON: times in ISO form, decimals as strings, bytes in base64.

    NaN and infinities become the strings `NaN`, `Infinity` and `-Infinity`. Control characters are escaped.

    >>> to_json({"day": date(2013, 1, 31), "fare": float("nan")})
    '{"day": "2013-01-31", "fare": "NaN"}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False).translate(_CONTROLS)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value
