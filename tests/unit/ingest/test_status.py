"""The status of flows: place, last commit and lag, without a read of rows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import SourceError
from hoodie.ingest.flow import Flow, Pace, Start
from hoodie.ingest.runner import Runner
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.files import Files
from hoodie.ingest.sources.jdbc import Jdbc
from hoodie.ingest.status import age_text, status_of
from hoodie.ingest.target import Target
from tests.support.flows import CREATE, Numbers


def flow(folder: Path, source: Any, **target: Any) -> Flow:
    return Flow(name="a", source=source, target=Target(path=str(folder / "t"), **({"create": CREATE} | target)))


class Unread(Numbers):
    """Numbers whose batches cannot be read."""

    def plan(self, request: Request) -> Batch | None:
        batch = super().plan(request)
        if batch is None:
            return None

        def read() -> Any:
            raise AssertionError("the status reads no rows")

        return Batch(place=batch.place, read=read, about=batch.about, rows=batch.rows, lag_rows=batch.lag_rows)


def test_a_flow_that_never_ran(tmp_path: Path) -> None:
    found = status_of(flow(tmp_path, Unread(5)))
    assert (found.place, found.instant, found.is_current, found.lag_rows) == (None, None, False, 5)
    assert str(found).splitlines()[0] == "a: 5 rows behind"
    assert not (tmp_path / "t").exists()


def test_a_flow_that_is_behind_and_one_that_is_not(tmp_path: Path) -> None:
    (result,) = Runner(flows=[flow(tmp_path, Numbers(5))], pace=Pace(batches_max=1)).run()
    found = status_of(flow(tmp_path, Unread(5)), last_error="refused", last_error_at="2026-01-01T00:00:00+00:00")
    assert (found.place, found.instant, found.is_current) == ("2", result.instants[0], False)
    assert (found.lag_rows, found.about, found.problem) == (3, "numbers 2 to 3", None)
    assert found.committed_at is not None
    assert found.age_seconds is not None
    assert abs((datetime.now(UTC) - datetime.fromisoformat(found.committed_at)).total_seconds()) < 60
    assert -1 < found.age_seconds < 60
    assert "last error, 2026-01-01T00:00:00+00:00: refused" in str(found)
    current = status_of(flow(tmp_path, Unread(2)))
    assert (current.is_current, current.lag_rows, current.lag) == (True, 0, "up to date")


def test_a_lag_that_is_not_planned_is_not_known(tmp_path: Path) -> None:
    found = status_of(flow(tmp_path, Unread(5)), plans=False)
    assert (found.is_current, found.lag) == (None, "lag not known")


def test_a_source_that_fails_is_a_problem(tmp_path: Path) -> None:
    class Refused:
        def plan(self, request: Request) -> Batch | None:
            raise SourceError("no broker")

    Runner(flows=[flow(tmp_path, Numbers(2))]).run()
    found = status_of(flow(tmp_path, Refused()))
    assert (found.problem, found.place) == ("no broker", "2")
    missing = status_of(flow(tmp_path / "none", Numbers(2), create=None))
    assert "there is no table" in (missing.problem or "")


def test_the_lag_of_a_source_of_spark_is_not_known_without_it(tmp_path: Path) -> None:
    one = flow(tmp_path, Jdbc(url="jdbc:postgresql://db/x", table="t"))
    one.needs_spark = True
    found = status_of(one)
    assert (found.problem, found.is_current) == (None, None)
    assert "without Spark (--spark)" in found.notes[0]
    one.needs_spark = False
    assert "expected a Spark session" in (status_of(one).problem or "")


def test_a_status_is_a_look(tmp_path: Path) -> None:
    """The files of a batch that was committed by a process that died stay, and no list is written."""
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": "{number}", "city": "sf"}}\n')
        os.utime(tmp_path / "in" / f"{number}.json", (1_700_000_000 + number,) * 2)
    source = Files(path=str(tmp_path / "in"), after="delete")
    batch = source.plan(Request(limit=1))
    assert batch is not None
    batch.read()
    one = Flow(name="a", source=source, target=Target(path=str(tmp_path / "t"), create=CREATE))
    one.start = Start(place=batch.place)
    before = sorted((tmp_path / "in").iterdir())
    assert len(before) == 3
    assert "1 files of" in status_of(one).about
    assert sorted((tmp_path / "in").iterdir()) == before


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0 s"), (119, "119 s"), (864_000, "10 d"), (None, "")])
def test_ages(seconds: float | None, text: str) -> None:
    assert age_text(seconds) == text
