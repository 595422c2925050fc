"""Which types the columns of a base file had when it was written: Spark's Parquet scan widens few of them.

Spark 4 reads int as long or double, and float as double; 3.5 does not even that, and neither reads int as float or long
as double, as the JVM lets a column grow. Files with older types are scanned as they are, and cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_parquet
from hoodie.files.slices import BaseFile
from hoodie.format.schema.table_schema import avro_to_arrow, with_meta_fields
from hoodie.view.table_view import TableView


def files_by_types(
    view: TableView, files: Sequence[BaseFile], current: pa.Schema
) -> list[tuple[pa.Schema, list[BaseFile]]]:
    """The files in groups of one schema each: today's columns in today's order, with the types they have in the files.

    All columns are nullable. What a commit wrote has one schema: the one it says, or, of a commit that is archived or
    says none, the one in the footer of any of its files.
    """
    texts = _schema_texts(view, sorted({file.instant_time for file in files}))
    untold = {file.instant_time: file for file in files if texts[file.instant_time] is None}
    in_footers = _footer_schemas(view, untold)
    shapes: dict[str | None, pa.Schema] = {}
    by_instant: dict[str, pa.Schema] = {}
    for instant_time, text in texts.items():
        if text is None:
            by_instant[instant_time] = with_stored_types(current, in_footers[instant_time])
            continue
        if text not in shapes:
            shapes[text] = with_stored_types(current, with_meta_fields(avro_to_arrow(text)))
        by_instant[instant_time] = shapes[text]
    groups: dict[pa.Schema, list[BaseFile]] = {}
    for file in files:
        groups.setdefault(by_instant[file.instant_time], []).append(file)
    return list(groups.items())


def _footer_schemas(view: TableView, files: Mapping[str, BaseFile]) -> Mapping[str, pa.Schema]:
    """Schemas of files by instant, from their footers: on threads, and each instant's once for all views."""
    known = view.state.commits.file_schemas
    missing = [file for instant_time, file in files.items() if instant_time not in known]

    def read(file: BaseFile, context: TaskContext) -> pa.Schema:
        with open_parquet(view.store, file.path) as parquet:
            return parquet.schema_arrow.remove_metadata()

    found = LocalEngine().run(read, missing)
    # Few schemas, many instants: those that are equal are one object.
    one = {schema: schema for schema in known.values()}
    known.update(
        {file.instant_time: one.setdefault(schema, schema) for file, schema in zip(missing, found, strict=True)}
    )
    return known


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
    return view.commit_facts(instant).schema


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
