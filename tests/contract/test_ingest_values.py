"""JSON values on Spark: `from_json` reads what the parser of this process reads, and refuses what it refuses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.ingest.bad_rows import POSITION, VALUE
from hoodie.ingest.json_on_spark import reads_alike
from hoodie.ingest.json_types import JsonParser
from hoodie.ingest.values import DecodedWith, decoded
from hoodie.records.sql.types import type_named
from tests.contract.table_lanes import Lane
from tests.unit.ingest.test_values import BAD, BROKEN, GOOD

pytestmark = [pytest.mark.spark, pytest.mark.connect]
KINDS = sorted({kind for kind, *_ in (*GOOD, *BAD)})
MESSAGES = pa.schema([(VALUE, pa.binary()), (POSITION, pa.string())])


def read(messages: Any, schema: pa.Schema, lane: Lane) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The good rows, and position and value of the bad ones."""
    found = decoded(messages, DecodedWith(JsonParser(schema)), MESSAGES, ())
    assert found.bad is not None
    good, bad = found.rows, found.bad.rows()
    if lane.session is not None:
        good = lane.arrow(good)
        assert found.bad.count() == bad.count()
        bad = lane.arrow(bad)
    key = ["position", "value"]
    assert all(bad["reason"].to_pylist())
    return sorted(good.to_pylist(), key=str), sorted(tuple(row[name] for name in key) for row in bad.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_is_read_as_in_process(spark_lane: Lane, kind: str) -> None:
    texts = [text for own, text, _ in (*GOOD, *BAD) if own == kind]
    if kind == "string":
        texts.remove("1")  # a number in a text column becomes text on Spark
    values: list[bytes | None] = [f'{{"n": {number}, "a": {text}}}'.encode() for number, text in enumerate(texts)]
    schema = pa.schema([("n", pa.int64()), ("a", type_named(kind))])
    check(spark_lane, schema, values)


def test_broken_messages_are_bad(spark_lane: Lane) -> None:
    schema = pa.schema([("a", pa.int64())])
    broken = [value for value in BROKEN if value != b'{"a":1,"a":2}']  # the last member of a name counts on Spark
    good = [b'{"a":1}', b' {"a": 2}\n', b'{"a":\n3}', b"{}", b'{"b":[1]}']
    assert reads_alike(schema, "4.0.1")
    check(spark_lane, schema, [*broken, b"null", None, *good])


def check(lane: Lane, schema: pa.Schema, values: list[bytes | None]) -> None:
    positions = [f"t-0:{number}" for number in range(len(values))]
    messages = pa.table({VALUE: pa.array(values, pa.binary()), POSITION: positions})
    here = read(messages, schema, Lane(None, lane.folder))
    assert read(lane.data(messages), schema, lane) == here
