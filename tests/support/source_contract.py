"""What every source of `hoodie.ingest` promises, as checks of a feed: rows are added, and flows read them.

tests/contract/test_ingest.py runs them for sources without a server, tests/ingest/test_contract.py for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import BadRowsError, HoodieError, SourceError
from hoodie.ingest.source import Decoded, Request, Source
from hoodie.table.sessions import is_spark, spark_room
from hoodie.timeline import forget_all
from tests.support.steps import once_at

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("city", pa.string())])


class Feed(Protocol):
    """A place where rows are added, and the source that reads them. A new source knows nothing of earlier ones."""

    def add(self, rows: pa.Table) -> None: ...
    def source(self) -> Source: ...


class FeedWithBadRows(Feed, Protocol):
    """A feed to which rows that cannot be decoded are added."""

    def add_bad(self, values: Sequence[str]) -> None: ...


def rows(numbers: range) -> pa.Table:
    """Rows with distinct keys."""
    found = [{"id": f"k{number:04}", "n": number, "city": ("sf", "nyc")[number % 2]} for number in numbers]
    return pa.Table.from_pylist(found, schema=SCHEMA)


@dataclass
class Ingested:
    """The table that flows of a feed write by inserts, so that a row that is written twice is there twice."""

    feed: Feed
    path: Path
    session: Any
    limit: int | None = None
    transform: str | None = None

    def __post_init__(self) -> None:
        hoodie.create(self.path, SCHEMA, record_key="id", partition_by="city", index="simple", spark=False)

    def run(self, **options: Any) -> hoodie.IngestResult:
        """Run a flow as a new process does."""
        return hoodie.ingest(
            self.feed.source(),
            self.path,
            operation="insert",
            limit=self.limit,
            transform=self.transform,
            schema=SCHEMA,
            spark=self.session or False,
            **options,
        )

    def numbers(self) -> list[int]:
        """The numbers of the rows, sorted."""
        found: list[int] = sorted(hoodie.open(self.path, spark=False).to_arrow("n")["n"].to_pylist())
        return found


def check_each_row_once(ingested: Ingested) -> None:
    """Rows are added between flows; each is written once, and the place moves on."""
    done, places = 0, []
    for count in (5, 0, 1, 7):
        if count:
            ingested.feed.add(rows(range(done, done + count)))
        done += count
        result = ingested.run()
        assert ingested.numbers() == list(range(done))
        assert (result.inserted, bool(result.batches)) == (count, count > 0)
        places.append(result.place)
    assert len({place for place in places if place}) == 3


def check_nothing_is_there(feed: Feed, session: Any) -> None:
    """A source without rows has no batch, or one without rows."""
    batch = feed.source().plan(Request(spark=session, schema=SCHEMA))
    if batch is not None:
        assert arrow_of(batch.read()).num_rows == 0


def check_limit(feed: Feed, session: Any, limit: int, most: int) -> None:
    """No batch has more than `most` rows, and what a batch leaves is in the next ones."""
    places, sizes, after = [], [], None
    while True:
        batch = feed.source().plan(Request(after=after, limit=limit, spark=session, schema=SCHEMA))
        if batch is None:
            break
        sizes.append(arrow_of(batch.read()).num_rows)
        places.append(after := batch.place)
    assert len(sizes) > 1
    assert max(sizes) <= most
    assert len(set(places)) == len(places)


def check_a_batch_is_the_same_again(feed: Feed, session: Any) -> None:
    """A batch that is planned and read again has the same rows, even if rows were added since."""
    batch = feed.source().plan(Request(spark=session, schema=SCHEMA))
    assert batch is not None
    first = arrow_of(batch.read()).sort_by("id")
    feed.add(rows(range(500, 503)))
    assert arrow_of(batch.read()).sort_by("id") == first


def check_deaths(ingested: Ingested, *, steps: Sequence[Step] = tuple(Step)) -> None:
    """A flow that dies at any step of a commit is started again: nothing is lost, nothing twice."""
    done = 0
    for step in steps:
        ingested.feed.add(rows(range(done, done + 3)))
        done += 3
        with pytest.raises(HoodieError, match="_DeadError"), once_at(step, _die):
            ingested.run()
        forget_all()
        ingested.run()
        assert ingested.numbers() == list(range(done)), step


class _DeadError(BaseException):
    """The process ends here."""


def _die() -> None:
    raise _DeadError


def check_bad_rows(ingested: Ingested, feed: FeedWithBadRows, bad_table: Path) -> None:
    """Bad rows refuse a batch, or are left out and counted, or stored with reason, position and value."""
    feed.add(rows(range(3)))
    feed.add_bad(["{no json", '{"id": "x", "n": "seven"}'])
    feed.add(rows(range(3, 5)))
    with pytest.raises(BadRowsError, match=r"2 rows of the batch cannot be used(?s:.*)no json"):
        ingested.run()
    assert ingested.numbers() == []
    result = ingested.run(bad_rows=str(bad_table))
    assert (result.bad_rows, ingested.numbers()) == (2, [0, 1, 2, 3, 4])
    found = hoodie.open(bad_table, spark=False).to_arrow(["value", "reason", "position"]).to_pylist()
    assert sorted(row["value"].strip() for row in found) == ['{"id": "x", "n": "seven"}', "{no json"]
    assert all(row["reason"] and row["position"] for row in found)


def check_a_place_of_another_source(feed: Feed, session: Any, wrong: str) -> None:
    """A place that the source cannot have made is refused."""
    with pytest.raises(SourceError):
        feed.source().plan(Request(after=wrong, spark=session, schema=SCHEMA))


def arrow_of(found: Any) -> pa.Table:
    """The rows that a batch read, as an Arrow table."""
    read = found.rows if isinstance(found, Decoded) else found
    if is_spark(read):
        read = spark_room().to_arrow(read)
    table = read.read_all() if isinstance(read, pa.RecordBatchReader) else read
    return table.select(SCHEMA.names)
