"""Columns that SQL renamed, dropped or added: commits and history as JVM Hudi writes them, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.schema.table_schema import META_FIELDS, arrow_to_avro
from hoodie.format.table.table_config import TableType
from hoodie.timeline import Action, create_completed, create_inflight, create_requested
from hoodie.view.table_view import TableView

Columns = Mapping[str, tuple[int, str]]
"""Name -> id and type, as an internal schema has them; the types are those of Avro."""
_TYPES = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}


def alter(view: TableView, versions: Sequence[Columns]) -> str:
    """Commit the last of the versions of the table's columns; the first is the one of before any change.

    Gives the instant. Call it once for each change, each time with one more version.
    """
    instant_time = _begin(view)
    known = _history(view)
    latest = _internal_schema(int(instant_time), versions[-1])
    history = [latest, *known] if known else [latest, _internal_schema(0, versions[0])]
    name = f"{instant_time}_{view.clock.next_time(view.timeline)}.schemacommit"
    view.store.create(f".hoodie/.schema/{name}", json.dumps({"schemas": history}).encode())
    _complete(view, instant_time, versions[-1], {"latest_schema": json.dumps(latest)})
    return instant_time


def add_without_ids(view: TableView, columns: Columns) -> None:
    """Commit these columns, as a writer without the option does: without ids."""
    _complete(view, _begin(view), columns, {})


def commit_schema(view: TableView, avro: str) -> None:
    """Commit this text as the schema of the table."""
    _complete(view, _begin(view), {}, {"schema": avro})


def _begin(view: TableView) -> str:
    instant_time = view.clock.next_time(view.timeline)
    create_requested(view.store, view.layout, instant_time, _action(view))
    create_inflight(view.store, view.layout, instant_time, _action(view))
    return instant_time


def _action(view: TableView) -> Action:
    return Action.COMMIT if view.config.table_type is TableType.COPY_ON_WRITE else Action.DELTA_COMMIT


def _complete(view: TableView, instant_time: str, columns: Columns, extra: Mapping[str, str]) -> None:
    fields = pa.schema([pa.field(column, _TYPES[kind]) for column, (_, kind) in columns.items()])
    metadata = CommitMetadata(
        operation_type=WriteOperation.ALTER_SCHEMA.value,
        extra_metadata={"schema": arrow_to_avro(fields, table_name=view.config.name), **extra},
    )
    completed = view.clock.next_time(view.timeline)
    content = metadata.to_bytes(view.config.version)
    create_completed(view.store, view.layout, instant_time, _action(view), content, completion_time=completed)


def _history(view: TableView) -> list[dict[str, Any]]:
    names = view.store.names(".hoodie/.schema")
    if not names:
        return []
    found: list[dict[str, Any]] = json.loads(view.store.read(f".hoodie/.schema/{max(names)}"))["schemas"]
    return found


def _internal_schema(version: int, columns: Columns) -> dict[str, Any]:
    meta = {name: (number, "string") for number, name in enumerate(META_FIELDS)}
    fields = [
        {"id": number, "name": name, "optional": True, "type": kind}
        for name, (number, kind) in {**meta, **columns}.items()
    ]
    return {"max_column_id": 20, "version_id": version, "type": "record", "fields": fields}
