"""Sources without a server keep what every source promises: in process and on Spark."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.ingest.source import Batch, Request, Source
from hoodie.ingest.sources.registry import source_of
from hoodie.storage import open_store
from tests.contract.table_lanes import Lane
from tests.support import source_contract as contract
from tests.support.source_contract import SCHEMA, Feed, Ingested


@dataclass
class FilesFeed:
    """Each addition is a file."""

    folder: Path
    format: str
    time_ns: int = field(default_factory=lambda: time.time_ns() - 10**13)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)

    def add(self, rows: pa.Table) -> None:
        file = self._next()
        if self.format == "parquet":
            pq.write_table(rows, file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
        os.utime(file, ns=(self.time_ns, self.time_ns))

    def add_bad(self, values: Sequence[str]) -> None:
        file = self._next()
        file.write_text("".join(f"{value}\n" for value in values))
        os.utime(file, ns=(self.time_ns, self.time_ns))

    def _next(self) -> Path:
        self.folder.mkdir(exist_ok=True)
        self.time_ns += 10**9
        return self.folder / f"{self.time_ns}.{self.format}"

    def source(self) -> Source:
        return source_of({"kind": "files", "path": str(self.folder), "format": self.format})


@dataclass
class BucketFeed:
    """Each addition is an object below a folder of S3; an object that was read moves to the archive."""

    folder: str
    options: dict[str, str]

    def add(self, rows: pa.Table) -> None:
        text = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
        open_store(self.folder, self.options).create(f"landing/{uuid.uuid4().hex}.json", text.encode())

    def source(self) -> Source:
        options = {"storage_options": self.options, "lag_seconds": 0, "after": "archive", "archive": "_done"}
        return source_of({"kind": "files", "path": f"{self.folder}/landing", "format": "json", **options})


@dataclass
class TableFeed:
    """Each addition is a commit of a Hudi table."""

    folder: Path

    def __post_init__(self) -> None:
        hoodie.create(self.folder, SCHEMA, record_key="id", partition_by="city", spark=False)

    def add(self, rows: pa.Table) -> None:
        hoodie.open(self.folder, spark=False).upsert(rows)

    def source(self) -> Source:
        return source_of({"kind": "hudi", "path": str(self.folder)})


@dataclass
class DatabaseFeed:
    """Rows of a table of SQLite, with a column that counts them."""

    file: Path

    def __post_init__(self) -> None:
        self._run("CREATE TABLE trips (id TEXT, n INTEGER, city TEXT)")

    def add(self, rows: pa.Table) -> None:
        with sqlite3.connect(self.file) as connection:
            connection.executemany("INSERT INTO trips VALUES (:id, :n, :city)", rows.to_pylist())
        connection.close()

    def _run(self, statement: str) -> None:
        with sqlite3.connect(self.file) as connection:
            connection.execute(statement)
        connection.close()

    def source(self) -> Source:
        return source_of({"kind": "adbc", "uri": str(self.file), "table": "trips", "column": "n"})


@dataclass
class OwnFeed:
    """A source of one's own, of rows in memory."""

    found: pa.Table = field(default_factory=SCHEMA.empty_table)

    def add(self, rows: pa.Table) -> None:
        self.found = pa.concat_tables([self.found, rows])

    def source(self) -> Source:
        return _OwnSource(self.found)


@dataclass
class _OwnSource:
    rows: pa.Table

    def plan(self, request: Request) -> Batch | None:
        try:
            first = int(request.after or 0)
        except ValueError as error:
            raise hoodie.SourceError(f"place {request.after!r}: expected a number") from error
        found = self.rows.slice(first, request.limit)
        if not found.num_rows:
            return None
        return Batch(place=str(first + found.num_rows), read=lambda: found, rows=found.num_rows)


FEEDS = ["files, json", "files, parquet", "hudi", "adbc", "own"]


def feed_of(name: str, folder: Path) -> Feed:
    if name.startswith("files"):
        return FilesFeed(folder / "landing", name.partition(", ")[2])
    if name == "hudi":
        return TableFeed(folder / "from")
    return DatabaseFeed(folder / "from.db") if name == "adbc" else OwnFeed()


@pytest.fixture(params=FEEDS)
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Feed:
    return feed_of(request.param, tmp_path)


@pytest.mark.parametrize("limit", [None, 2])
def test_each_row_is_written_once(feed: Feed, lane: Lane, tmp_path: Path, limit: int | None) -> None:
    contract.check_each_row_once(Ingested(feed, tmp_path / "to", lane.session, limit=limit))


def test_objects_of_a_bucket(s3_options: dict[str, str], s3_bucket: str, tmp_path: Path) -> None:
    feed = BucketFeed(f"s3://{s3_bucket}/{uuid.uuid4().hex}", s3_options)
    contract.check_each_row_once(Ingested(feed, tmp_path / "to", None))
    contract.check_deaths(Ingested(feed, tmp_path / "again", None), steps=(Step.BEGUN, Step.RECORDED))
    store = open_store(f"{feed.folder}/landing", s3_options)
    assert len(store.list("_done")) == 5
    assert not [name for name in store.names("") if name.endswith(".json")]


def test_a_source_without_rows(feed: Feed, lane: Lane) -> None:
    contract.check_nothing_is_there(feed, lane.session)


def test_a_limit(feed: Feed, lane: Lane) -> None:
    for first in range(0, 6, 2):
        feed.add(contract.rows(range(first, first + 2)))
    if isinstance(feed, TableFeed):
        _check_limit_of_commits(feed, lane)
    elif isinstance(feed, FilesFeed):
        contract.check_limit(feed, lane.session, limit=1, most=2)
    else:
        contract.check_limit(feed, lane.session, limit=3, most=3)


def _check_limit_of_commits(feed: TableFeed, lane: Lane) -> None:
    first = feed.source().plan(Request(spark=lane.session))
    assert first is not None
    for start in (6, 8):
        feed.add(contract.rows(range(start, start + 2)))
    after, sizes = first.place, []
    while (batch := feed.source().plan(Request(after=after, limit=1, spark=lane.session))) is not None:
        sizes.append(contract.arrow_of(batch.read()).num_rows)
        after = batch.place
    assert sizes == [2, 2]


def test_a_batch_is_the_same_again(feed: Feed, lane: Lane) -> None:
    feed.add(contract.rows(range(4)))
    contract.check_a_batch_is_the_same_again(feed, lane.session)


def test_a_flow_that_dies_at_any_step(feed: Feed, lane: Lane, tmp_path: Path) -> None:
    contract.check_deaths(Ingested(feed, tmp_path / "to", lane.session))


@pytest.mark.parametrize("wrong", ["events,0:5", "{}", "next"])
def test_a_place_of_another_source_is_refused(feed: Feed, lane: Lane, wrong: str) -> None:
    feed.add(contract.rows(range(2)))
    contract.check_a_place_of_another_source(feed, lane.session, wrong)


def test_bad_rows(lane: Lane, tmp_path: Path) -> None:
    feed = FilesFeed(tmp_path / "landing", "json")
    contract.check_bad_rows(Ingested(feed, tmp_path / "to", lane.session), feed, tmp_path / "bad")
