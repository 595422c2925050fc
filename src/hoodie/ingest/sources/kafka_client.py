"""Partitions, offsets and messages of a Kafka broker, read by `confluent-kafka` for the source `kafka`.

Messages of aborted transactions are not read. Nothing is committed to a consumer group.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SourceError
from hoodie.ingest.bad_rows import POSITION, VALUE
from hoodie.ingest.code import library

PARTITION: Final = "_hoodie_partition"
OFFSET: Final = "_hoodie_offset"
MESSAGE: Final = pa.schema(
    [(VALUE, pa.binary()), (POSITION, pa.string()), (PARTITION, pa.int32()), (OFFSET, pa.int64())]
)
METADATA: Final = pa.schema(
    [
        ("_hoodie_kafka_source_topic", pa.string()),
        ("_hoodie_kafka_source_partition", pa.int32()),
        ("_hoodie_kafka_source_offset", pa.int64()),
        ("_hoodie_kafka_source_timestamp", pa.int64()),
        ("_hoodie_kafka_source_key", pa.string()),
    ]
)
"""Columns that the option `metadata_columns` adds, mostly with the names of JVM Hudi; the timestamp in milliseconds."""
Range = tuple[int, int]
_MESSAGES_AT_ONCE: Final = 10_000
_POLL_SECONDS: Final = 0.1
_OWN: Final = ("bootstrap.servers", "group.id", "enable.auto.commit", "isolation.level", "auto.offset.reset")
_LOG: Final = logging.getLogger("hoodie.ingest.kafka")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Broker:
    """A topic of a Kafka cluster: addresses, options of librdkafka, and the longest wait for an answer."""

    servers: str
    topic: str
    options: Mapping[str, str] = field(repr=False)
    seconds_max: float

    def __post_init__(self) -> None:
        if own := sorted(set(self.options) & set(_OWN)):
            raise InvalidConfigError(f"kafka: options has {', '.join(own)}, which the source sets itself; remove it")

    def bounds(self) -> dict[int, Range]:
        """Return for each partition its earliest offset, and the offset behind the last message that can be read.

        Raises: SourceError if there is no such topic, or the broker does not answer in time.
        """
        admin, spec = self._admin(), _library().admin.OffsetSpec
        known = self._answer(lambda: admin.list_topics(self.topic, timeout=self.seconds_max))
        found = known.topics.get(self.topic)
        if found is None or found.error is not None or not found.partitions:
            why = "" if found is None or found.error is None else f": {found.error.str()}"
            raise SourceError(f"topic {self.topic!r} is not at {self.servers}{why}; create it, or correct the source")
        earliest = self._offsets(dict.fromkeys(found.partitions, spec.earliest()), admin)
        latest = self._offsets(dict.fromkeys(found.partitions, spec.latest()), admin)
        return {number: (earliest[number], latest[number]) for number in sorted(found.partitions)}

    def offsets_at(self, partitions: Mapping[int, Range], epoch_ms: int) -> dict[int, int]:
        """Return for each partition the offset of its first message at or after a time, or the end of the partition."""
        spec = _library().admin.OffsetSpec.for_timestamp(epoch_ms)
        found = self._offsets(dict.fromkeys(partitions, spec), self._admin())
        return {number: partitions[number][1] if offset < 0 else offset for number, offset in found.items()}

    def messages(self, ranges: Mapping[int, Range], *, metadata: bool) -> Iterator[pa.Table]:
        """Yield the messages of the ranges `[first, end)` in tables of at most 10,000 rows.

        The columns are those of `MESSAGE`, with `metadata` those of `METADATA` too. Offsets without a message (markers
        of transactions, compacted messages) are passed over.

        Raises: SourceError if offsets are gone, or nothing arrives for `seconds_max`.
        """
        left = {number: end for number, (first, end) in ranges.items() if first < end}
        if not left:
            return
        client = _library()
        consumer = client.Consumer(self._settings(), logger=_LOG)
        try:
            consumer.assign([client.TopicPartition(self.topic, number, ranges[number][0]) for number in left])
            deadline = time.monotonic() + self.seconds_max
            wanted = sum(end - ranges[number][0] for number, end in left.items())
            while left:
                found = self._consumed(consumer, left, ranges, wanted)
                if found is None:
                    if time.monotonic() > deadline:
                        wanted_ends = ", ".join(f"{number} up to {end}" for number, end in sorted(left.items()))
                        raise SourceError(
                            f"topic {self.topic!r} at {self.servers}: no message for {self.seconds_max:g} s; expected "
                            f"partitions {wanted_ends}"
                        )
                    continue
                deadline = time.monotonic() + self.seconds_max
                wanted -= len(found)
                if found:
                    yield _table(found, metadata=metadata)
        finally:
            consumer.close()

    def _consumed(
        self, consumer: Any, left: dict[int, int], ranges: Mapping[int, Range], wanted: int
    ) -> list[Any] | None:
        """Return the next messages of the ranges, about `wanted`; None if nothing arrived.

        Removes finished partitions from `left`.
        """
        client = _library()
        found = []
        passed = set()
        # The client waits until it has as many messages, or the time is over.
        most = min(_MESSAGES_AT_ONCE, max(wanted, 1))
        arrived = self._answer(lambda: consumer.consume(most, timeout=_POLL_SECONDS))
        is_news = False
        for message in arrived:
            error = message.error()
            if error is not None and error.code() != client.KafkaError._PARTITION_EOF:
                if error.code() in (client.KafkaError._TRANSPORT, client.KafkaError._ALL_BROKERS_DOWN):
                    continue  # The library connects again; the wait is limited.
                raise SourceError(self._failed(error, ranges))
            is_news = True
            number, offset = message.partition(), message.offset()
            end = ranges[number][1]
            if error is None and offset < end:
                found.append(message)
            if offset >= (end if error is not None else end - 1):
                passed.add(number)
        ended = [client.TopicPartition(self.topic, number) for number in passed if left.pop(number, None) is not None]
        if ended and left:
            consumer.pause(ended)
        return found if is_news else None

    def _offsets(self, specs: Mapping[int, Any], admin: Any) -> dict[int, int]:
        client = _library()
        wanted = {client.TopicPartition(self.topic, number): spec for number, spec in specs.items()}
        level, limit = client.IsolationLevel.READ_COMMITTED, self.seconds_max

        def ask() -> dict[int, int]:
            answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=limit)
            return {place.partition: one.result(limit + 1).offset for place, one in answers.items()}

        return self._answer(ask)

    def _admin(self) -> Any:
        """Return a client; it gives up its requests when it is freed."""
        settings = {"bootstrap.servers": self.servers, **self.options}
        return _library().admin.AdminClient(settings, logger=_LOG)

    def _settings(self) -> dict[str, Any]:
        return {
            # Batches of a topic with little traffic come at once.
            "fetch.wait.max.ms": 50,
            **self.options,
            "bootstrap.servers": self.servers,
            "group.id": f"hoodie-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }

    def _answer(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except _library().KafkaException as error:
            raise SourceError(self._failed(error.args[0], None)) from error
        except TimeoutError as error:
            raise SourceError(f"{self.servers} did not answer within {self.seconds_max:g} s") from error

    def _failed(self, error: Any, ranges: Mapping[int, Range] | None) -> str:
        codes = _library().KafkaError
        if error.code() in (codes.OFFSET_OUT_OF_RANGE, codes._AUTO_OFFSET_RESET) and ranges is not None:
            return (
                f"topic {self.topic!r}: messages of the batch {shown(ranges)} are gone since it was planned "
                "(retention, or the topic was deleted); the next batch names the offsets"
            )
        if error.code() in (codes._TRANSPORT, codes._TIMED_OUT, codes._ALL_BROKERS_DOWN):
            return f"no broker answers at {self.servers} within {self.seconds_max:g} s: {error.str()}"
        return f"topic {self.topic!r} at {self.servers}: {error.str()}"


def shown(ranges: Mapping[int, Range], most: int = 8) -> str:
    """Return ranges as a short text, such as `0: 5-9, 2: 0-4` with the first and the last offset."""
    parts = [f"{number}: {first}-{end - 1}" for number, (first, end) in sorted(ranges.items()) if first < end]
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _table(messages: list[Any], *, metadata: bool) -> pa.Table:
    topic = messages[0].topic()
    partitions = [message.partition() for message in messages]
    offsets = [message.offset() for message in messages]
    positions = [f"{topic}-{partition}:{offset}" for partition, offset in zip(partitions, offsets, strict=True)]
    columns = [[message.value() for message in messages], positions, partitions, offsets]
    if not metadata:
        return pa.table(columns, schema=MESSAGE)
    times = [message.timestamp()[1] for message in messages]
    keys = [None if (key := message.key()) is None else key.decode(errors="replace") for message in messages]
    columns += [[topic] * len(messages), partitions, offsets, times, keys]
    return pa.table(columns, schema=pa.schema([*MESSAGE, *METADATA]))


def _library() -> Any:
    """Return the module `confluent_kafka`. Raises: UnsupportedError if it is not installed."""
    advice = "the source kafka plans its batches by confluent-kafka, also with Spark: pip install 'hoodie[kafka]'"
    library("confluent_kafka.admin", advice)
    return library("confluent_kafka", advice)
