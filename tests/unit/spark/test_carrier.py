"""Batches that Spark moves between its workers, in types that it has, and back."""

from __future__ import annotations

import datetime as dt
import pickle

import pyarrow as pa

from hoodie.spark.types import Carrier, arrow_schema_of

DAY, MOMENT = dt.time(1, 2, 3), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)
TYPES = {
    "fixed": (pa.binary(4), b"1234"),
    "millis": (pa.timestamp("ms", "UTC"), MOMENT),
    "local": (pa.timestamp("ms"), MOMENT.replace(tzinfo=None)),
    "time": (pa.time64("us"), DAY),
    "short_time": (pa.time32("ms"), DAY),
    "text": (pa.string(), "x"),
}
NESTED = pa.struct([pa.field(name, kind, nullable=name != "time") for name, (kind, _) in TYPES.items()])
VALUES = {name: value for name, (_, value) in TYPES.items()}
SCHEMA = pa.schema(
    [
        *((name, kind) for name, (kind, _) in TYPES.items()),
        ("st", NESTED),
        ("ls", pa.list_(pa.field("element", NESTED))),
        ("m", pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.time32("ms")))))),
    ]
)
ROWS = [
    {**VALUES, "st": VALUES, "ls": [VALUES, None], "m": [("a", [DAY, None]), ("b", None)]},
    dict.fromkeys(SCHEMA.names),
    {**VALUES, "st": {**VALUES, "text": None}, "ls": [], "m": []},
]


def test_batches_come_back_as_they_were() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    carrier = pickle.loads(pickle.dumps(Carrier(SCHEMA)))
    for found in (batch, batch.slice(1), batch.slice(2, 0)):
        sent = carrier.sent(found)
        sent.validate(full=True)
        assert sent.schema == arrow_schema_of(carrier.spark_schema)
        back = carrier.received(sent)
        assert (back.schema, back.to_pylist()) == (SCHEMA, found.to_pylist())


def test_batches_of_types_that_spark_has_are_not_copied() -> None:
    batch = pa.record_batch({"id": ["a"], "ts": pa.array([1], pa.timestamp("us", "UTC"))})
    carrier = Carrier(batch.schema)
    assert carrier.received(carrier.sent(batch)) is batch
