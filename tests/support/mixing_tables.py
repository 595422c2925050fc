"""Tables whose merge rule mixes the fields of two versions of a record, and in plain Python what their writes give."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.format.table.merge_config import MergeMode, merge_properties
from hoodie.format.table.versions import TableVersion

MODEL = "org.apache.hudi.common.model."
PARTIAL, LATEST = "PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload"
POSTGRES = "debezium.PostgresDebeziumAvroPayload"
PAYLOADS = (PARTIAL, LATEST, POSTGRES)
UNAVAILABLE = "__debezium_unavailable_value"
SCHEMA = pa.schema(
    [("id", pa.string()), ("ord", pa.int64()), ("a", pa.string()), ("b", pa.string()), ("n", pa.int64())]
)
MARK = {payload: pa.field("_hoodie_is_deleted", pa.bool_()) for payload in (PARTIAL, LATEST)} | {
    POSTGRES: pa.field("_change_operation_type", pa.string())
}
Row = tuple[Any, ...]
"""The values of a row: those of `SCHEMA`, then the mark of a delete."""


def schema_of(payload: str) -> pa.Schema:
    """The columns of a table with this payload class; the Postgres class compares a column of its own."""
    names = {"ord": "_event_lsn"} if payload == POSTGRES else {}
    return pa.schema([pa.field(names.get(field.name, field.name), field.type) for field in SCHEMA] + [MARK[payload]])


def create(path: Path | str, payload: str, version: int, **options: Any) -> hoodie.Table:
    """A table whose properties name the payload class as JVM Hudi stores it."""
    schema = schema_of(payload)
    made = hoodie.create(
        path, schema, record_key="id", ordering=schema.names[1], table_version=version, spark=False, **options
    )
    found = merge_properties(
        TableVersion.of(version), mode=MergeMode.EVENT_TIME_ORDERING, payload_class=MODEL + payload, strategy_id=None
    )
    update_table_config(made.view().store, dict(found))
    return hoodie.open(path, spark=False)


def rows_of(rows: Sequence[Row], payload: str) -> pa.Table:
    """The rows as data of a write."""
    schema = schema_of(payload)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def shown(table: pa.Table, payload: str) -> dict[str, Row]:
    """The rows of a table by their keys."""
    rows = table.select(schema_of(payload).names).to_pylist()
    return {row["id"]: tuple(row.values()) for row in rows}


def drawn(chooser: random.Random, key: str, payload: str, number: int) -> Row:
    """A row; `number` differs in all rows, and one row in six is a delete."""
    text = [chooser.choice([None, f"{number}"]) for _ in "ab"]
    if payload == POSTGRES:
        text[0] = text[0] or UNAVAILABLE
    gone = chooser.random() < 1 / 6
    mark: Any = {True: "d", False: "u"}[gone] if payload == POSTGRES else gone
    return (key, chooser.randint(1, 6), *text, number, mark)


class Model:
    """What writes give, one row after the other, as JVM Hudi merges rows into a base file."""

    def __init__(self, payload: str, version: int) -> None:
        self._payload, self._is_nine = payload, version == 9
        self.rows: dict[str, Row] = {}

    def upsert(self, rows: Sequence[Row]) -> None:
        """Merge the rows of each key into one, and that one with the stored row."""
        batch: dict[str, Row] = {}
        for row in rows:
            batch[row[0]] = self._in_batch(batch[row[0]], row) if row[0] in batch else row
        for key, row in batch.items():
            merged = self._merged(self.rows[key], row) if key in self.rows else row
            self.rows.pop(key, None)
            if not _deletes(merged):
                self.rows[key] = merged

    def _merged(self, stored: Row, row: Row) -> Row:
        wins = self._payload == LATEST or row[1] >= stored[1]
        if _deletes(row):
            always = self._payload == PARTIAL and not self._is_nine
            return row if wins or always else stored
        if wins:
            return self._mixed(stored, row)
        fills = self._payload == PARTIAL or self._is_nine
        return self._mixed(row, stored) if fills else stored

    def _in_batch(self, older: Row, newer: Row) -> Row:
        wins = newer[1] >= older[1]
        if self._is_nine:
            wins |= self._payload == LATEST
            if _deletes(older) or _deletes(newer):
                return newer if wins else older
        elif self._payload != PARTIAL:
            return newer if wins else older
        elif _deletes(newer if wins else older):
            return newer
        return self._mixed(older, newer) if wins else self._mixed(newer, older)

    def _mixed(self, loser: Row, winner: Row) -> Row:
        lacks = UNAVAILABLE if self._payload == POSTGRES else None
        return tuple(other if value == lacks else value for other, value in zip(loser, winner, strict=True))


def _deletes(row: Row) -> bool:
    return row[-1] in (True, "d")
