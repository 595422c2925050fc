"""CREATE INDEX, DROP INDEX and SHOW INDEXES in process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, UnsupportedError
from tests.support.tables import new_table

ROWS = {"id": ["a", "b"], "fare": [1.0, 2.0]}


@pytest.fixture
def trips() -> hoodie.Table:
    return new_table(pa.table(ROWS).schema, ROWS, index="simple")


def run(trips: hoodie.Table, statement: str) -> Any:
    return hoodie.sql(None, statement, tables={"trips": trips})


def shown(trips: hoodie.Table) -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in run(trips, "SHOW INDEXES FROM trips").to_pylist()]


def test_the_life_of_a_record_index(trips: hoodie.Table) -> None:
    assert shown(trips) == []
    assert run(trips, "CREATE INDEX record_index ON trips (id)") is None
    assert shown(trips) == [("record_index", "record_index", "")]
    assert trips.index.verify().ok
    with pytest.raises(InvalidConfigError, match="has the index 'record_index' already"):
        run(trips, "CREATE INDEX record_index ON trips (id)")
    run(trips, "create index if not exists record_index on table trips using record_index(id);")
    run(trips, "DROP INDEX record_index ON trips")
    assert shown(trips) == []
    with pytest.raises(InvalidConfigError, match="has no index 'record_index'; it has none"):
        run(trips, "DROP INDEX record_index ON trips")
    run(trips, "DROP INDEX IF EXISTS record_index ON trips")


def test_statistics_are_shown_and_dropped(trips: hoodie.Table) -> None:
    trips.index.build("column_stats")
    assert shown(trips) == [("column_stats", "column_stats", "")]
    run(trips, "DROP INDEX column_stats ON trips")
    assert shown(trips) == []


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE INDEX i ON trips (fare)", UnsupportedError, "secondary and expression indexes are not built"),
        (
            "CREATE INDEX i ON trips USING column_stats(fare) OPTIONS (expr = 'abs')",
            UnsupportedError,
            r"build\(\"column_stats\", columns=\['fare'\]\)",
        ),
        ("CREATE INDEX i ON trips USING bloom_filters(id) OPTIONS (expr = 'lower')", UnsupportedError, "bloom_filters"),
        ("CREATE INDEX i ON trips USING magic(fare)", UnsupportedError, "magic"),
        ("CREATE INDEX record_index ON trips (absent)", InvalidConfigError, r"no columns \['absent'\]"),
        ("CREATE INDEX record_index ON absent (id)", InvalidConfigError, "no table 'absent'"),
        ("CREATE INDEX record_index ON trips (fare)", InvalidConfigError, r"record key, \(id\), found \(fare\)"),
        ("CREATE INDEX record_index ON trips (id, fare)", InvalidConfigError, r"found \(id, fare\)"),
        ("CREATE INDEX record_index ON trips ()", InvalidConfigError, r"found \(\)"),
        ("CREATE INDEX record_index ON trips (id) OPTIONS (a = 1)", UnsupportedError, r"found 'OPTIONS \(a = 1\)'"),
        ("CREATE INDEX record_index ON trips (id) garbage;", UnsupportedError, "found 'garbage'"),
    ],
)
def test_what_is_refused(trips: hoodie.Table, statement: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(trips, statement)
    assert shown(trips) == []


def test_options_of_the_call_are_refused(trips: hoodie.Table) -> None:
    given = {"hoodie.metadata.record.index.min.filegroup.count": "7"}
    with pytest.raises(InvalidConfigError, match=r"CREATE INDEX takes no properties=, found hoodie\.metadata\.record"):
        hoodie.sql(None, "CREATE INDEX record_index ON trips (id)", tables={"trips": trips}, properties=given)
    assert shown(trips) == []
