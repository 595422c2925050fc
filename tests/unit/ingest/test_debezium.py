"""Change events of Debezium as rows to upsert and to delete."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SourceError
from hoodie.ingest.bad_rows import POSITION, REASON, VALUE
from hoodie.ingest.debezium import DebeziumForm, infer_row_schema
from hoodie.ingest.source import Request
from hoodie.ingest.sources.kafka import Kafka
from hoodie.ingest.values import DecodedWith
from hoodie.records.change import IS_DELETED

ROW = {"id": 1, "name": "a", "price": "1.50"}
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(10, 2))])


@pytest.mark.parametrize("has_schema", [False, True])
def test_changes_become_rows(has_schema: bool) -> None:
    events = [_event("r", after=ROW), _event("c", after=ROW), _event("u", ROW, {**ROW, "name": "b"}), _event("d", ROW)]
    wrapped = [{"schema": {"type": "struct"}, "payload": event} if has_schema else event for event in events]
    table = _decoded(wrapped)
    assert table[REASON].null_count == 4
    assert table["name"].to_pylist() == ["a", "a", "b", "a"]
    assert [str(price) for price in table["price"].to_pylist()] == ["1.50"] * 4
    assert table[IS_DELETED].to_pylist() == [False, False, False, True]


def test_events_with_and_without_schemas_in_one_block() -> None:
    table = _decoded([_event("c", after=ROW), {"payload": _event("d", ROW), "schema": {}}, None])
    assert table["id"].to_pylist() == [1, 1]
    assert table[IS_DELETED].to_pylist() == [False, True]


def test_tombstones_and_logical_messages_are_left_out() -> None:
    table = _decoded([None, _event("m"), _event("c", after=ROW)])
    assert table[POSITION].to_pylist() == ["2"]
    assert _decoded([None, _event("m")], form=DebeziumForm(pa.schema([]))).num_rows == 0


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"x": 1}, "expected a change event of Debezium: its member `op` is missing"),
        ({"op": "t"}, "the source table was truncated"),
        ({"op": "d"}, "a delete without the row `before`: set REPLICA IDENTITY"),
        ({"op": "u"}, "a change without the row `after`"),
        ({"op": "z", "after": ROW}, "expected op c, r, u, d, t or m"),
        ({"op": "u", "after": {**ROW, "name": "__debezium_unavailable_value"}}, "PostgreSQL did not send it"),
        ({"op": "c", "after": {"id": "x"}}, "column after.id: expected a number, found a string"),
    ],
)
def test_events_that_cannot_be_applied(event: dict[str, Any], reason: str) -> None:
    table = _decoded([_event("c", after=ROW), event])
    found = table[REASON].to_pylist()
    assert found[0] is None
    assert reason in found[1]
    assert json.loads(table[VALUE].to_pylist()[1]) == event


def test_the_placeholder_of_values_that_were_not_sent_has_many_forms() -> None:
    lists = [(f"l{number}", pa.list_(kind)) for number, kind in enumerate((pa.string(), pa.int32(), pa.int64()))]
    schema = pa.schema([*SCHEMA, *lists, ("m", pa.struct([("k", pa.string())])), ("t", pa.list_(pa.float64()))])
    text = "__debezium_unavailable_value"
    unsent = [
        {"name": text},
        {"name": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="},
        {"name": json.dumps({text: text}, separators=(",", ":"))},
        {"l0": [text]},
        {"l1": [*text.encode()]},
        {"l2": [*text.encode()]},
        {"m": {text: text}},
    ]
    sent = [
        {"name": f"{text}s", "l0": ["a", None], "l1": [*range(28)], "l2": [*text.encode(), 1]},
        {"l0": [], "l1": [], "l2": None, "m": {"k": text}, "t": [1.5]},
        {"l1": [None] * 28, "l2": [95], "m": {"k": None}, "other": "x"},
        {"m": None, "other": text},
    ]
    events = [_event("u", after=row) for row in (*sent, *unsent, *sent)]
    found = _decoded(events, form=DebeziumForm(schema))[REASON].to_pylist()
    assert [reason is not None for reason in found] == [False] * 4 + [True] * 7 + [False] * 4
    assert {*filter(None, found)} == {found[4]}
    assert "PostgreSQL did not send it" in str(found[4])


@pytest.mark.parametrize("deletes_by", ["at", "name", "at, name", "id", "_event_lsn", ""])
def test_deletes_that_have_the_key_only(deletes_by: str) -> None:
    at, amount = ("at", pa.timestamp("us", "UTC")), ("amount", pa.decimal128(9, 2))
    schema = pa.schema(
        [*SCHEMA, at, amount, ("tags", pa.list_(pa.string())), ("is_on", pa.bool_()), ("x", pa.date32())]
    )
    befores = [
        {"id": 1},
        {"id": 1, "name": "", "at": "1970-01-01T00:00:00Z", "is_on": False, "amount": "0.00", "x": 0, "tags": None},
        {"id": 1, "at": "2026-01-01T00:00:00Z"},
        {"id": 1, "is_on": True},  # a null that the row has
    ]
    form = DebeziumForm(schema, ("_event_lsn",), keys=("id",), deletes_by=tuple(deletes_by.split(", ")))
    request = Request(schema=schema, keys=form.keys, deletes_by=tuple(deletes_by.split(", ")))
    source = Kafka(servers="localhost:1", topic="t", format="debezium", debezium_columns=form.columns)
    assert source._form({}, request) == form
    events = [*(_event("d", before) for before in befores), _event("c", after={"id": 1})]
    found = _decoded(events, form=form)[REASON].to_pylist()
    needs = deletes_by in ("at", "name", "at, name")
    assert [reason is not None for reason in found] == [needs, needs, False, False, False]
    assert not needs or f"the table needs {deletes_by} to delete: set REPLICA IDENTITY FULL" in found[0]


def test_columns_of_the_event() -> None:
    source = {"lsn": 77, "txId": 5, "file": "bin.1", "pos": 9, "row": 0, "ts_ms": 3, "table": "t", "snapshot": "false"}
    names = ("_change_operation_type", "_event_lsn", "_event_bin_file", "_event_pos", "_event_origin_ts_ms")
    table = _decoded([{**_event("c", after=ROW), "source": source}], names)
    assert [table[name].to_pylist() for name in names] == [["c"], [77], ["bin.1"], [9], [3]]
    with pytest.raises(InvalidConfigError, match="debezium_columns has 'lsn': expected some of"):
        DebeziumForm(SCHEMA, ("lsn",))


def test_the_schema_of_a_table_with_the_columns() -> None:
    schema = pa.schema([*SCHEMA, ("_event_lsn", pa.int64()), (IS_DELETED, pa.bool_())])
    assert DebeziumForm(schema, ("_event_lsn",)).schema == schema
    assert DebeziumForm(schema).schema.names == ["id", "name", "price", IS_DELETED]


@pytest.mark.parametrize("has_schema", [False, True])
def test_the_schema_of_rows_is_inferred(has_schema: bool) -> None:
    events = [_event("d", {**ROW, "size": 1.5}), _event("c", after={**ROW, "tags": ["x"]})]
    values = [json.dumps({"payload": event} if has_schema else event).encode() for event in events]
    found = infer_row_schema(pa.chunked_array([[None, *values]]))
    assert {name: str(found.field(name).type) for name in found.names} == {
        "id": "int64",
        "name": "string",
        "price": "string",
        "tags": "list<element: string>",
        "size": "double",
    }
    with pytest.raises(SourceError, match="no event of Debezium"):
        infer_row_schema(pa.chunked_array([[b'{"op":"t"}']]))


def _event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"lsn": 1}, "ts_ms": 2}


def _decoded(events: list[Any], columns: tuple[str, ...] = (), form: DebeziumForm | None = None) -> pa.Table:
    values = [None if event is None else json.dumps(event).encode() for event in events]
    positions = [str(number) for number in range(len(values))]
    return DecodedWith(form or DebeziumForm(SCHEMA, columns))(
        pa.table({VALUE: pa.array(values, pa.binary()), POSITION: positions})
    )
