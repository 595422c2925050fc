"""Comparison of Arrow tables by their rows, for tests: which reader, type width or row order does not matter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
DIFFERENCES_SHOWN_MAX = 10

Row = dict[str, Any]
Key = Any


def rows_of(table: pa.Table, key: str | Sequence[str], *, meta: bool = False) -> dict[Key, Row]:
    """Rows by record key (a tuple for several fields), without the `_hoodie_*` columns unless `meta`.

    Two rows of one key fail the test.
    """
    rows: dict[Key, Row] = {}
    for row in table.to_pylist():
        identity = _comparable(row[key] if isinstance(key, str) else tuple(row[field] for field in key))
        assert identity not in rows, f"key {identity!r} has more than one row"
        rows[identity] = _comparable({name: value for name, value in row.items() if meta or name not in META_COLUMNS})
    return rows


def assert_same_rows(
    actual: pa.Table, expected: pa.Table, *, key: str | Sequence[str] | None = None, meta: bool = False
) -> None:
    """Fail with the first few differing rows unless both tables hold the same columns and rows, in any order.

    With `key` the message says which fields of which record differ; without it duplicates count.
    """
    columns, wanted_columns = _columns(actual, meta), _columns(expected, meta)
    assert columns == wanted_columns, f"missing columns {wanted_columns - columns}, extra {columns - wanted_columns}"
    if key is None:
        got, wanted = _counted(actual, meta), _counted(expected, meta)
        differences = [f"missing: {row}" for row in (wanted - got).elements()]
        differences += [f"unexpected: {row}" for row in (got - wanted).elements()]
    else:
        differences = _differences(rows_of(actual, key, meta=meta), rows_of(expected, key, meta=meta))
    shown = "\n  ".join(differences[:DIFFERENCES_SHOWN_MAX])
    assert not differences, f"{len(differences)} rows differ (shown: {DIFFERENCES_SHOWN_MAX} at most):\n  {shown}"


def _differences(actual: Mapping[Key, Row], expected: Mapping[Key, Row]) -> list[str]:
    lines = [f"missing {key!r}: {expected[key]}" for key in expected if key not in actual]
    lines += [f"unexpected {key!r}: {actual[key]}" for key in actual if key not in expected]
    for key in expected.keys() & actual.keys():
        got, wanted = actual[key], expected[key]
        fields = [f"{name} is {got[name]!r}, not {wanted[name]!r}" for name in wanted if got[name] != wanted[name]]
        if fields:
            lines.append(f"{key!r}: {', '.join(fields)}")
    return lines


def _columns(table: pa.Table, meta: bool) -> set[str]:
    return {name for name in table.column_names if meta or name not in META_COLUMNS}


def _counted(table: pa.Table, meta: bool) -> Counter[str]:
    names = sorted(_columns(table, meta))
    return Counter(repr(_comparable(row)) for row in table.select(names).to_pylist())


def _comparable(value: Any) -> Any:
    """A value that equals its like from another reader: NaN equals NaN, one instant equals itself in every zone."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case dict():
            return {name: _comparable(item) for name, item in value.items()}
        case tuple():
            return tuple(_comparable(item) for item in value)
        case list() if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
            return dict(sorted((repr(name), _comparable(item)) for name, item in value))
        case list():
            return [_comparable(item) for item in value]
        case _:
            return value
