"""The source `kafka` against a real broker: in process, and by Spark's connector."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hoodie.errors import SourceError
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.sources import kafka
from hoodie.ingest.sources.kafka import Kafka
from tests.support.kafka_broker import Broker, running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[[Batch], Decoded]


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new topic with two partitions."""
    name = f"t{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def test_batches_begin_where_the_one_before_ended(broker: Broker, topic: str) -> None:
    broker.send(topic, _events(range(30)), 0)
    broker.send(topic, _events(range(100, 104)), 1)
    source = Kafka(servers=broker.servers, topic=topic)
    first = _planned(source, limit=20)
    assert (first.place, first.rows, first.lag_rows) == (f"{topic},0:16,1:4", 20, 14)
    second = _planned(source, after=first.place)
    assert (second.place, second.rows, second.lag_rows) == (f"{topic},0:30,1:4", 14, 0)
    assert _ids(first) == [*range(16), *range(100, 104)]
    assert _ids(second) == [*range(16, 30)]
    assert _ids(first) == [*range(16), *range(100, 104)], "a batch that is read again has the same rows"
    assert source.plan(Request(after=second.place)) is None


def test_a_batch_in_process_is_bounded_without_a_limit(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_MESSAGES_IN_PROCESS", 20)
    broker.send(topic, _events(range(30)), 0)
    source = Kafka(servers=broker.servers, topic=topic)
    first = _planned(source)
    assert (first.rows, first.lag_rows, _ids(first)) == (20, 10, [*range(20)])
    assert (_planned(source, limit=25).rows, _planned(source, spark=object()).rows) == (25, 30)


def test_the_flag_of_deletes_is_a_column_of_the_values(broker: Broker, topic: str) -> None:
    broker.send(topic, [b'{"id": 1}', b'{"id": 2, "_hoodie_is_deleted": true}'], 0)
    names = {"_hoodie_record_key": pa.string(), "id": pa.int64(), "_hoodie_is_deleted": pa.bool_()}
    rows = _planned(_source(broker, topic), schema=pa.schema(names.items())).read().rows
    assert rows["_hoodie_is_deleted"].to_pylist() == [None, True]
    assert "_hoodie_record_key" not in rows.column_names


def test_the_start_of_a_first_batch(broker: Broker, topic: str) -> None:
    for number in range(4):
        producer = broker.producer()
        producer.produce(topic, _events([number])[0], partition=0, timestamp=1_000_000 + number * 1000)
        producer.flush()
    assert _ids(_planned(_source(broker, topic, start={"0": 2}))) == [2, 3]
    assert _ids(_planned(_source(broker, topic, start=f"{topic},0:3,1:0"))) == [3]
    assert _ids(_planned(_source(broker, topic, start="1970-01-01T00:16:41Z"))) == [1, 2, 3]
    newest = _planned(_source(broker, topic, start="latest"))
    assert (newest.place, newest.rows) == (f"{topic},0:4,1:0", 0)
    assert newest.read().rows.num_rows == 0
    broker.send(topic, _events([9]), 1)
    assert _ids(_planned(_source(broker, topic, start="latest"), after=newest.place)) == [9]
    with pytest.raises(SourceError, match=r"expected offset 9, found the end at 4"):
        _planned(_source(broker, topic, start={"0": 9}))


def test_added_partitions_are_read_from_their_beginning(broker: Broker, topic: str) -> None:
    broker.send(topic, _events([1]))
    source = Kafka(servers=broker.servers, topic=topic)
    first = _planned(source)
    broker.add_partitions(topic, 3)
    broker.send(topic, _events([2]), 2)
    second = _planned(source, after=first.place)
    assert second.notes == (f"topic {topic}: new partitions, read from their beginning: 2",)
    assert (second.place, _ids(second)) == (f"{topic},0:1,1:0,2:1", [2])


def test_removed_offsets_are_named(broker: Broker, topic: str) -> None:
    broker.send(topic, _events(range(10)))
    source = Kafka(servers=broker.servers, topic=topic)
    first = _planned(source, limit=3)
    broker.delete_records(topic, {0: 7})
    with pytest.raises(SourceError, match=r"partition 0: expected offset 3, found 7 as the earliest: 4 offsets"):
        _planned(source, after=first.place)
    with pytest.raises(SourceError, match="gone since it was planned"):
        first.read()
    skipping = _planned(_source(broker, topic, gone="skip"), after=first.place)
    assert skipping.notes == (f"topic {topic}, partition 0: 4 offsets were removed before they were read: 3-6",)
    assert _ids(skipping) == [7, 8, 9]


def test_a_topic_that_is_gone_or_another_one(broker: Broker, topic: str) -> None:
    broker.send(topic, _events(range(10)))
    source = Kafka(servers=broker.servers, topic=topic)
    place = _planned(source).place
    with pytest.raises(SourceError, match="is of topic 'other', expected"):
        source.plan(Request(after="other,0:5"))
    broker.delete_topic(topic)
    with pytest.raises(SourceError, match=f"topic '{topic}' is not at 127.0.0.1"):
        source.plan(Request(after=place))
    broker.create_topic(topic, 1)
    with pytest.raises(SourceError, match=r"has no partition 1, which the place"):
        source.plan(Request(after=place))
    broker.add_partitions(topic, 2)
    broker.send(topic, _events(range(3)))
    with pytest.raises(SourceError, match=r"expected offset 10, found the end at 3: the topic was deleted"):
        source.plan(Request(after=place))


def test_aborted_transactions_are_not_read(broker: Broker, topic: str, spark: SparkSession) -> None:
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions(30)
    for number, commits in enumerate([True, False, True, False]):
        producer.begin_transaction()
        for event in _events([number, number + 10]):
            producer.produce(topic, event, partition=0)
        producer.flush()
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    producer.begin_transaction()
    producer.produce(topic, _events([99])[0], partition=0)
    producer.flush()
    batch = _planned(Kafka(servers=broker.servers, topic=topic))
    assert (batch.place, _ids(batch)) == (f"{topic},0:12,1:0", [0, 2, 10, 12]), "an open transaction is not read"
    assert _ids(_planned(Kafka(servers=broker.servers, topic=topic), spark=spark)) == [0, 2, 10, 12]
    for limit in (1, 2, 3, 5, 7):
        assert _ids_by_limit(Kafka(servers=broker.servers, topic=topic), limit) == [0, 2, 10, 12]
    producer.commit_transaction(30)
    assert _ids(_planned(Kafka(servers=broker.servers, topic=topic), after=batch.place)) == [99]


def test_spark_and_this_process_return_the_same_rows(broker: Broker, topic: str, spark: SparkSession) -> None:
    values = [*_events(range(50)), b"oops", b'{"id":"x"}', None, b'{"id":7,"at":"2026-01-02T03:04:05Z","d":1.25}']
    broker.send(topic, values, 0)
    broker.send(topic, [b'{"id":1,"d":1.255}', b'{"id":2,"tags":["a",null],"n":{"x":1}}'], 1)
    schema = {"id": "bigint", "at": "timestamp", "d": "decimal(10,2)", "tags": "array<string>", "n": "struct<x: int>"}
    for options in ({"schema": schema}, {}, {"format": "text"}, {"nulls": "skip"}):
        source = _source(broker, topic, metadata_columns=True, **options)
        here, there = _planned(source).read(), _planned(source, spark=spark).read()
        rows = there.rows.toArrow()
        assert _sorted(rows) == _sorted(here.rows), options
        assert here.bad is not None
        assert there.bad is not None
        assert there.bad.count() == here.bad.count()
        bad = there.bad.rows().toArrow()
        assert sorted(map(str, bad.to_pylist())) == sorted(map(str, here.bad.rows().to_pylist()))
        assert here.order == there.order


def test_bad_messages_have_their_position(broker: Broker, topic: str) -> None:
    broker.send(topic, [*_events([1]), b"oops", None])
    found = _planned(Kafka(servers=broker.servers, topic=topic)).read()
    assert found.bad.rows().to_pylist() == [
        {"reason": "the value does not parse: Invalid value", "position": f"{topic}-0:1", "value": "oops"},
        {"reason": "the message has no value (null)", "position": f"{topic}-0:2", "value": None},
    ]


def test_change_events(broker: Broker, topic: str, spark: SparkSession) -> None:
    row, later = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    events = [_change("c", None, row), _change("u", row, later), _change("d", later, None)]
    broker.send(topic, [*(json.dumps(event).encode() for event in events), None])
    source = _source(broker, topic, format="debezium", debezium_columns=["_event_lsn"])
    found = _planned(source).read()
    expected = [
        {"id": 1, "name": "a", "_event_lsn": 5, "_hoodie_is_deleted": False},
        {"id": 1, "name": "b", "_event_lsn": 5, "_hoodie_is_deleted": False},
        {"id": 1, "name": "b", "_event_lsn": 5, "_hoodie_is_deleted": True},
    ]
    assert found.rows.drop_columns(list(found.order)).to_pylist() == expected
    assert found.bad.count() == 0
    there = _planned(source, spark=spark).read().rows.toArrow()
    assert there.drop_columns(list(found.order)).to_pylist() == expected


def test_a_broker_that_is_killed(tmp_path: Path) -> None:
    with running_broker(tmp_path / "kafka") as own:
        own.create_topic("t")
        own.send("t", _events(range(5)))
        source = Kafka(servers=own.servers, topic="t", timeout_seconds=3)
        batch = _planned(source)
        own.kill()
        with pytest.raises(SourceError, match=r"127.0.0.1:\d+"):
            batch.read()
        with pytest.raises(SourceError, match=r"no broker answers at 127.0.0.1"):
            source.plan(Request(after=batch.place))
        own.start()
        assert _ids(batch) == [*range(5)]
        assert source.plan(Request(after=batch.place)) is None


def _source(broker: Broker, topic: str, **options: Any) -> Kafka:
    return Kafka(servers=broker.servers, topic=topic, **options)


def _planned(source: Kafka, **request: Any) -> Batch:
    batch = source.plan(Request(**request))
    assert batch is not None
    return batch


def _events(numbers: Any) -> list[bytes | None]:
    return [json.dumps({"id": number, "name": f"n{number}"}).encode() for number in numbers]


def _change(operation: str, before: Any, after: Any) -> dict[str, Any]:
    return {"payload": {"op": operation, "before": before, "after": after, "source": {"lsn": 5}, "ts_ms": 1}}


def _ids(batch: Batch) -> list[int]:
    rows = batch.read().rows
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    return sorted(table["id"].to_pylist())


def _ids_by_limit(source: Kafka, limit: int) -> list[int]:
    found: list[int] = []
    batch = source.plan(Request(limit=limit))
    while batch is not None:
        rows = batch.read().rows
        found += rows["id"].to_pylist() if rows.num_rows else []
        batch = source.plan(Request(limit=limit, after=batch.place))
    return sorted(found)


def _sorted(rows: pa.Table) -> list[dict[str, Any]]:
    ordered = rows.sort_by([("_hoodie_partition", "ascending"), ("_hoodie_offset", "ascending")])
    found: list[dict[str, Any]] = ordered.to_pylist()
    return found
