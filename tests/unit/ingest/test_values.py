"""Values decoded in process: JSON against one table of cases, text, and Avro; bad values never become nulls."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.avro_values import AvroForm, registered_schema
from hoodie.ingest.bad_rows import POSITION, REASON, VALUE, divided
from hoodie.ingest.json_types import JsonParser, infer_schema
from hoodie.ingest.values import DecodedWith, Form, TextForm, reason_of
from hoodie.records.sql.types import type_named

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
GOOD = [
    ("bigint", "9007199254740993", 9007199254740993),
    ("bigint", "null", None),
    ("tinyint", "-128", -128),
    ("double", "1", 1.0),
    ("double", "12345678901234567890", 12345678901234567890.0),
    ("float", "0.5", 0.5),
    ("string", r'"\u0000\ud83d\ude00"', "\0😀"),
    ("boolean", "true", True),
    ("decimal(38, 2)", "123456789012345678901234567890.12", Decimal("123456789012345678901234567890.12")),
    ("decimal(10, 2)", '"1.5"', Decimal("1.50")),
    ("decimal(10, 2)", "1e2", Decimal("100.00")),
    ("date", '"2026-01-02"', date(2026, 1, 2)),
    ("date", "19000", date(2022, 1, 8)),
    ("timestamp", '"2026-01-02T12:00:00Z"', NOON),
    ("timestamp", '"2026-01-02 12:00"', NOON),
    ("timestamp", '"2026-01-02T14:00:00.000+02:00"', NOON),
    ("timestamp", '"2026-01-02T14:00:00 +0200"', NOON),
    ("timestamp", '"2026-01-02T12:00:00.000000999Z"', NOON),
    ("timestamp", '"2026-01-02"', NOON.replace(hour=0)),
    ("timestamp_ntz", '"2026-01-02T12:00:00"', NOON.replace(tzinfo=None)),
    ("array<bigint>", "[1, null]", [1, None]),
    ("array<date>", '["2026-01-02"]', [date(2026, 1, 2)]),
    ("array<date>", "[]", []),
    ("struct<b: int, c: array<struct<d: float>>>", '{"c": [{"d": 1.5}, null]}', {"b": None, "c": [{"d": 1.5}, None]}),
]
BAD = [
    ("bigint", "1.0", "column a: Failed to convert JSON to int64, couldn't parse:1.0"),
    ("bigint", "9223372036854775808", "column a: Failed to convert JSON to int64, couldn't parse:9223372036854775808"),
    ("bigint", '"1"', "column a: expected a number, found a string"),
    ("bigint", "true", "column a: expected a number, found a boolean"),
    ("tinyint", "200", "column a: Failed to convert JSON to int8, couldn't parse:200"),
    ("float", "1e300", "column a: the number is too large for a float"),
    ("string", "1", "column a: expected a string, found a number"),
    ("boolean", '"true"', "column a: expected a boolean, found a string"),
    ("decimal(10, 2)", "1.555", "column a: Failed to convert JSON to decimal128(10, 2): 1.555 requires scale 3"),
    ("date", '"2026-01-02T00:00:00Z"', "column a: expected a date such as 2026-01-31, found '2026-01-02T00:00:00Z'"),
    ("date", '"2026-02-30"', "column a: no date32[day]: Failed to parse string: '2026-02-30'"),
    ("timestamp", '"x"', "column a: expected a time such as 2026-01-31T23:59:59Z, found 'x'"),
    ("timestamp", "17", "column a: expected a time as text, found a number; set `epoch` to its unit: s, ms, us, ns"),
    ("array<bigint>", "1", "column a: expected an array, found a number"),
    ("struct<b: array<struct<c: int>>>", '{"b": [{"c": "x"}]}', "column a.b[].c: expected a number, found a string"),
]
BROKEN = [
    b"",
    b"oops",
    b"[1]",
    b"1",
    b'"}',
    b'{"a":1',
    b'{"x":[',
    b'{"a":1}{"a":2}',
    b'{"a":1} x',
    b'{"a":1}}{"v":{"a":2}',
    b'{"a":1,"a":2}',
    b"{a:1}",
    b'{"a":1}\xff',
    b'{"a":1}\0',
    b"\xef\xbb\xbf{}",
    b'{"a":1},"w":2',
    b'{"a":1},{"a":2}',
]


@pytest.mark.parametrize(("kind", "text", "expected"), GOOD)
def test_values_that_fit(kind: str, text: str, expected: object) -> None:
    table = _decoded([f'{{"a": {text}, "other": [1]}}'.encode()], a=kind)
    assert (table[REASON].to_pylist(), table["a"].to_pylist()) == ([None], [expected])


@pytest.mark.parametrize(("kind", "text", "reason"), BAD)
def test_values_that_do_not_fit(kind: str, text: str, reason: str) -> None:
    raw = f'{{"a": {text}, "b": 5}}'
    table = _decoded([b'{"b": 1}', raw.encode(), b'{"b": 2}'], a=kind, b="int")
    assert table[REASON].to_pylist() == [None, reason, None]
    assert table[VALUE].to_pylist() == [None, raw, None]
    assert table["b"].to_pylist() == [1, None, 2]


def test_messages_that_are_no_objects() -> None:
    values = [piece for number, raw in enumerate(BROKEN) for piece in (raw, b'{"a":%d}' % number)]
    table = _decoded([*values, b"null", None, b'{"a":\n3}'], a="bigint")
    reasons = table[REASON].to_pylist()
    assert all(reasons[: 2 * len(BROKEN) : 2])
    assert table["a"].to_pylist() == [*(n for number in range(len(BROKEN)) for n in (None, number)), None, None, 3]
    assert reasons[-3:] == ["expected a JSON object, found null", "the message has no value (null)", None]
    assert table[VALUE].to_pylist()[24] == '{"a":1}\\xff'
    assert table[POSITION].to_pylist() == [str(number) for number in range(len(reasons))]


def test_many_bad_values_among_many() -> None:
    good = b'{"a":7,"at":"2026-01-02"}'
    values: list[bytes | None] = [good] * 4_000
    values[::37] = [b"oops"] * len(values[::37])
    values[5::101] = [b'{"a":1.5}'] * len(values[5::101])
    table = _decoded(values, a="int", at="date")
    expected = [value != good for value in values]
    assert [reason is not None for reason in table[REASON].to_pylist()] == expected
    assert table["a"].to_pylist() == [None if is_bad else 7 for is_bad in expected]


def test_dates_as_texts_and_numbers_in_one_block() -> None:
    values = [b'{"a":"2026-01-02","t":5}', b'{"a":20455,"t":"1970-01-01T00:00:05Z"}', b"{}", b'{"a":[]}']
    schema = pa.schema([("a", type_named("date")), ("t", type_named("timestamp"))])
    table = _table(values, JsonParser(schema, epoch="s"))
    assert table["a"].to_pylist() == [date(2026, 1, 2), date(2026, 1, 2), None, None]
    assert table["t"].to_pylist()[:2] == [datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)] * 2
    assert table[REASON].to_pylist() == [None, None, None, "column a: expected a number, found an array"]


@pytest.mark.parametrize(("epoch", "number"), [("s", 5), ("ms", 5_000), ("us", 5_000_000), ("ns", 5_000_000_999)])
def test_numbers_as_times(epoch: str, number: int) -> None:
    schema = pa.schema([("t", type_named("timestamp"))])
    table = _table([b'{"t":%d}' % number], JsonParser(schema, epoch=epoch))
    assert table["t"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)]


def test_unknown_members_are_bad_if_asked() -> None:
    schema = pa.schema([("a", type_named("int"))])
    table = _table([b'{"a":1}', b'{"a":1,"b":2}'], JsonParser(schema, unknown="bad"))
    assert table[REASON].to_pylist() == [None, "the value does not parse: unexpected field"]


def test_skipped_nulls_and_other_columns() -> None:
    messages = pa.table({"o": [1, 2], VALUE: pa.array([None, b"{}"], pa.binary()), POSITION: ["x", "y"]})
    table = DecodedWith(JsonParser(pa.schema([("a", pa.int32())])), skips_null=True)(messages)
    assert table.to_pylist() == [{"a": None, "o": 2, REASON: None, POSITION: "y", VALUE: None}]


def test_the_options_are_checked() -> None:
    with pytest.raises(InvalidConfigError, match="epoch = 'h': expected one of s, ms, us, ns"):
        JsonParser(pa.schema([]), epoch="h")
    with pytest.raises(InvalidConfigError, match="unknown = 'x': expected one of ignore, bad"):
        JsonParser(pa.schema([]), unknown="x")
    with pytest.raises(UnsupportedError, match=r"column 'a\.m': JSON values are not read as map"):
        JsonParser(pa.schema([("a", pa.struct([("m", pa.map_(pa.string(), pa.int32()))]))]))


def test_a_schema_is_inferred() -> None:
    values = pa.chunked_array(
        [[b'{"a":1,"d":"2026-01-01","e":null,"l":[],"s":{"x":1}}', b"oops", b'{"a":1.5,"n":true}']]
    )
    expected = {"a": "double", "d": "string", "e": "string", "l": "array<string>", "s": "struct<x: bigint>"}
    schema = pa.schema([(name, type_named(text)) for name, text in {**expected, "n": "boolean"}.items()])
    assert infer_schema(values) == schema
    table = _table(values.to_pylist(), JsonParser(schema))
    assert divided(table).rows["d"].to_pylist() == ["2026-01-01", None]
    with pytest.raises(SourceError, match="none of the first 1 values is a JSON object"):
        infer_schema(pa.chunked_array([[b"[]"]]))


def test_text() -> None:
    table = _table([b"a", b"\xff", None], TextForm())
    assert table["value"].to_pylist() == ["a", None, None]
    assert table[REASON].to_pylist() == [None, "the value is not UTF-8 text", "the message has no value (null)"]


def test_a_reason_is_one_short_line() -> None:
    assert reason_of(CorruptFileError("impossible", path="x")) == "x: impossible"
    assert reason_of(ValueError("first\nsecond")) == "first"


AVRO = {
    "type": "record",
    "name": "event",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ],
}


def test_avro_records() -> None:
    values = [_avro(1, "x"), None, _avro(2, None), b"\x01", b"", _avro(3, "y") + b"z", _avro(4, "w")]
    target = pa.schema([("id", pa.int64()), ("more", pa.int32()), ("d", pa.decimal128(10, 2)), ("name", pa.string())])
    table = _table(values, AvroForm(target, json.dumps(AVRO)))
    assert [reason is None for reason in table[REASON].to_pylist()] == [True, False, True, False, False, False, True]
    assert table["id"].to_pylist() == [1, None, 2, None, None, None, 4]
    assert table["name"].to_pylist() == ["x", None, None, None, None, None, "w"]
    assert table["d"].to_pylist()[0] == Decimal("1.50")


def test_avro_records_of_a_registry(registry: str) -> None:
    values = [b"\0\0\0\0\1" + _avro(1, "x"), b"\0\0\0\0\2" + _avro(2, "y"), b"x", b"\0\0\0\0\1" + _avro(3, "z")]
    table = _table(values, AvroForm(pa.schema([("id", pa.int64()), ("name", pa.string())]), registry=registry))
    assert table["id"].to_pylist() == [1, 2, None, 3]
    assert table[REASON].to_pylist()[2] == "expected a byte 0 and the id of a schema in front of an Avro record"
    assert "secret" not in repr(AvroForm(pa.schema([]), registry="http://u:secret@x"))
    with pytest.raises(SourceError, match=r"schema 9 cannot be read from the registry at 127.0.0.1:\d+/schemas/ids/9"):
        _table([b"\0\0\0\0\x09" + _avro(1, "x")], AvroForm(pa.schema([("id", pa.int64())]), registry=registry))


def test_the_password_of_a_registry_is_not_sent_to_another_host(registry: str) -> None:
    with pytest.raises(SourceError, match=r"schema 3 cannot be read from the registry at 127.0.0.1:\d+/.*404"):
        registered_schema(registry, 3)


@pytest.fixture
def registry() -> Iterator[str]:
    """The address of a server with the schemas 1 and 2, for a user with a password; 3 is at another host."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.path in ("/schemas/ids/1", "/schemas/ids/2")
            is_user = self.headers["Authorization"] == "Basic dXNlcjpzZWNyZXQ="
            if self.path == "/schemas/ids/3":
                self.send_response(307)
                self.send_header("Location", f"http://localhost:{server.server_port}/schemas/ids/1")
            else:
                self.send_response(200 if is_known and is_user else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"schema": json.dumps(AVRO)}).encode())

        def log_message(self, *args: Any) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://user:secret@127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _avro(number: int, name: str | None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), {"id": number, "name": name, "d": Decimal("1.5")})
    return out.getvalue()


def _decoded(values: list[bytes | None], **types: str) -> pa.Table:
    return _table(values, JsonParser(pa.schema([(name, type_named(text)) for name, text in types.items()])))


def _table(values: list[Any], form: Form) -> pa.Table:
    positions = [str(number) for number in range(len(values))]
    return DecodedWith(form)(pa.table({VALUE: pa.array(values, pa.binary()), POSITION: positions}))
