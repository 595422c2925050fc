"""`schema=` of the writes: which changes of the table's schema one call may make, in every write that takes it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from tests.support.tables import new_table
from tests.unit.write.tables import untouched

SCHEMA = pa.schema([("id", pa.string()), ("q", pa.int32())])
OPTION = "hoodie.python.schema.evolution"
WIDER = pa.table({"id": ["b"], "q": pa.array([1 << 40], pa.int64())})
FURTHER = pa.table({"id": ["e"], "q": pa.array([2], pa.int32()), "x": [0.5]})
FURTHER_UNTYPED = [{"id": "c", "q": 3, "y": "new"}]
ROW = [{"id": "a", "q": 1}]
WRITES = ("upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")


@pytest.mark.parametrize("method", WRITES)
def test_the_argument_allows_changes_of_the_schema(method: str) -> None:
    table = new_table(SCHEMA, properties={OPTION: "always"})
    write = getattr(table, method)
    write(ROW, schema="strict")
    for data in (WIDER, FURTHER, FURTHER_UNTYPED):
        with untouched(table, "schema='strict'", SchemaMismatchError):
            write(data, schema="strict")
    with untouched(table, "schema='add_columns'", SchemaMismatchError):
        write(FURTHER_UNTYPED, schema="typed")
    assert table.schema == SCHEMA
    assert write(WIDER, schema="typed").notes == ("column q: int32 -> int64",)
    assert write(FURTHER, schema="typed").notes == ("column x added: double",)
    assert write([{**FURTHER_UNTYPED[0], "x": 1.0}], schema="add_columns").notes == ("column y added: string",)
    # Without the argument, the option of the table counts.
    assert write([{"id": "d", "q": 4, "x": 1.0, "y": "", "z": True}]).notes == ("column z added: bool",)
    assert table.to_arrow(["q", "x", "y", "z"], "id = 'd'").to_pylist() == [{"q": 4, "x": 1.0, "y": "", "z": True}]


def test_what_contradicts_is_refused() -> None:
    table = new_table(SCHEMA)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"schema": "evolve"}, "'strict', 'typed', 'add_columns'"),
        ({"schema": "strict", "properties": {OPTION: "always"}}, "contradicts"),
        ({"schema": "add_columns", "partial": True}, "never changes the schema"),
    )
    for arguments, message in refused:
        with untouched(table, message, InvalidConfigError):
            table.upsert(ROW, **arguments)
    assert table.upsert(ROW, schema="strict", properties={OPTION: "never"}).inserted == 1
    assert table.upsert(ROW, schema="strict", partial=True).updated == 1


@pytest.mark.parametrize("operation", WRITES)
def test_batches_of_a_stream_take_the_argument(operation: str) -> None:
    table = new_table(SCHEMA)
    assert table.write_batch(ROW, 0, operation=operation, schema="strict") is not None
    with untouched(table, "schema='strict'", SchemaMismatchError):
        table.write_batch(FURTHER, 1, operation=operation, schema="strict")
    assert table.schema == SCHEMA
    result = table.write_batch(FURTHER, 1, operation=operation, schema="typed")
    assert result is not None
    assert result.notes == ("column x added: double",)
