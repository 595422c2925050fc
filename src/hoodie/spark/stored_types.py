"""Which types the columns of a base file had when it was written: Spark's Parquet scan widens few of them.

Spark 4 reads int as long or double, and float as double; 3.5 does not even that, and neither reads int as float or long
as double, as the JVM lets a column grow. Files with older types are scanned as they are, and cast.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.files.base_file import open_parquet
from hoodie.files.slices import BaseFile
from hoodie.format.commit_metadata import SCHEMA_KEY
from hoodie.format.table_schema import avro_to_arrow, with_meta_fields
from hoodie.metadata.view import TableView


def files_by_types(
    view: TableView, files: Sequence[BaseFile], current: pa.Schema
) -> list[tuple[pa.Schema, list[BaseFile]]]:
    """The files in groups of one schema each: today's columns in today's order, with the types they have in the files.

    All columns are nullable. Files of commits that are archived, or say no schema, tell theirs in their footers.
    """
    by_text: dict[str | None, list[BaseFile]] = {}
    texts = _schema_texts(view, sorted({file.instant_time for file in files}))
    for file in files:
        by_text.setdefault(texts[file.instant_time], []).append(file)
    groups: dict[pa.Schema, list[BaseFile]] = {}
    for text, found in by_text.items():
        if text is not None:
            groups.setdefault(with_stored_types(current, with_meta_fields(avro_to_arrow(text))), []).extend(found)
            continue
        for file in found:
            with open_parquet(view.store, file.path) as parquet:
                groups.setdefault(with_stored_types(current, parquet.schema_arrow), []).append(file)
    return list(groups.items())


def _schema_texts(view: TableView, instants: Sequence[str]) -> dict[str, str | None]:
    """Schemas of commits as they are stored, by requested time (ascending).

    Reads the first and the last commit, and only where these differ some between them: a schema grows, and never
    returns to what it was.
    """
    texts = {instant: _schema_text(view, instant) for instant in (*instants[:1], *instants[-1:])}
    pending = [(0, len(instants) - 1)]
    while pending:
        first, last = pending.pop()
        if last - first <= 1:
            continue
        low, high = texts[instants[first]], texts[instants[last]]
        if low is not None and low == high:
            texts.update(dict.fromkeys(instants[first:last], low))
            continue
        middle = (first + last) // 2
        texts[instants[middle]] = _schema_text(view, instants[middle])
        pending += [(first, middle), (middle, last)]
    return texts


def _schema_text(view: TableView, instant_time: str) -> str | None:
    """The schema of a commit as it is stored; None for a commit that is archived or has none."""
    instant = view.timeline.get(instant_time)
    if instant is None or not instant.is_completed:
        return None
    return view.commit_metadata(instant).extra_metadata.get(SCHEMA_KEY) or None


def with_stored_types(current: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """Today's columns, all nullable, with the stored type wherever there is one; nested ones keep today's shape."""
    return pa.schema(
        [_field(child, stored.field(child.name) if child.name in stored.names else None) for child in current]
    )


def _field(current: pa.Field, stored: pa.Field | None) -> pa.Field:
    return pa.field(current.name, _type(current.type, current.type if stored is None else stored.type))


def _type(current: pa.DataType, stored: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(current):
        known = {child.name: child for child in stored.fields} if pa.types.is_struct(stored) else {}
        return pa.struct([_field(child, known.get(child.name)) for child in current.fields])
    if pa.types.is_map(current):
        item = stored.item_type if pa.types.is_map(stored) else current.item_type
        return pa.map_(current.key_type, pa.field("value", _type(current.item_type, item)))
    if pa.types.is_list(current):
        item = stored.value_type if pa.types.is_list(stored) else current.value_type
        return pa.list_(pa.field("element", _type(current.value_type, item)))
    return current if pa.types.is_nested(stored) else stored
