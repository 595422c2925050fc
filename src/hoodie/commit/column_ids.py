"""Keep the ids that changes of columns gave a table: every commit has them, and writes their history again.

On-disk format: docs/format/table.md §3.8. A JVM reader takes the ids of the newest commit, and reads all older files by
name if that commit has none. It finds the history only in files of commits on the active timeline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.avro.schema import OPERATION_FIELD, schema_text
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.schema.arrow_types import fields_below
from hoodie.format.schema.column_ids import (
    LATEST_SCHEMA,
    SCHEMA_FOLDER,
    ColumnId,
    history_name,
    instant_of_history,
    is_history,
)
from hoodie.format.schema.id_record import MAX_ID, Record, record_of
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.view.columns import column_history, visible_schemas
from hoodie.view.table_view import TableView


def column_metadata(view: TableView, *, as_of: str | None = None) -> dict[str, str]:
    """Return the extra metadata of a commit with the ids of the columns, as of a requested time; empty without ids."""
    visible = visible_schemas(view, as_of)
    if not visible or visible[-1].version == 0:
        return {}
    latest = next(found for found in records_of(view) if found["version_id"] == visible[-1].version)
    return {LATEST_SCHEMA: schema_text(latest)}


def column_record(view: TableView) -> tuple[Record, bool]:
    """Return the record of the table's columns, which the caller may change, and whether they have ids already.

    No column ever had an id above the record's greatest one.

    Raises: CorruptFileError, as `visible_schemas`.
    """
    visible = visible_schemas(view)
    if not visible:
        return _first_record(view), False
    records = records_of(view)
    record = next(found for found in records if found["version_id"] == visible[-1].version)
    return {**record, MAX_ID: max(found[MAX_ID] for found in records)}, True


def changed_columns(record: Record, instant_time: str) -> dict[str, str]:
    """Return the extra metadata of a commit that changes the columns to this record."""
    return {LATEST_SCHEMA: schema_text({**record, "version_id": int(instant_time)})}


def _first_record(view: TableView) -> Record:
    schema = view.schema()
    return record_of(with_meta_fields(schema.arrow, has_operation=f'"{OPERATION_FIELD}"' in schema.avro))


def records_of(view: TableView) -> list[Record]:
    """Return the records of the history, newest first, each a new object; none if no column ever had an id.

    Raises: CorruptFileError if a record has no greatest id; as `column_history`.
    """
    history = column_history(view)
    records: list[Record] = json.loads(history.text)["schemas"] if history.text else []
    for found in records:
        if not isinstance(found.get(MAX_ID), int):
            raise CorruptFileError(f"{MAX_ID}: a number expected", path=view.store.uri(SCHEMA_FOLDER))
    return records


def store_column_history(now: TableView, instant_time: str, metadata: CommitMetadata) -> None:
    """Write the history of the ids for a commit that has ids; call it under the table's lock, before the commit.

    A commit that changes the columns adds its version; the first one adds the columns of before, too. A file of an
    instant that does not complete counts for no reader. Files of archived instants are deleted, as by the JVM; that
    costs one listing of the folder.
    """
    if LATEST_SCHEMA not in metadata.extra_metadata:
        return
    latest = json.loads(metadata.extra_metadata[LATEST_SCHEMA])
    text = column_history(now).text
    if latest["version_id"] == int(instant_time):
        versions = {found.version for found in visible_schemas(now)}
        older = [found for found in records_of(now) if found["version_id"] in versions] if versions else []
        text = schema_text({"schemas": [latest, *(older or [_first_record(now)])]}).encode()
    _delete_archived_histories(now)
    is_named = now.config.version.has_completion_time_in_name
    name = history_name(instant_time, now.clock.next_time(now.timeline) if is_named else None)
    now.store.create(f"{SCHEMA_FOLDER}/{name}", text)


def delete_column_history(now: TableView, instant_time: str) -> None:
    """Delete the history that an instant stored, which is rolled back: once the timeline starts later, it would count.

    Costs one listing of the folder.
    """
    for name in now.store.names(SCHEMA_FOLDER):
        if is_history(name) and instant_of_history(name) == instant_time:
            now.store.delete(f"{SCHEMA_FOLDER}/{name}")


def _delete_archived_histories(now: TableView) -> None:
    """Delete the histories of instants that left the active timeline, if a completed active instant has one.

    Each file has the whole history, and readers take the newest one of a completed instant.
    """
    timeline = now.whole_timeline()
    instants = {name: timeline.get(instant_of_history(name)) for name in now.store.names(SCHEMA_FOLDER)}
    if not any(is_history(name) and found is not None and found.is_completed for name, found in instants.items()):
        return
    for name, found in instants.items():
        # A file that is not older may be of a writer that began after this timeline was loaded.
        if found is None and instant_of_history(name) < (timeline.start or "") and is_history(name):
            now.store.delete(f"{SCHEMA_FOLDER}/{name}")


def check_columns_have_ids(view: TableView, evolved: pa.Schema) -> None:
    """Refuse a write that gives a table with ids other columns, or whose table has columns without ids.

    Raises: UnsupportedError. The message names the column.
    """
    visible = visible_schemas(view)
    if not visible:
        return
    current = view.schema().arrow
    where = f"{view.store.uri('')}: its columns have ids (hoodie.schema.on.read.enable)"
    if evolved != current:
        known = set(current)
        same = {child.name for child in evolved if child in known}
        changed = ", ".join(repr(name) for name in evolved.names if name not in same)
        raise UnsupportedError(
            f"{where}, and the data changes {changed}; change the table first: t.alter, or ALTER TABLE in SQL"
        )
    missing = _without_id(visible[-1].columns, list(current), "")
    if missing is not None:
        raise UnsupportedError(
            f"{where}, and {missing!r} has none: a writer without the option added it; write to the table with JVM "
            "Hudi and hoodie.schema.on.read.enable=true"
        )


def _without_id(columns: Sequence[ColumnId], fields: Sequence[pa.Field], parent: str) -> str | None:
    """Return the path of the first field that has no id; None if all have ids."""
    ids = {column.name: column for column in columns}
    for child in fields:
        column = ids.get(child.name)
        if column is None:
            return f"{parent}{child.name}"
        missing = _without_id(column.below, fields_below(child.type), f"{parent}{child.name}.")
        if missing is not None:
            return missing
    return None
