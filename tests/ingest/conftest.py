"""Fixtures of the lane of `hoodie.ingest`: a Kafka broker, and a Spark session with the connectors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka_broker import Broker, running_broker
from tests.support.sessions import open_classic_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker for all tests. Missing jars fail the lane; it never skips."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as found:
        yield found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session with Spark's Kafka connector and the JDBC driver of PostgreSQL."""
    folder = Path(os.environ.get("HOODIE_CONNECTOR_JARS", ""))
    jars = sorted(str(jar.resolve()) for jar in folder.glob("*.jar"))
    assert jars, f"HOODIE_CONNECTOR_JARS is '{folder}', not the folder of the connectors: `make lane-ingest`"
    session = open_classic_session(tmp_path_factory.mktemp("warehouse"), {"spark.jars": ",".join(jars)})
    yield session
    session.stop()
