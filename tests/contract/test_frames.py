"""Rows of a table in other libraries: streams of batches, pandas, Polars, DuckDB, datasets of pyarrow."""

from __future__ import annotations

import math
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from tests.support.rows import assert_same_rows
from tests.support.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("city", pa.string())])
ROWS = pa.table(
    {"id": [f"k{at:03}" for at in range(300)], "ts": [1] * 300, "n": range(300), "city": ["sf", "nyc", "la"] * 100},
    schema=SCHEMA,
)


@pytest.fixture(scope="module", params=["copy_on_write", "merge_on_read"])
def read_only(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hoodie.Table:
    """A table of three partitions, of which two rows were updated and one was deleted."""
    path = tmp_path_factory.mktemp("frames") / "trips"
    changed = {"id": ["k000", "k001"], "ts": [2, 2], "n": [None, 2**53 + 1], "city": ["sf", "nyc"]}
    made = new_table(SCHEMA, ROWS, changed, path=path, partition_by="city", ordering="ts", type=request.param)
    made.delete(["k002"])
    return made


@pytest.fixture
def trips(read_only: hoodie.Table, tmp_path: Path) -> hoodie.Table:
    """A copy of the table that the test may change."""
    shutil.copytree(read_only.path.removeprefix("file://"), tmp_path / "trips")
    return hoodie.open(tmp_path / "trips", spark=False)


def first_commit(table: hoodie.Table) -> str:
    return table.timeline.instants[0].requested_time


def test_a_stream_has_the_rows_of_to_arrow(read_only: hoodie.Table) -> None:
    assert_same_rows(read_only.to_batches().read_all(), read_only.to_arrow(), meta=True)
    batches = list(read_only.to_batches(["n", "id"], where="n > 10", batch_rows=7))
    assert max(batch.num_rows for batch in batches) == 7
    assert_same_rows(pa.Table.from_batches(batches), read_only.to_arrow(["n", "id"], where="n > 10"))
    past = read_only.to_batches(SCHEMA.names, as_of=first_commit(read_only)).read_all()
    assert_same_rows(past, ROWS)
    with pytest.raises(hoodie.InvalidConfigError, match="batch_rows=0"):
        read_only.to_batches(batch_rows=0)
    with pytest.raises(hoodie.SchemaMismatchError, match="not in the table"):
        read_only.to_batches("nothing")


def test_a_table_without_rows_is_an_empty_stream() -> None:
    table = new_table(SCHEMA)
    assert pa.table(table) == SCHEMA.empty_table()
    assert table.to_polars().collect().shape == (0, len(SCHEMA) + 5)
    assert table.to_duckdb().aggregate("count(*)").fetchall() == [(0,)]
    assert len(table.to_pandas()) == 0


def test_an_error_of_a_file_comes_while_the_stream_is_read(trips: hoodie.Table) -> None:
    reader = trips.to_batches()
    for file in Path(trips.path.removeprefix("file://")).glob("city=*/*.parquet"):
        os.truncate(file, 50)
    with pytest.raises(hoodie.CorruptFileError, match="expected a whole Parquet file"):
        reader.read_all()


def test_a_handle_is_a_stream_of_its_columns(read_only: hoodie.Table) -> None:
    trips = read_only  # the name that DuckDB finds in this function
    expected = trips.to_arrow(SCHEMA.names)
    assert_same_rows(pa.table(trips), expected)
    assert pl.DataFrame(trips).columns == SCHEMA.names
    sql: Any = duckdb.sql
    assert sql("SELECT count(*), max(n) FROM trips").fetchall() == [(299, 2**53 + 1)]
    copy = new_table(trips.schema)
    assert copy.upsert(trips).inserted == 299
    assert_same_rows(copy.to_arrow(SCHEMA.names), expected)


def test_pandas_keeps_the_values_of_integers_with_nulls(read_only: hoodie.Table) -> None:
    frame = read_only.to_pandas(["id", "n", "ts"], where="id < 'k005'").sort_values("id")
    assert frame["n"].tolist()[1:] == [2**53 + 1, 3, 4]
    assert (str(frame["n"].dtype), frame["ts"].dtype) == ("Int64", np.dtype("int64"))
    assert frame["n"].isna().tolist() == [True, False, False, False]


QUERIES: dict[str, Any] = {
    "SELECT count(*) FROM t": lambda t: t.select(pl.len()),
    "SELECT sum(n) FROM t WHERE city = 'sf' AND n < 100": lambda t: t.filter(
        (pl.col("city") == "sf") & (pl.col("n") < 100)
    ).select(pl.col("n").sum()),
    "SELECT n FROM t WHERE id IN ('k001', 'k007') ORDER BY n": lambda t: (
        t.filter(pl.col("id").is_in(["k001", "k007"])).select("n").sort("n")
    ),
    "SELECT count(*) FROM t WHERE n IS NULL OR n >= 298": lambda t: t.filter(
        pl.col("n").is_null() | (pl.col("n") >= 298)
    ).select(pl.len()),
    "SELECT city, count(*) FROM t GROUP BY city ORDER BY city": lambda t: t.group_by("city").len().sort("city"),
    "SELECT id FROM t WHERE id LIKE 'k29%' ORDER BY id": lambda t: (
        t.filter(pl.col("id").str.starts_with("k29")).select("id").sort("id")
    ),
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 5)": lambda t: t.head(5).select(pl.len()),
}


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb_and_polars_query_a_table(read_only: hoodie.Table, query: str) -> None:
    con: Any = duckdb.connect()
    con.register("t", read_only.to_arrow())
    expected = con.sql(query).fetchall()
    relation = read_only.to_duckdb()
    own: Any = duckdb.connect()
    read_only.to_duckdb(own).create_view("t")
    assert own.sql(query).fetchall() == expected
    assert QUERIES[query](read_only.to_polars()).collect().rows() == expected
    assert relation.columns == read_only.to_arrow().column_names


def test_a_query_reads_the_files_that_its_filter_leaves(trips: hoodie.Table) -> None:
    """Files of other partitions and file groups are gone, and nothing notices; other readers open all plain files."""
    folder = Path(trips.path.removeprefix("file://"))
    kept = trips.to_arrow("_hoodie_file_name", where="id = 'k003'")["_hoodie_file_name"][0].as_py()
    dataset, frame, relation = trips.to_dataset(), trips.to_polars(), trips.to_duckdb()
    by_us = "PYTHON" in frame.explain()
    for file in folder.glob("city=*/*"):
        if file.parent.name != f"city={ROWS['city'][3].as_py()}" and file.name != kept:
            file.unlink()
    where = pc.field("city") == ROWS["city"][3]
    assert dataset.count_rows(where & (pc.field("id") == "k003")) == 1
    if by_us:
        assert frame.filter((pl.col("city") == "sf") & (pl.col("id") == "k003")).collect().height == 1
        assert relation.filter("city = 'sf' AND id = 'k003'").project("n").fetchall() == [(3,)]
    with pytest.raises(hoodie.MissingFileError):
        dataset.to_table(filter=pc.field("city") == "nyc")


def test_a_dataset_is_a_snapshot_and_time_travels(trips: hoodie.Table) -> None:
    dataset = trips.to_dataset()
    before = dataset.count_rows()
    trips.delete(["k010", "k011"])
    assert (dataset.count_rows(), trips.to_dataset().count_rows()) == (before, before - 2)
    past = trips.to_dataset(as_of=first_commit(trips))
    assert past.to_table(["n"], filter=pc.field("id") == "k001").to_pylist() == [{"n": 1}]
    assert trips.to_polars(as_of=first_commit(trips)).select(pl.len()).collect().item() == 300
    assert past.head(3, ["id"]).num_rows == 3
    assert past.to_table([]).num_rows == 300
    assert trips.to_dataset(view="read_optimized").count_rows() <= 300


def test_what_a_dataset_has_not_is_refused_by_name(read_only: hoodie.Table) -> None:
    dataset: Any = read_only.to_dataset()
    for call in (dataset.get_fragments, lambda: dataset.take([0]), lambda: dataset.filter(pc.field("n") > 1)):
        with pytest.raises(hoodie.UnsupportedError, match="no fragments"):
            call()
    with pytest.raises(hoodie.UnsupportedError, match="no fragments"):
        _ = dataset.partition_expression
    with pytest.raises(hoodie.InvalidConfigError, match="columns: expected"):
        dataset.to_table({"m": pc.field("n")})
    with pytest.raises(hoodie.SchemaMismatchError, match="not in the table"):
        dataset.to_table(["nothing"])
    with pytest.raises(hoodie.SchemaMismatchError, match="expected an expression over"):
        dataset.to_table(filter=pc.field("nothing") == 1)
    with pytest.raises(hoodie.SchemaMismatchError, match="expected an expression over"):
        dataset.count_rows(pc.field("n") == "text")
    with pytest.raises(hoodie.UnsupportedError):
        pickle.dumps(dataset)


NAN = float("nan")
CONDITIONS: list[tuple[str, pl.Expr]] = [
    ("x > 5", pl.col("x") > 5),
    ("x >= 0", pl.col("x") >= 0),
    ("x < 0", pl.col("x") < 0),
    ("NOT (x >= 0)", ~(pl.col("x") >= 0)),
    ("NOT (x < 5)", ~(pl.col("x") < 5)),
    ("x = 'nan'::double", pl.col("x") == NAN),
    ("x >= 'nan'::double", pl.col("x") >= NAN),
    ("x <> 1", pl.col("x") != 1),
    ("x IN (1, 3)", pl.col("x").is_in([1.0, 3.0])),
    ("f > 2", pl.col("f") > 2),
    ("NOT (f < 2)", ~(pl.col("f") < 2)),
    ("p = '1' AND x > 5", (pl.col("p") == "1") & (pl.col("x") > 5)),
    ("p = '1' OR x > 5", (pl.col("p") == "1") | (pl.col("x") > 5)),
    ("x > 5 OR NULL", (pl.col("x") > 5) | pl.lit(None)),
    ("x = NULL", pl.col("x") == pl.lit(None)),
]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_nan_is_greater_than_all_numbers_in_polars_and_duckdb(tmp_path: Path, table_type: str) -> None:
    """Statistics of files do not count NaN: a file of them may not be left out, and no row of it."""
    parts: list[list[float | None]] = [
        [1.0, NAN, 3.0],
        [NAN, NAN],
        [0.5, 0.7],
        [-0.0, 0.0],
        [None, NAN],
        [-5.0, NAN],
        [math.inf, -math.inf, NAN],
    ]
    values = [(str(part), x) for part, found in enumerate(parts) for x in found]
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("x", pa.float64()), ("f", pa.float32())])
    rows = pa.Table.from_pylist([{"id": f"k{n}", "p": p, "x": x, "f": x} for n, (p, x) in enumerate(values)], schema)
    table = new_table(schema, rows, rows.slice(0, 4), path=tmp_path / "t", partition_by="p", type=table_type)
    assert ("PYTHON" in table.to_polars().explain()) == (table_type == "mor")
    frame: Any = pl.DataFrame(rows)
    con: Any = duckdb.connect()
    con.register("rows", rows)
    for text, condition in CONDITIONS:
        expected = sorted(frame.filter(condition)["id"])
        for engine in ("in-memory", "streaming"):
            assert sorted(table.to_polars().filter(condition).collect(engine=engine)["id"]) == expected, text
        told = con.sql(f"SELECT id FROM rows WHERE {text} ORDER BY id").fetchall()
        assert table.to_duckdb().filter(text).project("id").order("id").fetchall() == told, text
    assert table.to_polars().head(3).filter(pl.col("x") > 0).collect().height <= 3
    assert table.to_polars().filter(pl.col("x") > 0).head(3).collect().height == 3
