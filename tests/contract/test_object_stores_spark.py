"""Tables in an object store from Spark: scans by Hadoop's connector, and Python workers where Spark has none.

No test has the JAR of hadoop-aws, which is 700 MB with Amazon's client. Hadoop's own `ViewFileSystemOverloadScheme`
takes its place: it serves the URIs of a bucket from a local copy of the bucket. docs/storage.md tells what was tried
with hadoop-aws.
"""

from __future__ import annotations

import urllib.request
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

import hoodie
from hoodie.spark import connectors
from hoodie.storage import open_store
from tests.contract.table_lanes import TRIPS, trips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect]
NO_CONNECTOR = "Spark has no connector for s3a://.*columns= and where=.*packages=org.apache.hadoop:hadoop-aws:3[.]"
CITY = "san p%20=é"
OVERLOADED = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
SECRET = "a-secret-of-this-test"


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The lane's session, as if it had read no table yet."""
    for known in ("_accesses", "_warned"):
        monkeypatch.setattr(connectors, known, WeakKeyDictionary())
    before = spark.conf.get("fs.s3a.impl", None)
    assert before is None
    yield spark
    spark.conf.unset("fs.s3a.impl")


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, str]:
    """The storage options of the test's table; moto's server takes any credentials."""
    return {**request.getfixturevalue("s3_options"), "aws_secret_access_key": SECRET}


@pytest.fixture(scope="module")
def path_of(s3_options: dict[str, str]) -> Callable[[str, str], str]:
    """Where the table of a kind for a purpose is: in a bucket of its own, as Hadoop keeps a client for each bucket."""

    @cache
    def made(purpose: str, kind: str) -> str:
        bucket = f"b{uuid.uuid4().hex}"
        urllib.request.urlopen(urllib.request.Request(f"{s3_options['aws_endpoint']}/{bucket}", method="PUT")).close()
        options = {**s3_options, "aws_secret_access_key": SECRET}
        choices: dict[str, Any] = {"record_key": "id", "ordering": "ts", "partition_by": "city", "type": kind}
        table = hoodie.create(f"s3://{bucket}/t", TRIPS, storage_options=options, spark=False, **choices)
        table.upsert(trips(*((f"k{n}", 1, float(n), CITY if n % 2 else "nyc") for n in range(40))))
        table.upsert(trips(("k1", 2, 100.0, CITY), ("k2", 2, 200.0, "nyc")))
        return table.path

    return made


@pytest.fixture
def open_table(
    session: SparkSession, options: dict[str, str], path_of: Callable[[str, str], str]
) -> Callable[..., hoodie.Table]:
    """Open the table with two commits for a purpose."""

    def opened(purpose: str, kind: str = "copy_on_write") -> hoodie.Table:
        return hoodie.open(path_of(purpose, kind), storage_options=options, spark=session)

    return opened


def fares(frame: Any) -> dict[str, float]:
    return {row["id"]: row["fare"] for row in frame.collect()}


KINDS = pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
EXPECTED = {f"k{n}": float(n) for n in range(40)} | {"k1": 100.0, "k2": 200.0}


@KINDS
def test_workers_read_where_spark_has_no_connector(open_table: Callable[..., hoodie.Table], kind: str) -> None:
    table = open_table("changes", kind)
    with pytest.warns(hoodie.HoodieWarning, match=NO_CONNECTOR):
        assert fares(table.read()) == EXPECTED
    # The session is told once: a second warning fails the test.
    assert fares(table.read(columns=["id", "fare"], where="fare >= 100")) == {"k1": 100.0, "k2": 200.0}
    assert fares(table.changes(since=min(table.history()["instant"].to_pylist()))) == {"k1": 100.0, "k2": 200.0}
    assert fares(table.read_keys(["k3", "none"])) == {"k3": 3.0}
    table.update({"fare": "fare + 1"}, where="id = 'k3'")
    table.delete_where("id = 'k4'")
    table.delete_where("fare > 38")
    left = EXPECTED | {"k3": 4.0}
    assert fares(table.read()) == {key: fare for key, fare in left.items() if key != "k4" and fare <= 38}


@pytest.mark.surface
def test_a_registered_session_loads_without_a_connector(
    open_table: Callable[..., hoodie.Table], session: SparkSession, options: dict[str, str]
) -> None:
    table = open_table("reads")
    hoodie.register(session)
    try:
        reader = session.read.format("hudi").options(**{f"storage.{name}": text for name, text in options.items()})
        with pytest.warns(hoodie.HoodieWarning, match=NO_CONNECTOR):
            assert fares(reader.load(table.path)) == EXPECTED
    finally:
        hoodie.unregister(session)


def mount(session: SparkSession, table: hoodie.Table, options: dict[str, str], folder: Path) -> None:
    """Give the session a connector for `s3a://` that serves a copy of the table."""
    store = open_store(table.path, options)
    for info in store.list("", recursive=True):
        (folder / info.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / info.path).write_bytes(store.read(info.path))
    bucket = table.path.split("/")[2]
    session.conf.set("fs.s3a.impl", OVERLOADED)
    session.conf.set(f"fs.viewfs.mounttable.{bucket}.link./t", folder.as_uri())


@KINDS
def test_spark_scans_by_a_connector(
    open_table: Callable[..., hoodie.Table],
    session: SparkSession,
    options: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    table = open_table("connector", kind)
    mount(session, table, options, tmp_path / "copy")
    frame = table.read(where="fare >= 2")
    assert fares(frame) == {key: fare for key, fare in EXPECTED.items() if fare >= 2}
    assert fares(table.read(columns=["id", "fare"], where=f"city = '{CITY}' and fare >= 100")) == {"k1": 100.0}
    frame.explain(True)
    plan = capsys.readouterr().out
    assert "FileScan parquet" in plan
    assert "s3a://" in plan
    assert SECRET not in plan


def test_workers_read_what_the_connector_does_not_open(
    open_table: Callable[..., hoodie.Table], session: SparkSession, tmp_path: Path
) -> None:
    table = open_table("elsewhere")
    session.conf.set("fs.s3a.impl", OVERLOADED)
    session.conf.set(f"fs.viewfs.mounttable.{table.path.split('/')[2]}.link./elsewhere", tmp_path.as_uri())
    with pytest.warns(hoodie.HoodieWarning, match="connector for s3a:// does not open s3a://.*/t, so that") as told:
        assert fares(table.read()) == EXPECTED
    assert SECRET not in str(told[0].message)
    assert "\n" not in str(told[0].message)


def test_credentials_reach_the_connector(open_table: Callable[..., hoodie.Table], session: SparkSession) -> None:
    """A server hides these settings of a session by their names; a classic session has them at the reader only."""
    table = open_table("reads")
    with pytest.warns(hoodie.HoodieWarning, match=NO_CONNECTOR):
        table.read(columns=["id"]).count()
    name = f"fs.s3a.bucket.{table.path.split('/')[2]}.secret.key"
    shown = {row[0]: row[1] for row in session.sql("SET").collect()}
    if ".connect." in type(session).__module__:
        assert "redacted" in shown[name]
    else:
        assert name not in shown
    assert SECRET not in str(shown)
