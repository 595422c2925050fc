"""Sources with a server keep what every source promises: Kafka in process and on Spark, JDBC, ADBC with PostgreSQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.ingest.source import Source
from hoodie.ingest.sources.registry import source_of
from tests.support import source_contract as contract
from tests.support.kafka_broker import Broker
from tests.support.postgres_server import PASSWORD, Postgres, running_postgres
from tests.support.source_contract import Feed, Ingested

FEEDS = ["kafka, in process", "kafka, spark", "jdbc, spark", "adbc, in process"]


@dataclass
class TopicFeed:
    """A topic with two partitions; each row is a message."""

    broker: Broker
    topic: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    numbers: int = 0

    def __post_init__(self) -> None:
        self.broker.create_topic(self.topic, 2)

    def add(self, rows: pa.Table) -> None:
        self._send([json.dumps(row) for row in rows.to_pylist()])

    def add_bad(self, values: Sequence[str]) -> None:
        self._send(values)

    def _send(self, values: Sequence[str]) -> None:
        for value in values:
            self.numbers += 1
            self.broker.send(self.topic, [value.encode()], self.numbers % 2)

    def source(self) -> Source:
        return source_of({"kind": "kafka", "servers": self.broker.servers, "topic": self.topic})


@dataclass
class ServerFeed:
    """A table of PostgreSQL, with a column that counts its rows."""

    server: Postgres
    kind: str

    def __post_init__(self) -> None:
        self.server.execute("DROP TABLE IF EXISTS fed; CREATE TABLE fed (id text, n bigint, city text)")

    def add(self, rows: pa.Table) -> None:
        values = [(row["id"], row["n"], row["city"]) for row in rows.to_pylist()]
        self.server.execute("INSERT INTO fed VALUES (%s, %s, %s)", values)

    def source(self) -> Source:
        read = {"table": "fed", "column": "n"}
        if self.kind == "adbc":
            return source_of({"kind": "adbc", "uri": self.server.uri, **read})
        options = {"url": self.server.jdbc_url, "user": "hoodie", "password": PASSWORD}
        return source_of({"kind": "jdbc", **options, **read})


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL of its own."""
    with running_postgres() as found:
        yield found


@pytest.fixture(params=FEEDS)
def fed(request: pytest.FixtureRequest) -> tuple[Feed, Any]:
    """A feed, and the session that reads it; None in process."""
    kind, _, engine = request.param.partition(", ")
    session = request.getfixturevalue("spark") if engine == "spark" else None
    if kind == "kafka":
        return TopicFeed(request.getfixturevalue("broker")), session
    return ServerFeed(request.getfixturevalue("server"), kind), session


def ingested(fed: tuple[Feed, Any], path: Path, limit: int | None = None) -> Ingested:
    """The table of a feed. Without a transform few messages would be read by this process, not by Spark."""
    transform = None if fed[1] is None else "SELECT * FROM source"
    return Ingested(fed[0], path, fed[1], limit=limit, transform=transform)


def test_each_row_is_written_once(fed: tuple[Feed, Any], tmp_path: Path) -> None:
    contract.check_each_row_once(ingested(fed, tmp_path / "to"))


def test_small_batches_write_each_row_once(fed: tuple[Feed, Any], tmp_path: Path) -> None:
    contract.check_each_row_once(ingested(fed, tmp_path / "to", limit=2))


def test_a_source_without_rows(fed: tuple[Feed, Any]) -> None:
    contract.check_nothing_is_there(*fed)


def test_a_limit(fed: tuple[Feed, Any]) -> None:
    fed[0].add(contract.rows(range(6)))
    contract.check_limit(*fed, limit=3, most=3)


def test_a_batch_is_the_same_again(fed: tuple[Feed, Any]) -> None:
    fed[0].add(contract.rows(range(4)))
    contract.check_a_batch_is_the_same_again(*fed)


def test_a_flow_that_dies_at_any_step(fed: tuple[Feed, Any], tmp_path: Path) -> None:
    contract.check_deaths(ingested(fed, tmp_path / "to"))


@pytest.mark.parametrize("wrong", ["other,0:5,1:0", "{}", "next"])
def test_a_place_of_another_source_is_refused(fed: tuple[Feed, Any], wrong: str) -> None:
    fed[0].add(contract.rows(range(2)))
    contract.check_a_place_of_another_source(*fed, wrong)


@pytest.mark.parametrize("engine", ["in process", "spark"])
def test_bad_rows(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path, engine: str) -> None:
    session = request.getfixturevalue("spark") if engine == "spark" else None
    feed = TopicFeed(broker)
    contract.check_bad_rows(ingested((feed, session), tmp_path / "to"), feed, tmp_path / "bad")
