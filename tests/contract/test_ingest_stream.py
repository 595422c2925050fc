"""The source `stream`: what every source promises, with the batches of a query of Spark."""

from __future__ import annotations

import json
import shutil
import time
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SourceError, UnsupportedError
from hoodie.ingest.flow import Pace
from hoodie.ingest.job import job_of
from hoodie.ingest.runner import Runner
from hoodie.ingest.source import Batch, Request, Source
from hoodie.ingest.sources.registry import source_of
from tests.support import source_contract as contract
from tests.support.source_contract import SCHEMA, Ingested

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass
class StreamFeed:
    """Each addition is a JSON file, which Spark's file stream sends as a batch."""

    folder: Path
    files: int = 0

    def add(self, rows: pa.Table) -> None:
        landing = self.folder / "landing"
        landing.mkdir(exist_ok=True)
        self.files += 1
        text = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
        (landing / f".{self.files}.tmp").write_text(text)
        (landing / f".{self.files}.tmp").rename(landing / f"{self.files}.json")

    def source(self, checkpoint: str = "checkpoint") -> Source:
        (self.folder / "landing").mkdir(exist_ok=True)
        return source_of(
            {
                "kind": "stream",
                "format": "json",
                "path": str(self.folder / "landing"),
                "schema": "id string, n bigint, city string",
                "checkpoint": str(self.folder / checkpoint),
                "options": {"maxFilesPerTrigger": 1},
            }
        )


@pytest.fixture
def feed(tmp_path: Path) -> StreamFeed:
    return StreamFeed(tmp_path)


@pytest.fixture
def ingested(feed: StreamFeed, tmp_path: Path, spark: SparkSession) -> Ingested:
    return Ingested(feed, tmp_path / "to", spark)


def test_each_row_is_written_once(ingested: Ingested) -> None:
    contract.check_each_row_once(ingested)


def test_a_flow_that_dies_at_any_step(ingested: Ingested) -> None:
    contract.check_deaths(ingested)


def test_a_transform_and_an_error_in_it(ingested: Ingested, feed: StreamFeed) -> None:
    """The query holds a batch until the flow has committed it; a retry gets the same batch."""
    calls = []

    def fail_once(frame: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return frame

    ingested.transform = fail_once  # type: ignore[assignment]
    for first in (0, 3):
        feed.add(contract.rows(range(first, first + 3)))
    result = ingested.run(retries=1)
    assert (result.batches, len(calls), ingested.numbers()) == (2, 3, list(range(6)))


def test_the_same_batch_until_its_commit(feed: StreamFeed, spark: SparkSession) -> None:
    feed.add(contract.rows(range(4)))
    source = feed.source()
    batch = source.plan(Request(spark=spark, schema=SCHEMA))
    assert batch is not None
    contract_rows = contract.arrow_of(batch.read())
    feed.add(contract.rows(range(4, 6)))
    again = source.plan(Request(spark=spark, schema=SCHEMA))
    assert again is not None
    assert (again.place, contract.arrow_of(again.read())) == (batch.place, contract_rows)
    with pytest.raises(SourceError, match="another flow reads by the checkpoint"):
        feed.source().plan(Request(spark=spark, schema=SCHEMA))
    source.close()  # type: ignore[attr-defined]
    later = feed.source()
    sent = later.plan(Request(spark=spark, schema=SCHEMA))
    assert sent is not None
    assert sent.place == batch.place, "the batch was not committed, so that the query sends it again"
    later.close()  # type: ignore[attr-defined]


def test_other_checkpoints_are_found(ingested: Ingested, feed: StreamFeed, spark: SparkSession) -> None:
    feed.add(contract.rows(range(3)))
    ingested.run()
    with pytest.raises(SourceError, match="expected the checkpoint of the query that wrote the place"):
        hoodie.ingest(feed.source("other"), ingested.path, spark=spark)
    result = hoodie.ingest(feed.source("other"), ingested.path, spark=spark, ignore_checkpoint="anew")
    assert (result.inserted, result.updated) == (0, 3)
    feed.add(contract.rows(range(3, 4)))
    result = hoodie.ingest(
        feed.source("other"), ingested.path.with_name("new"), spark=spark, create={"record_key": "id"}
    )
    assert "does not send batches 0 to 0 again" in result.notes[0]
    assert result.inserted == 1


def test_a_batch_whose_end_spark_did_not_note(feed: StreamFeed, ingested: Ingested, spark: SparkSession) -> None:
    """A process that dies between the commit of the table and that of the query: the batch is not written again."""
    feed.add(contract.rows(range(3)))
    source = feed.source()

    class Forgets:
        def plan(self, request: Request) -> Batch | None:
            batch = source.plan(request)
            return None if batch is None else replace(batch, after_commit=None)

    hoodie.ingest(Forgets(), ingested.path, operation="insert", schema=SCHEMA, spark=spark, batches_max=1)
    source.close()  # type: ignore[attr-defined]
    feed.add(contract.rows(range(3, 5)))
    result = ingested.run()
    assert (result.batches, result.inserted, ingested.numbers()) == (1, 2, list(range(5)))


def test_an_older_copy_of_the_checkpoint(feed: StreamFeed, ingested: Ingested, spark: SparkSession) -> None:
    """It would give the numbers of written batches to other rows."""
    feed.add(contract.rows(range(1)))
    ingested.run()
    shutil.copytree(feed.folder / "checkpoint", feed.folder / "older")
    for number in (1, 2, 3):
        feed.add(contract.rows(range(number, number + 1)))
        ingested.run()
    shutil.rmtree(feed.folder / "checkpoint")
    (feed.folder / "older").rename(feed.folder / "checkpoint")
    feed.add(contract.rows(range(4, 5)))
    with pytest.raises(SourceError, match="the checkpoint is older than the table"):
        ingested.run()
    assert ingested.numbers() == [0, 1, 2, 3]


def test_a_run_ends_where_rows_never_end(tmp_path: Path, spark: SparkSession) -> None:
    """It takes what was there at its begin."""
    endless = {"kind": "stream", "format": "rate", "options": {"rowsPerSecond": 50}}
    source = source_of({**endless, "checkpoint": str(tmp_path / "checkpoint")})
    for _ in range(2):
        result = hoodie.ingest(
            source, tmp_path / "rates", spark=spark, create={"record_key": "value"}, transform="SELECT * FROM source"
        )
        assert result.batches <= 1
        time.sleep(1.1)  # the rows of a second
    assert result.inserted


def test_flows_with_one_checkpoint(feed: StreamFeed, tmp_path: Path, spark: SparkSession) -> None:
    """Of two flows that begin at once, one is refused, and no batch goes to the table of the other."""
    source = f'source = {{ kind = "stream", format = "json", path = "{tmp_path}/landing", checkpoint = "cp", '
    source += 'schema = "id string, n bigint, city string" }'
    flow = '[[flow]]\nname = "{0}"\n{1}\ntable = {{ path = "{0}", create = {{ record_key = "id" }} }}\n'
    text = "".join(flow.format(name, source) for name in ("one", "two"))
    job = job_of(tomllib.loads(text), folder=str(tmp_path), environment={})
    assert all(one.needs_spark for one in job.flows)
    job.use_session(spark)
    feed.add(contract.rows(range(5)))
    results = Runner(flows=job.flows, pace=Pace(threads=2)).run()
    assert sorted(result.inserted for result in results) == [0, 5]
    assert any("another flow reads by the checkpoint" in (result.error or "") for result in results)


def test_what_is_refused(feed: StreamFeed, ingested: Ingested, spark: SparkSession) -> None:
    limited = feed.source()
    feed.add(contract.rows(range(1)))
    batch = limited.plan(Request(spark=spark, limit=3))
    assert batch is not None
    assert any("limit=3 has no effect" in note for note in batch.notes)
    limited.close()  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedError, match="no preview"):
        hoodie.ingest(feed.source(), ingested.path, spark=spark, dry_run=True)
    with pytest.raises(SourceError, match=r"source stream, nowhere: .*nowhere"):
        source_of({"kind": "stream", "format": "nowhere", "checkpoint": "c"}).plan(Request(spark=spark))
    feed.add(contract.rows(range(1)))
    (feed.folder / "landing/1.json").write_text("[")
    broken = {"kind": "stream", "format": "json", "path": str(feed.folder / "landing")}
    source = source_of(
        {
            **broken,
            "schema": "id string, n bigint, city string",
            "checkpoint": str(feed.folder / "c"),
            "options": {"mode": "FAILFAST"},
        }
    )
    with pytest.raises(hoodie.HoodieError, match=r"(?i)failed_read_file|error while reading file|malformed"):
        hoodie.ingest(source, ingested.path, spark=spark)


@pytest.mark.connect(only=True)
def test_spark_connect(feed: StreamFeed, spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match=r"Spark Connect: use Table\.stream"):
        feed.source().plan(Request(spark=spark))
