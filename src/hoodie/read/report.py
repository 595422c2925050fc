"""Reports of a table: the columns of their Arrow rows, and notes in the metadata of the schema, beside the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

_NOTES: Final = b"notes"
_TIME: Final = pa.timestamp("ms", "UTC")


def report_schema(columns: str) -> pa.Schema:
    """Return columns that are written as `name type, …`; those of a type like `type?` may be null.

    The types are those of `pyarrow.type_for_alias`, and `time`: milliseconds in UTC.

    >>> report_schema("day date32, completed_at time?").field("completed_at")
    pyarrow.Field<completed_at: timestamp[ms, tz=UTC]>
    """
    return pa.schema([_field(*column.split()) for column in columns.split(",")])


def _field(name: str, kind: str) -> pa.Field:
    alias = kind.removesuffix("?")
    return pa.field(name, _TIME if alias == "time" else pa.type_for_alias(alias), nullable=alias != kind)


def with_notes(rows: pa.Table, notes: Iterable[str]) -> pa.Table:
    """Return the rows with these notes, each once."""
    texts = list(dict.fromkeys(notes))
    return rows.replace_schema_metadata({_NOTES: json.dumps(texts)}) if texts else rows


def notes_of(rows: pa.Table) -> tuple[str, ...]:
    """Return the notes of a report; none for other rows.

    >>> notes_of(with_notes(pa.table({"day": ["2026-11-25"]}), ["one commit is damaged", "one commit is damaged"]))
    ('one commit is damaged',)
    """
    return tuple(json.loads((rows.schema.metadata or {}).get(_NOTES, b"[]")))
