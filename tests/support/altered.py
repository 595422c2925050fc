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
    config = view.config
    action = Action.COMMIT if config.table_type is TableType.COPY_ON_WRITE else Action.DELTA_COMMIT
    instant_time = view.clock.next_time(view.timeline)
    create_requested(view.store, view.layout, instant_time, action)
    create_inflight(view.store, view.layout, instant_time, action)
    known = _history(view)
    latest = _internal_schema(int(instant_time), versions[-1])
    history = [latest, *known] if known else [latest, _internal_schema(0, versions[0])]
    name = f"{instant_time}_{view.clock.next_time(view.timeline)}.schemacommit"
    view.store.create(f".hoodie/.schema/{name}", json.dumps({"schemas": history}).encode())
    fields = pa.schema([pa.field(column, _TYPES[kind]) for column, (_, kind) in versions[-1].items()])
    metadata = CommitMetadata(
        operation_type=WriteOperation.ALTER_SCHEMA.value,
        extra_metadata={"schema": arrow_to_avro(fields, table_name=config.name), "latest_schema": json.dumps(latest)},
    )
    completed = view.clock.next_time(view.timeline)
    content = metadata.to_bytes(config.version)
    create_completed(view.store, view.layout, instant_time, action, content, completion_time=completed)
    return instant_time


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
