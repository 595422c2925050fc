"""The ids of columns, which JVM Hudi keeps for tables whose columns SQL renamed, dropped or moved.

On-disk format: docs/format/table.md §3.8. The JVM calls a schema with ids an internal schema. A commit has its own in
`latest_schema`; the files in `.hoodie/.schema` have the history of all of them.

A column keeps its id when it is renamed. So a file from before the rename has the column under its old name, and may
have another column, dropped since, under the column's new name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.json_text import parse_json_object
from hoodie.format.schema.arrow_types import LIST_ITEM, fields_below

LATEST_SCHEMA: Final = "latest_schema"
"""Key of a commit's extra metadata: the schema with ids after the commit."""
SCHEMA_FOLDER: Final = ".hoodie/.schema"
_HISTORY_SUFFIX: Final = ".schemacommit"
_DEPTH_MAX: Final = 64
StoredNames = Mapping[str, str | None]
"""By the path of a current field (`column`, `column.field`, `column.element.field`): its own name in the file, or None
if the file does not have it. A field that is not listed has its current name, if the file has it."""
SAME_NAMES: Final[StoredNames] = {}


@dataclass(frozen=True, slots=True)
class ColumnId:
    """A column or nested field: its id, its name, and the fields below it (of a record, a list or a map)."""

    id: int
    name: str
    below: tuple[ColumnId, ...] = ()


@dataclass(frozen=True, slots=True)
class IdSchema:
    """One version of a table's columns. `version` is the requested time of the first commit that has it, or 0."""

    version: int
    columns: tuple[ColumnId, ...]


def parse_history(text: str | bytes, *, path: str) -> tuple[IdSchema, ...]:
    """Parse the history of schemas in a file of `.hoodie/.schema`; the result is in ascending order of versions.

    Raises: CorruptFileError.
    """
    parsed = _parse(text, path)
    schemas = parsed.get("schemas")
    if not isinstance(schemas, list):
        raise CorruptFileError("a list 'schemas' of schemas with column ids expected", path=path)
    return tuple(sorted((_schema(found, path) for found in schemas), key=lambda schema: schema.version))


def parse_latest(text: str, *, path: str) -> IdSchema:
    """Parse the schema with ids in a commit's extra metadata. Raises: CorruptFileError."""
    return _schema(_parse(text, path), path)


def _parse(text: str | bytes, path: str) -> Mapping[str, Any]:
    return parse_json_object(text, path=path, expected="a JSON object with column ids")


def _schema(record: Any, path: str) -> IdSchema:
    if not isinstance(record, dict) or record.get("type") != "record":
        raise CorruptFileError("a record with column ids expected", path=path)
    return IdSchema(_number(record, "version_id", path), _record(record, path, depth=0))


def _record(record: Mapping[str, Any], path: str, *, depth: int) -> tuple[ColumnId, ...]:
    fields = record.get("fields")
    if not isinstance(fields, list) or depth > _DEPTH_MAX:
        raise CorruptFileError(f"fields with column ids expected, nested at most {_DEPTH_MAX} times", path=path)
    columns = []
    for field in fields:
        name = field.get("name") if isinstance(field, dict) else None
        if not isinstance(name, str):
            raise CorruptFileError("a field with a name and an id expected", path=path)
        columns.append(ColumnId(_number(field, "id", path), name, _below(field.get("type"), path, depth=depth + 1)))
    return tuple(columns)


def _below(kind: Any, path: str, *, depth: int) -> tuple[ColumnId, ...]:
    """Return the fields below a field of this type; a type is a text, or an object for nested types."""
    if isinstance(kind, str):
        return ()
    nested = kind.get("type") if isinstance(kind, dict) else None
    if depth > _DEPTH_MAX or nested not in ("record", "array", "map"):
        raise CorruptFileError(f"a type expected, nested at most {_DEPTH_MAX} times, found {nested!r}", path=path)
    if nested == "record":
        return _record(kind, path, depth=depth)
    if nested == "array":
        below = _below(kind.get("element"), path, depth=depth + 1)
        return (ColumnId(_number(kind, "element_id", path), LIST_ITEM, below),)
    below = _below(kind.get("value"), path, depth=depth + 1)
    return (ColumnId(_number(kind, "value_id", path), "value", below),)


def _number(record: Mapping[str, Any], key: str, path: str) -> int:
    found = record.get(key)
    if not isinstance(found, int) or isinstance(found, bool):
        raise CorruptFileError(f"{key}: a number expected, found {str(found)[:50]!r}", path=path)
    return found


def stored_names(
    stored: Sequence[ColumnId], current: Sequence[ColumnId], fields: Sequence[pa.Field], parent: str = ""
) -> dict[str, str | None]:
    """Return the names of the current fields in a file that differ from the current names.

    `stored` are the ids in the file, `current` the ids of the table. A current field without an id was added by a
    writer without ids: it is not the stored field of the same name.
    """
    by_id = {column.id: column for column in stored}
    ids = {column.name: column for column in current}
    taken = {column.name for column in stored}
    found: dict[str, str | None] = {}
    for child in fields:
        column = ids.get(child.name)
        old = None if column is None else by_id.get(column.id)
        path = f"{parent}{child.name}"
        if column is None or old is None:
            if child.name in taken:
                found[path] = None
            continue
        if old.name != child.name:
            found[path] = old.name
        found |= stored_names(old.below, column.below, fields_below(child.type), f"{path}.")
    return found


def is_history(name: str) -> bool:
    """Return whether a file in `.hoodie/.schema` has a history of the ids of columns."""
    return name.endswith(_HISTORY_SUFFIX)


def history_name(instant_time: str, completion_time: str | None) -> str:
    """Return the name of the file in `.hoodie/.schema` that an instant writes; version 6 names no completion time."""
    completed = "" if completion_time is None else f"_{completion_time}"
    return f"{instant_time}{completed}{_HISTORY_SUFFIX}"


def instant_of_history(name: str) -> str:
    """Return the requested time of the instant that wrote a file in `.hoodie/.schema`.

    >>> instant_of_history("20261122090000000_20261122090001000.schemacommit")
    '20261122090000000'
    """
    return name.partition(".")[0].partition("_")[0]
