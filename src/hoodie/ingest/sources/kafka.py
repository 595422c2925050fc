"""The source `kafka`: messages of a topic; a place is Hudi's Kafka checkpoint, such as `events,0:17,1:9`.

Batches are planned by `confluent-kafka`. In process it reads the messages too; with a session Spark's connector reads
them. Both read the same offsets and decode values by the same code (`ingest.values`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.ingest.avro_values import AvroForm, registered_id, registered_schema
from hoodie.ingest.bad_rows import POSITION, VALUE, divided
from hoodie.ingest.debezium import DebeziumForm, check_columns, infer_row_schema
from hoodie.ingest.json_on_spark import valid_text
from hoodie.ingest.json_types import SAMPLED_ROWS, JsonParser, infer_schema
from hoodie.ingest.options import check_types, require
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.sources.kafka_client import MESSAGE, METADATA, OFFSET, PARTITION, Broker, Range, shown
from hoodie.ingest.values import DecodedWith, Form, TextForm, decoded
from hoodie.records.change import IS_DELETED
from hoodie.records.sql.types import type_named

_ORDER: Final = (PARTITION, OFFSET)
_MESSAGES_IN_PROCESS: Final = 1_000_000
_MESSAGES_PER_TASK: Final = 200_000
_MESSAGES_ARE_FEW: Final = 2_000
"""So many messages are read by this process, also for Spark, if the flow takes Arrow data: a message can have 1 MB."""
_TASKS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """Messages of a topic as rows, in batches of offsets. docs/ingest/kafka.md: the keys.

    In process the rows of a batch are in memory: without a `limit` of the flow, it has at most 1,000,000 offsets.
    """

    servers: str
    topic: str
    format: Literal["json", "text", "avro", "debezium"] = "json"
    start: str | Mapping[str, Any] = "earliest"
    schema: str | Mapping[str, str] | None = None
    registry: str | None = field(default=None, repr=False)
    gone: Literal["error", "skip"] = "error"
    nulls: Literal["bad", "skip"] = "bad"
    unknown: str = "ignore"
    epoch: str | None = None
    debezium_columns: Sequence[str] = ()
    metadata_columns: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        check_types(self, "kafka: ")
        for name in ("servers", "topic"):
            require(bool(getattr(self, name)), f"kafka: {name}", "a text", getattr(self, name))
        require(self.timeout_seconds > 0, "kafka: timeout_seconds", "seconds above 0", self.timeout_seconds)
        for name, kind in (("debezium_columns", "debezium"), ("registry", "avro"), ("unknown", "json")):
            if self.format != kind and getattr(self, name) not in (None, "", (), [], "ignore"):
                raise InvalidConfigError(f"kafka: {name} needs format = {kind!r}")
        if self.format == "avro" and self.registry is None and not isinstance(self.schema, str):
            raise InvalidConfigError(
                "kafka: format = 'avro' needs schema, the text of the Avro schema of the values, or registry"
            )
        check_columns(tuple(self.debezium_columns))
        JsonParser(pa.schema([]), self.unknown, self.epoch)
        self._start()
        self._given_schema()
        self._broker()

    def plan(self, request: Request) -> Batch | None:
        """Return the messages behind a place, at most `request.limit`; None if there are none.

        Without a limit and a session: at most 1,000,000.

        A first batch with start = latest has no rows; its place is where the next batch begins.

        Raises: SourceError if no broker answers, the topic is gone or another one, or offsets are gone.
        """
        bounds = self._broker().bounds()
        notes: list[str] = []
        if request.after is None:
            first = self._first_offsets(bounds)
        else:
            first = self._offsets_behind(request.after, bounds, notes)
        first = {number: self._present(number, first[number], bounds[number], notes) for number in sorted(bounds)}
        left = {number: bounds[number][1] - first[number] for number in first}
        is_bounded = request.spark is None and request.limit is None
        chosen = fair_shares(left, _MESSAGES_IN_PROCESS if is_bounded else request.limit)
        ranges = {number: (first[number], first[number] + chosen[number]) for number in first}
        count, behind = sum(chosen.values()), sum(left.values()) - sum(chosen.values())
        is_small = request.takes_arrow and count <= _MESSAGES_ARE_FEW
        place = place_of(self.topic, {number: end for number, (_, end) in ranges.items()})
        is_start = request.after is None and self.start == "latest"
        if not count and not notes and not is_start:
            return None
        return Batch(
            place=place,
            read=lambda: self._read(ranges, replace(request, spark=None) if is_small else request),
            about=f"topic {self.topic}, {count:,} offsets{f': {shown(ranges)}' if count else ''}",
            rows=count,
            lag_rows=behind,
            notes=tuple(notes),
        )

    def _offsets_behind(self, place: str, bounds: Mapping[int, Range], notes: list[str]) -> dict[int, int]:
        topic, offsets = parse_place(place)
        if topic != self.topic:
            raise SourceError(
                f"the place {place!r} is of topic {topic!r}, expected {self.topic!r}: correct the source, or start the "
                "flow anew"
            )
        if lost := sorted(set(offsets) - set(bounds)):
            raise SourceError(
                f"topic {topic!r} has no partition {', '.join(map(str, lost))}, which the place {place!r} has: the "
                "topic was deleted and created again; start the flow anew"
            )
        if added := sorted(set(bounds) - set(offsets)):
            notes.append(f"topic {topic}: new partitions, read from their beginning: {', '.join(map(str, added))}")
        return {number: offsets.get(number, low) for number, (low, _) in bounds.items()}

    def _first_offsets(self, bounds: Mapping[int, Range]) -> dict[int, int]:
        offsets = self._start()
        if offsets is None:
            return {number: both[self.start == "latest"] for number, both in bounds.items()}
        if isinstance(offsets, datetime):
            return self._broker().offsets_at(bounds, int(offsets.timestamp() * 1000))
        if unknown := sorted(set(offsets) - set(bounds)):
            raise SourceError(
                f"topic {self.topic!r} has no partition {', '.join(map(str, unknown))}, which start names"
            )
        return {number: offsets.get(number, low) for number, (low, _) in bounds.items()}

    def _present(self, number: int, wanted: int, bounds: Range, notes: list[str]) -> int:
        """Return the offset to read from. Raises: SourceError if the partition does not have it."""
        low, end = bounds
        where = f"topic {self.topic}, partition {number}"
        if wanted > end:
            raise SourceError(
                f"{where}: expected offset {wanted:,}, found the end at {end:,}: the topic was deleted and created "
                "again, or lost messages; start the flow anew"
            )
        if wanted >= low:
            return wanted
        if self.gone == "error":
            raise SourceError(
                f"{where}: expected offset {wanted:,}, found {low:,} as the earliest: {low - wanted:,} offsets were "
                "removed (retention); gone = 'skip' goes on without them"
            )
        notes.append(f"{where}: {low - wanted:,} offsets were removed before they were read: {wanted:,}-{low - 1:,}")
        return low

    def _read(self, ranges: Mapping[int, Range], request: Request) -> Decoded:
        form, ties = self._form(ranges, request), self.format == "debezium"
        has_no_rows = form is None
        work = DecodedWith(form or JsonParser(pa.schema([])), skips_null=ties or self.nulls == "skip")
        if request.spark is None or has_no_rows:
            messages = self._broker().messages(ranges, metadata=self.metadata_columns)
            # Each piece is decoded as it arrives, so the raw values of one piece are in memory.
            pieces = [work(piece) for piece in messages] or [work.schema_for(self._columns()).empty_table()]
            return replace(divided(pa.concat_tables(pieces), _ORDER), deletes_tie=ties, has_no_rows=has_no_rows)
        found = decoded(self._spark_messages(request.spark, ranges), work, self._columns(), _ORDER)
        return replace(found, deletes_tie=ties)

    def _columns(self) -> pa.Schema:
        return pa.schema([*MESSAGE, *(METADATA if self.metadata_columns else ())])

    def _spark_messages(self, session: Any, ranges: Mapping[int, Range]) -> Any:
        count = sum(end - first for first, end in ranges.values())
        read = {
            "kafka.bootstrap.servers": self.servers,
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({self.topic: sorted(ranges)}),
            "startingOffsets": json.dumps({self.topic: {str(n): first for n, (first, _) in ranges.items()}}),
            "endingOffsets": json.dumps({self.topic: {str(n): end for n, (_, end) in ranges.items()}}),
            "failOnDataLoss": "true",
            "minPartitions": str(max(len(ranges), min(count // _MESSAGES_PER_TASK, _TASKS_MAX))),
            **{f"kafka.{name}": value for name, value in java_options(self.options).items()},
        }
        try:
            frame = session.read.format("kafka").options(**read).load()
        except Exception as error:
            if "kafka" not in str(error) or "find" not in str(error):
                raise
            raise UnsupportedError(
                "the session lacks Spark's Kafka connector: start it with spark.jars.packages="
                f"org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}"
            ) from error
        columns = [
            f"value AS {VALUE}",
            f"concat(topic, '-', partition, ':', offset) AS {POSITION}",
            f"partition AS {PARTITION}",
            f"offset AS {OFFSET}",
        ]
        if self.metadata_columns:
            kept = ("topic", "partition", "offset", "unix_millis(timestamp)", valid_text("key", session.version))
            columns += [f"{text} AS {name}" for text, name in zip(kept, METADATA.names, strict=True)]
        return frame.selectExpr(*columns)

    def _form(self, ranges: Mapping[int, Range], request: Request) -> Form | None:
        """Return how the values of a batch are decoded; reads the first messages if that depends on them.

        Returns None if it does, and no message of the batch has a value.
        """
        if self.format == "text":
            return TextForm()
        # The text of an Avro schema has the columns of the values; the columns of a table win over it.
        writer = self.schema if self.format == "avro" and isinstance(self.schema, str) else None
        given = self._given_schema()
        schema = None if writer else given
        if not schema and request.schema is not None:
            # Of the columns of Hudi, values have its flag only.
            known = [one for one in request.schema if one.name == IS_DELETED or not one.name.startswith("_hoodie_")]
            schema = pa.schema(known)
        if schema is None:
            schema = given if writer else self._schema_of_values(self._sample(ranges))
        if schema is None:
            return None
        if self.format == "avro":
            return AvroForm(schema, writer, self.registry)
        if self.format == "debezium":
            extra = tuple(self.debezium_columns)
            return DebeziumForm(schema, extra, self.epoch, keys=request.keys, deletes_by=request.deletes_by)
        return JsonParser(schema, self.unknown, self.epoch)

    def _schema_of_values(self, sample: pa.ChunkedArray) -> pa.Schema | None:
        """Return the columns of the first values of a batch; None if there are no values."""
        if not len(sample):
            return None
        if self.registry is not None:
            return _schema_of_avro(registered_schema(self.registry, registered_id(sample[0].as_py())))
        return infer_row_schema(sample) if self.format == "debezium" else infer_schema(sample)

    def _sample(self, ranges: Mapping[int, Range]) -> pa.ChunkedArray:
        """Return the values of the first messages of the batch, about 1,000, divided over the partitions.

        If they have no value, as in an aborted transaction, the values of later messages; empty if there are none.
        """
        present = {number: both for number, both in ranges.items() if both[0] < both[1]}
        share = max(SAMPLED_ROWS // max(len(present), 1), 1)
        first = {number: (low, min(low + share, end)) for number, (low, end) in present.items()}
        pieces = [MESSAGE.empty_table(), *self._broker().messages(first, metadata=False)]
        found = pa.concat_tables(pieces).sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")])[VALUE].drop_null()
        if len(found) or first == present:
            return found
        later = self._broker().messages(present, metadata=False)
        return next((piece[VALUE].drop_null() for piece in later if piece[VALUE].null_count < len(piece)), found)

    def _given_schema(self) -> pa.Schema | None:
        if isinstance(self.schema, str):
            return _schema_of_avro(self.schema)
        if self.schema is None:
            return None
        expected = "columns and their types, or the text of an Avro schema"
        require(bool(self.schema), "kafka: schema", expected, self.schema)
        return pa.schema([(name, type_named(text)) for name, text in self.schema.items()])

    def _start(self) -> dict[int, int] | datetime | None:
        """Return the offsets or the time of `start`; None for a word. Raises: InvalidConfigError."""
        if self.start in ("earliest", "latest"):
            return None
        try:
            if isinstance(self.start, Mapping):
                return {int(number): int(offset) for number, offset in self.start.items()}
            if "," not in self.start:
                moment = datetime.fromisoformat(self.start)
                return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (TypeError, ValueError) as error:
            raise InvalidConfigError(
                f"kafka: start = {self.start!r}: expected earliest, latest, a time such as 2026-01-31T12:00:00Z, or "
                "offsets such as {'0': 17, '1': 9}"
            ) from error
        topic, offsets = parse_place(self.start)
        if topic != self.topic:
            raise InvalidConfigError(f"kafka: start is of topic {topic!r}, expected {self.topic!r}")
        return offsets

    def _broker(self) -> Broker:
        options = {name: str(value) for name, value in self.options.items()}
        return Broker(self.servers, self.topic, options, self.timeout_seconds)


def _schema_of_avro(text: str) -> pa.Schema:
    return avro_to_arrow(text, path="the Avro schema")


def place_of(topic: str, offsets: Mapping[int, int]) -> str:
    """Return Hudi's Kafka checkpoint.

    >>> place_of("events", {1: 9, 0: 17})
    'events,0:17,1:9'
    """
    return ",".join([topic, *(f"{number}:{offset}" for number, offset in sorted(offsets.items()))])


def parse_place(place: str) -> tuple[str, dict[int, int]]:
    """Return the topic and the offsets of a checkpoint. Raises: SourceError for text of another form.

    >>> parse_place("events,0:17,1:9")
    ('events', {0: 17, 1: 9})
    """
    topic, *parts = place.split(",")
    try:
        offsets = {int(number): int(offset) for number, _, offset in (part.partition(":") for part in parts)}
    except ValueError:
        offsets = {}
    if not topic or len(offsets) != len(parts) or not parts:
        raise SourceError(f"the place {place[:200]!r} is no place in Kafka: expected such as 'events,0:17,1:9'")
    return topic, offsets


def fair_shares(left: Mapping[int, int], limit: int | None) -> dict[int, int]:
    """Divide a number of messages over partitions: equal shares, and what small partitions leave goes to the others.

    >>> fair_shares({0: 2, 1: 100, 2: 100}, 20)
    {0: 2, 1: 9, 2: 9}
    """
    if limit is None or sum(left.values()) <= limit:
        return dict(left)
    shares = {}
    rest, open_count = limit, len(left)
    for number, count in sorted(left.items(), key=lambda item: (item[1], item[0])):
        shares[number] = min(count, rest // open_count)
        rest, open_count = rest - shares[number], open_count - 1
    return {number: shares[number] for number in left}


def java_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options of librdkafka by the names of Kafka's Java client, which Spark uses.

    >>> java_options({"sasl.mechanisms": "PLAIN", "ssl.ca.location": "ca.pem"})
    {'sasl.mechanism': 'PLAIN', 'ssl.truststore.location': 'ca.pem', 'ssl.truststore.type': 'PEM'}
    """
    found = {name: str(value) for name, value in options.items()}
    if "sasl.mechanisms" in found:
        found["sasl.mechanism"] = found.pop("sasl.mechanisms")
    if "ssl.ca.location" in found:
        found |= {"ssl.truststore.location": found.pop("ssl.ca.location"), "ssl.truststore.type": "PEM"}
    if "sasl.username" in found:
        user, password = (json.dumps(found.pop(f"sasl.{part}", "")) for part in ("username", "password"))
        module = "scram.ScramLoginModule" if "SCRAM" in found.get("sasl.mechanism", "") else "plain.PlainLoginModule"
        found["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required username={user} password={password};"
        )
    return found
