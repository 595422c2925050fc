"""The source `adbc` on SQLite: each row once, whole ties, nulls, types, and errors."""

from __future__ import annotations

import random
import sqlite3
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.adbc import Adbc

Make = Callable[..., Adbc]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a database with the table `t` and return its source."""

    def made(columns: str, rows: list[tuple[Any, ...]], **options: Any) -> Adbc:
        _fill(tmp_path / "a b.db", columns, rows)
        table = None if "query" in options else "t"
        return Adbc(uri=str(tmp_path / "a b.db"), table=table, **options)

    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the databases of a random test, which all have one name."""
    return tmp_path_factory.mktemp("sqlite")


def _fill(path: Path, columns: str, rows: list[tuple[Any, ...]]) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE IF EXISTS t")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"CREATE TABLE t ({columns})")
    for row in rows:
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
    connection.commit()
    connection.close()


def _execute(source: Adbc, sql: str) -> None:
    connection = sqlite3.connect(source.uri)
    connection.execute(sql)
    connection.commit()
    connection.close()


def _batches(source: Adbc, limit: int | None, after: str | None = None) -> list[tuple[Batch, pa.Table]]:
    found = []
    while (batch := source.plan(Request(after=after, limit=limit))) is not None:
        found.append((batch, batch.read().read_all()))
        after = batch.place
    return found


def test_a_full_read_is_one_batch(make: Make) -> None:
    source = make("id INTEGER, name TEXT", [(1, "a"), (2, None)])
    batch = source.plan(Request(limit=1))
    assert batch is not None
    assert (batch.place, batch.about) == ("", "t, all rows")
    assert batch.notes == ("t: a full read has no limit; all rows are read",)
    assert batch.read().read_all().to_pydict() == {"id": [1, 2], "name": ["a", None]}
    assert source.plan(Request(after="")) is None


def test_rows_of_equal_values_are_never_divided(make: Make) -> None:
    source = make("id INTEGER, v INTEGER", list(enumerate([1, 2, 2, 2, 3, 4])), column="v", counts_lag=True)
    found = _batches(source, 2)
    assert [table["v"].to_pylist() for _, table in found] == [[1, 2, 2, 2], [3, 4]]
    assert [batch.place for batch, _ in found] == ["2", "4"]
    assert [batch.lag_rows for batch, _ in found] == [2, 0]
    assert found[0][0].about == 't where "v" <= 2'


@given(
    st.lists(st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1, None])), max_size=30),
    st.integers(1, 7),
)
def test_each_row_is_read_once(folder: Path, values: list[int | None], limit: int) -> None:
    """The model is a sorted list: a batch ends where the value at the limit ends."""
    source = Adbc(uri=str(folder / "a.db"), table="t", column="v")
    _fill(folder / "a.db", "id INTEGER, v INTEGER", list(enumerate(values)))
    left = sorted((value, number) for number, value in enumerate(values) if value is not None)
    if values and not left:
        with pytest.raises(SourceError, match="NULL"):
            source.plan(Request(limit=limit))
        left = []
    after = None
    while left:
        bound = left[min(limit, len(left)) - 1][0]
        expected = [number for value, number in left if value <= bound]
        # Planned and read twice, as after a death.
        batch, again = (source.plan(Request(after=after, limit=limit)) for _ in range(2))
        assert batch is not None
        assert again is not None
        for one in (batch, batch, again):
            assert sorted(one.read().read_all()["id"].to_pylist()) == sorted(expected)
        assert again.place == batch.place
        after, left = batch.place, [row for row in left if row[0] > bound]
        assert after == str(bound)
    if after is not None:
        assert source.plan(Request(after=after, limit=limit)) is None


def test_floats_are_exact(make: Make) -> None:
    generator = random.Random(7)
    bits = (struct.unpack("d", generator.randbytes(8))[0] for _ in range(2000))
    values = sorted({v for v in bits if v == v and abs(v) != float("inf")} | {generator.random() for _ in range(500)})
    source = make("v REAL", [(value,) for value in values], column="v")
    found = _batches(source, 50)
    assert [len(table) for _, table in found[:-1]] == [50] * (len(found) - 1)
    assert sorted(value for _, table in found for value in table["v"].to_pylist()) == values


def test_texts_have_the_order_of_their_bytes(make: Make) -> None:
    values = ["", "A", "B", "a", "it's", "ä", "字", "a;b--"]
    source = make("v TEXT COLLATE NOCASE", [(value,) for value in values], column="V")
    found = [table["v"].to_pylist() for _, table in _batches(source, 1)]
    first, *others = sorted(values, key=str.encode)[1:]
    # A JVM job without an incremental column stores the empty text, so it cannot be a place.
    assert found == [["", first], *([value] for value in others)]
    with pytest.raises(SourceError, match="found the empty text only"):
        make("v TEXT", [("",)], column="v").plan(Request())


def test_the_empty_text_as_a_place_reads_from_the_begin(make: Make) -> None:
    """A JVM job without an incremental column stores the empty text."""
    source = make("v INTEGER", [(1,), (2,)], column="v")
    assert len(_batches(source, None, after="")[0][1]) == 2


def test_a_row_that_changes_is_read_again(make: Make) -> None:
    source = make("id INTEGER, v INTEGER", [(1, 1), (2, 2)], column="v")
    ((first, _),) = _batches(source, None)
    _execute(source, "UPDATE t SET v = 3 WHERE id = 1")
    ((_, table),) = _batches(source, None, after=first.place)
    assert table.to_pydict() == {"id": [1], "v": [3]}


def test_a_null_that_is_added_later_is_noted_or_refused(make: Make) -> None:
    noting = make("id INTEGER, v INTEGER", [(1, 1)], column="v")
    refusing = replace(noting, nulls="error")
    (first,) = [batch for batch, _ in _batches(noting, None)]
    assert first.notes == ()
    _execute(noting, "INSERT INTO t VALUES (2, NULL)")
    for source in (noting, refusing):
        assert source.plan(Request(after="1")) is None, "nothing is new, so nulls are not counted"
    _execute(noting, "INSERT INTO t VALUES (3, 2), (4, 3)")
    with pytest.raises(SourceError, match="found NULL in 1 rows"):
        refusing.plan(Request(after="1"))
    # Another process notes the nulls with its first batch; so does the second planning of that batch.
    other = replace(noting)
    look = other.plan(Request(after="2", is_look=True))
    assert look is not None
    assert look.notes == ("t, column v: 1 rows have NULL and are never read",)
    for after, is_noted in (("1", True), ("1", True), ("2", False), ("1", True)):
        batch = other.plan(Request(after=after, limit=1))
        assert batch is not None
        assert bool(batch.notes) is is_noted


def test_nulls_are_noted_once_or_refused(make: Make) -> None:
    rows = [(1, 1), (2, None), (3, 3)]
    found = _batches(make("id INTEGER, v INTEGER", rows, column="v"), 1)
    assert [batch.notes for batch, _ in found] == [("t, column v: 1 rows have NULL and are never read",), ()]
    with pytest.raises(SourceError, match="found NULL in 1 rows"):
        make("id INTEGER, v INTEGER", rows, column="v", nulls="error").plan(Request())
    with pytest.raises(SourceError, match="2 rows have NULL and are never read; no row has a value"):
        make("id INTEGER, v INTEGER", [(1, None), (2, None)], column="v").plan(Request())


def test_an_empty_table_has_no_batch(make: Make) -> None:
    source = make("id INTEGER, v TIMESTAMP", [], column="v")
    assert source.plan(Request()) is None
    assert source.plan(Request(after="5")) is None


def test_young_rows_wait(make: Make) -> None:
    source = make("v TIMESTAMP", [("2024-01-01 00:00:00",), ("2999-01-01 00:00:00",)], column="v", lag_seconds=5)
    ((batch, table),) = _batches(source, None)
    assert table["v"].to_pylist() == [batch.place] == ["2024-01-01 00:00:00"]
    with pytest.raises(InvalidConfigError, match="lag_seconds: expected a timestamp"):
        make("v INTEGER", [(1,)], column="v", lag_seconds=5).plan(Request())


def test_days_get_more_rows(make: Make) -> None:
    ((batch, _),) = _batches(make("v DATE", [("2024-01-01",)], column="v"), None)
    assert "rows that get the value 2024-01-01 from now on are never read" in batch.notes[0]


def test_values_of_two_types_are_refused(make: Make) -> None:
    with pytest.raises(UnsupportedError, match="expected numbers or texts, found integer and text"):
        make("v", [(1,), ("a",)], column="v").plan(Request())
    with pytest.raises(SourceError, match="expected an integer as the place to go on from, found 'x'"):
        make("v", [(1,)], column="v").plan(Request(after="x"))
    with pytest.raises(InvalidConfigError, match=r"columns of t \(v\): 'w'"):
        make("v", [(1,)], column="w").plan(Request())
    with pytest.raises(SourceError, match="the greatest value is inf"):
        make("v REAL", [(float("inf"),)], column="v").plan(Request())


def test_types_do_not_depend_on_the_rows(make: Make) -> None:
    columns = "i INTEGER, t VARCHAR(9), d DECIMAL(9, 2), r REAL, b BLOB, ts TIMESTAMP"
    full = make(columns, [(1, "a", 1.5, 1.5, b"x", "2024-01-01"), (1, "a", 2, 2, b"x", None)])
    expected = [pa.int64(), pa.string(), pa.float64(), pa.float64(), pa.binary(), pa.string()]
    ((_, table),) = _batches(full, None)[:1]
    assert table.schema.types == expected
    assert table["d"].to_pylist() == [1.5, 2.0]
    for rows in ([], [(None,) * 6], [(None, None, 3, None, None, None)]):
        batch = make(columns, rows).plan(Request())
        assert batch is not None
        assert batch.read().schema.types == expected
    given_types = pa.schema([("i", pa.int32())])
    batch = make("i, j", [(None, None)], query="SELECT i FROM t").plan(Request(schema=given_types))
    assert batch is not None
    assert batch.read().schema == given_types


def test_batches_of_the_driver_stream(make: Make) -> None:
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i FROM n"
    batch = make("i", [], query=query, column="i").plan(Request())
    assert batch is not None
    assert [found.num_rows for found in batch.read()] == [65536, 65536, 65536, 3392]
    # A reader that is left is closed.
    next(iter(batch.read()))


def test_a_late_value_of_another_type_is_an_error(make: Make) -> None:
    source = make("v", [(1,)] * 65536 + [("late",)])
    batch = source.plan(Request())
    assert batch is not None
    with pytest.raises(SourceError, match=r"t of .*: the database cannot be read"):
        batch.read().read_all()


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="SQLite's file must exist"):
        Adbc(uri=str(tmp_path / "none.db"), table="t").plan(Request())
    assert not (tmp_path / "none.db").exists()


def test_a_missing_driver_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'hoodie\[databases\]'"):
        make("v", []).plan(Request())
