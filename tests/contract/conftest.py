"""The engines of the table contract: each test with the fixture `lane` runs once in process and once on Spark."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from tests.contract.table_lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

ENGINES = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.connect])]


@pytest.fixture(params=ENGINES)
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Lane:
    """The engine under test: this process, or the Spark session of the lane (classic, Connect, 3.5)."""
    return _lane(request, tmp_path)


@pytest.fixture(scope="module", params=ENGINES)
def shared_lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lane:
    """As `lane`, one for all tests of a module: for tables that tests only read."""
    return _lane(request, tmp_path_factory.mktemp("shared"))


@pytest.fixture
def spark_lane(spark: SparkSession, tmp_path: Path) -> Lane:
    """The Spark session of the lane as an engine."""
    return Lane(spark, tmp_path)


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Settings of an S3 server of moto's, in this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "aws_endpoint": f"http://{host}:{port}",
        "allow_http": "true",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_region": "us-east-1",
    }
    server.stop()


@pytest.fixture(scope="session")
def s3_bucket(s3_options: dict[str, str]) -> str:
    """A bucket of that server."""
    request = urllib.request.Request(f"{s3_options['aws_endpoint']}/tables", method="PUT")
    urllib.request.urlopen(request).close()
    return "tables"


@pytest.fixture
def has_data_sources(spark: SparkSession) -> None:
    """Skip on PySpark 3.5; `test_stream_source.py` and `test_stream_sink.py` have what hoodie says there."""
    if not hasattr(spark, "dataSource"):
        pytest.skip("PySpark 3.5 has no data sources in Python")


@pytest.fixture
def run(request: pytest.FixtureRequest, spark: SparkSession, has_data_sources: None) -> Iterator[Callable[..., Any]]:
    """`hoodie.sql`, or `spark.sql` of a registered session; tables `sqlt_…` are dropped after the test."""
    if request.param == "registered":
        hoodie.register(spark)
        yield spark.sql
        hoodie.unregister(spark)
    else:
        yield lambda text: hoodie.sql(spark, text)
    for row in spark.sql("SHOW TABLES").collect():
        if row["tableName"].startswith("sqlt_"):
            hoodie.sql(spark, f"DROP TABLE {row['tableName']} PURGE")


def _lane(request: pytest.FixtureRequest, folder: Path) -> Lane:
    return Lane(None if request.param == "local" else request.getfixturevalue("spark"), folder)
