"""Find the types that the columns of base files had when they were written.

Hudi can widen the type of a column, but Spark's Parquet scan supports few of these changes. Spark 4 reads int as long
or double, and float as double. Spark 3.5 reads none of them. Neither reads int as float, or long as double, which JVM
Hudi allows. So files with older types are scanned with their stored types, and the columns are cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.format.schema.table_schema import avro_to_arrow, with_meta_fields
from hoodie.view.table_view import TableView


def files_by_types(
    view: TableView, files: Sequence[BaseFile], current: pa.Schema
) -> list[tuple[pa.Schema, list[BaseFile]]]:
    """Group the files by their stored types.

    The schema of a group has the current columns in the current order, with the types of the group's files. All columns
    are nullable. All files of a commit have one schema: the schema in the commit metadata. If the commit is archived or
    its metadata has no schema, the schema is read from the footer of one of its files.
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
    """Read schemas of files by instant from their footers, on threads; each instant is read once for all views."""
    known = view.state.commits.file_schemas
    missing = [file for instant_time, file in files.items() if instant_time not in known]

    def read(file: BaseFile, context: TaskContext) -> pa.Schema:
        with open_base_file(view.store, file) as (parquet, _):
            return parquet.schema_arrow.remove_metadata()

    found = LocalEngine().run(read, missing)
    # There are few schemas and many instants, so equal schemas share one object.
    one = {schema: schema for schema in known.values()}
    known.update(
        {file.instant_time: one.setdefault(schema, schema) for file, schema in zip(missing, found, strict=True)}
    )
    return known


def _schema_texts(view: TableView, instants: Sequence[str]) -> dict[str, str | None]:
    """Return the schemas of commits as stored, by requested time; `instants` must be ascending.

    Reads the first and the last commit of a range. Only if their schemas differ, a commit between them is read, and
    both halves are searched again. This is correct because a changed schema never returns to an earlier state.
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
    """Return the schema of a commit as stored; None if the commit is archived or has no schema."""
    instant = view.timeline.get(instant_time)
    if instant is None or not instant.is_completed:
        return None
    return view.commit_facts(instant).schema


def with_stored_types(current: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """Return the current columns, all nullable, with their stored types; columns that are not stored keep their type.

    Nested columns keep their current structure.
    """
    known = {child.name: child for child in stored}
    return pa.schema([_field(child, known.get(child.name)) for child in current])


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
