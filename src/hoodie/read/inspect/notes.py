"""Notes of a report: sentences that are kept in the metadata of its Arrow schema, beside the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

_NOTES: Final = b"notes"


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
