"""Avro messages of a real broker: in process and in Spark's workers the same rows."""

from __future__ import annotations

import io
import json
import uuid
from typing import TYPE_CHECKING

import fastavro

from hoodie.ingest.source import Request
from hoodie.ingest.sources.kafka import Kafka
from tests.support.kafka_broker import Broker
from tests.support.source_contract import arrow_of, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = {
    "type": "record",
    "name": "trip",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}, {"name": "city", "type": "string"}],
}


def test_avro_records(broker: Broker, spark: SparkSession) -> None:
    topic, expected = f"t{uuid.uuid4().hex[:8]}", rows(range(5))
    broker.create_topic(topic)
    for row in expected.to_pylist():
        raw = io.BytesIO()
        fastavro.schemaless_writer(raw, SCHEMA, row)
        broker.send(topic, [raw.getvalue()])
    source = Kafka(servers=broker.servers, topic=topic, format="avro", schema=json.dumps(SCHEMA))
    for session in (None, spark):
        batch = source.plan(Request(spark=session))
        assert batch is not None
        assert arrow_of(batch.read()).sort_by("id").to_pylist() == expected.to_pylist()
