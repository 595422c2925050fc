"""The sources `function` and `query`, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SourceError, TableNotFoundError
from hoodie.ingest.source import Batch, Decoded, Request
from hoodie.ingest.sources.function import Function
from hoodie.ingest.sources.query import Query

ROWS = pa.table({"id": [1, 2]})


def named(request: Request) -> Any:
    """A function that the test names by its module."""
    return None if request.after == "2" else (ROWS, "2")


def test_what_a_function_may_return() -> None:
    source = Function(f"{__name__}:named")
    batch = source.plan(Request())
    assert batch is not None
    assert (batch.place, batch.rows, batch.read().num_rows, batch.about) == ("2", 2, 2, f"function {__name__}:named")
    assert source.plan(Request(after="2")) is None
    whole = Function(lambda request: ROWS).plan(Request())
    assert whole is not None
    assert whole.place == ""
    own = Batch(place="x", read=lambda: ROWS)
    assert Function(lambda request: own).plan(Request()) is own
    decoded = Function(lambda request: (Decoded(rows=ROWS, order=("id",)), "1")).plan(Request())
    assert decoded is not None
    assert decoded.read().order == ("id",)


@pytest.mark.parametrize("found", [5, "rows", (ROWS, 5), (None, "1"), (1, 2, 3)])
def test_other_results_are_refused(found: Any) -> None:
    with pytest.raises(SourceError, match="source function"):
        Function(lambda request: found).plan(Request())


def test_a_reader_is_read_once() -> None:
    batch = Function(lambda request: (ROWS.to_reader(), "1")).plan(Request())
    assert batch is not None
    assert batch.read().read_all().num_rows == 2
    with pytest.raises(SourceError, match="read once"):
        batch.read()


@pytest.mark.parametrize("call", ["nothing", "no.such:f", "os:nothing", "os:name", None])
def test_a_function_must_exist(call: Any) -> None:
    with pytest.raises(InvalidConfigError, match="source function, call"):
        Function(call)


def test_a_query_over_tables(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    hoodie.create(tmp_path / "trips", rows, record_key="id").upsert(rows)
    source = Query(
        "SELECT id, sum(n) AS n FROM trips GROUP BY id ORDER BY id;", tables={"trips": str(tmp_path / "trips")}
    )
    batch = source.plan(Request(after="ignored"))
    assert (batch.place, batch.about) == ("", "query SELECT id, sum(n) AS n FROM trips GROUP BY id ORDER BY id;")
    for _ in range(2):
        assert batch.read().read_all().to_pydict() == {"id": ["a", "b"], "n": [1, 2]}


def test_wrong_queries(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="expected a query"):
        Query(" ")
    with pytest.raises(InvalidConfigError, match="tables"):
        Query("SELECT 1", tables={"a": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidConfigError, match="nothing"):
        Query("SELECT * FROM nothing").plan(Request()).read()
    with pytest.raises(TableNotFoundError):
        Query("SELECT * FROM a", tables={"a": str(tmp_path)}).plan(Request()).read()
