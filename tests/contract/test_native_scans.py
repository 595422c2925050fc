"""DuckDB and Polars read plain files themselves: the rows, types and errors are those of our own batches.

The dataset of a table is the other way: it reads all slices itself, and both libraries take its rows.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.read.native_scan import reader_options
from hoodie.storage import StoreSpec
from tests.support.altered import Columns, alter
from tests.support.tables import new_table

UTC = dt.UTC
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [None, -(2**31), 0, 3, 2**31 - 1]),
    "n": (pa.int64(), [None, -(2**63), 2**53 + 1, 2**63 - 1]),
    "f": (pa.float64(), [None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1.5, 1e300]),
    "g": (pa.float32(), [None, float("nan"), -0.0, 0.5, 7.0]),
    "s": (pa.string(), [None, "", "ab", "é", "\U0001f600", "x" * 5000]),
    "y": (pa.binary(), [None, b"", b"\x00", b"\xff\xfe"]),
    "x": (pa.binary(3), [None, b"abc", b"\xff\x00\x80"]),
    "b": (pa.bool_(), [None, True, False]),
    "d": (pa.decimal128(30, 3), [None, Decimal("-1.250"), Decimal("123456789012345678901234567.125")]),
    "e": (pa.decimal128(7, 2), [None, Decimal("-99999.99"), Decimal("0.01")]),
    "day": (pa.date32(), [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "t": (
        pa.timestamp("us", "UTC"),
        [None, dt.datetime(1901, 1, 1, tzinfo=UTC), dt.datetime(2026, 3, 29, 1, tzinfo=UTC)],
    ),
    "u": (pa.timestamp("us"), [None, dt.datetime(1800, 1, 1, 1, 2, 3, 4), dt.datetime(2026, 3, 29, 2, 30)]),
    "m": (pa.timestamp("ms"), [None, dt.datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    "l": (pa.list_(pa.string()), [None, [], [None, "a"], ["", "b"]]),
    "h": (pa.map_(pa.string(), pa.int64()), [None, [], [("a", None), ("b", 2)]]),
    "o": (
        pa.struct([("x", pa.int64()), ("w", pa.list_(pa.struct([("v", pa.float64())])))]),
        [None, {"x": None, "w": None}, {"x": 1, "w": [None, {"v": float("nan")}, {"v": None}]}],
    ),
}
SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), *((name, kind) for name, (kind, _) in VALUES.items())]
)


def rows(start: int, count: int, *, null: bool = False, names: tuple[str, ...] = tuple(SCHEMA.names)) -> pa.Table:
    """Rows that have every value of every column, each with other ones; or only nulls."""
    columns: dict[str, Any] = {
        "id": [f"k{number:03}" for number in range(start, start + count)],
        "p": [("a", "b c", "d")[number % 3] for number in range(start, start + count)],
        "ts": [start] * count,
    }
    for place, (name, (_, values)) in enumerate(VALUES.items()):
        columns[name] = [None if null else values[(number * (place + 1)) % len(values)] for number in range(count)]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    return pa.table([pa.array(columns[child.name], child.type) for child in schema], schema)


def made(path: Path, **options: Any) -> hoodie.Table:
    """Three partitions of two file groups; one group has only nulls."""
    table = new_table(SCHEMA, path=path, ordering="ts", **options)
    table.bulk_insert(rows(0, 60))
    table.bulk_insert(rows(60, 9, null=True))
    return table


def changed(path: Path, **options: Any) -> hoodie.Table:
    """A table of which one partition has logs: a changed, a new and a deleted row."""
    table = made(path, type="mor", partition_by="p", **options)
    table.upsert(rows(0, 1).set_column(2, "ts", pa.array([1000])))
    table.delete(["k003"])
    return table


def grown(path: Path) -> hoodie.Table:
    """Files of before and after columns were added and widened."""
    few = ("id", "p", "ts", "i", "g", "s", "f")
    table = new_table(pa.schema([SCHEMA.field(name) for name in few]), path=path, partition_by="p")
    table.bulk_insert(rows(0, 12, names=few))
    table.alter.change_type("i", "bigint")
    table.bulk_insert(rows(12, 12, names=few).set_column(3, "i", pa.array([2**40] * 12)))
    table.alter.add_column("more", "double", after="id")
    table.alter.add_column("o", SCHEMA.field("o").type)
    table.bulk_insert(rows(24, 3, names=(*few, "o")).append_column("more", pa.array([0.5, None, float("nan")])))
    return table


def widened(path: Path) -> hoodie.Table:
    """Files of before a float became a double, which has other digits then."""
    table = new_table(pa.schema([("id", pa.string()), ("g", pa.float32())]), path=path)
    table.bulk_insert(pa.table({"id": ["a", "b"], "g": pa.array([0.1, None], pa.float32())}))
    table.alter.change_type("g", "double")
    table.bulk_insert(pa.table({"id": ["c"], "g": [0.1]}))
    return table


def renamed(path: Path) -> hoodie.Table:
    before: Columns = {"id": (5, "string"), "a": (6, "string"), "n": (8, "int")}
    schema = pa.schema([("id", pa.string()), ("a", pa.string()), ("n", pa.int32())])
    table = new_table(schema, [{"id": "k", "a": "x", "n": 1}], path=path)
    alter(table.view(), [before, {"id": (5, "string"), "c": (6, "string"), "n": (8, "long"), "a": (9, "string")}])
    return hoodie.open(path, spark=False)


def adopted(path: Path, mode: str) -> hoodie.Table:
    """Files of pyarrow, whose bounds leave out NaN, and which keep its types."""
    raw = path.parent / f"raw-{path.name}"
    raw.mkdir()
    pq.write_table(
        pa.table({"id": ["a", "b", "c"], "f": [1.0, float("nan"), 3.0], "s": ["x", None, ""]}), raw / "1.parquet"
    )
    hoodie.adopt(raw, path, record_key="id", mode=mode, dry_run=False)
    return hoodie.open(path, spark=False)


KEY_RANGE = {b"hoodie_min_record_key": b"k000", b"hoodie_max_record_key": b"k008"}
PROVEN = {**KEY_RANGE, b"hoodie_python_nan_bounds": b"true"}


def foreign(
    path: Path, entries: dict[bytes, bytes] = PROVEN, *, nan: bool = True, codec: str = "zstd", **form: Any
) -> hoodie.Table:
    """A table whose file pyarrow has written: with or without NaN, and with entries of the footer of other writers."""
    names = ("id", "u", "f", "l") if nan else ("id", "u", "l")
    schema = pa.schema([SCHEMA.field(name) for name in names])
    table = new_table(schema, path=path, index="bloom")
    table.bulk_insert(rows(0, 9, names=names))
    (file,) = path.glob("*.parquet")
    listed, found = file.stat().st_size, pq.ParquetFile(file)
    stored = found.read().replace_schema_metadata()
    stored = stored.set_column(stored.column_names.index("l"), "l", rows(0, 9)["l"])
    found.close()
    padding = 20_000
    for _ in range(2):  # The table lists the length of the file.
        with pq.ParquetWriter(file, stored.schema, compression=codec, **form) as writer:
            writer.write_table(stored)
            writer.add_key_value_metadata({**entries, b"padding": b"x" * padding})
        padding += listed - file.stat().st_size
    return hoodie.open(path, spark=False)


TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
NO_META = {"hoodie.populate.meta.fields": "false"}
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "false"}
TABLES: dict[str, tuple[Callable[[Path], hoodie.Table], bool]] = {
    "partitioned": (lambda path: made(path, partition_by="p"), True),
    "not hive style": (lambda path: made(path, partition_by="p", properties=HIVE), True),
    "partitioned by numbers": (lambda path: made(path, partition_by=["p", "i"]), True),
    "not partitioned": (made, True),
    "partitioned by time": (
        lambda path: made(path, partition_by="ts", key_generator="timestamp", properties=TIMES),
        True,
    ),
    "version 6": (lambda path: made(path, partition_by="p", table_version=6), True),
    "without partition columns": (lambda path: made(path, partition_by="p", properties=DROPPED), False),
    "without meta columns": (lambda path: made(path, index="simple", properties=NO_META), False),
    "logs in one partition": (changed, True),
    "grown": (grown, True),
    "a float became a double": (widened, True),
    "renamed": (renamed, False),
    "adopted": (lambda path: adopted(path, "rewrite"), True),
    "adopted in place": (lambda path: adopted(path, "metadata_only"), False),
    "of pyarrow": (lambda path: foreign(path, {}, nan=False), True),
    "bounds without NaN": (lambda path: foreign(path, {}), False),
    "of hoodie before 0.4": (lambda path: foreign(path, KEY_RANGE), False),
    "of hoodie before 0.4, without floats": (lambda path: foreign(path, KEY_RANGE, nan=False), True),
    "INT96": (lambda path: foreign(path, use_deprecated_int96_timestamps=True), False),
    "rare lists": (lambda path: foreign(path, use_compliant_nested_type=False), False),
    "a rare codec": (lambda path: foreign(path, codec="brotli"), False),
}
"""Each kind of table: how it is made, and whether DuckDB and Polars read files of it themselves."""
CONDITIONS: list[tuple[str, pl.Expr]] = [
    ("id >= 'k010'", pl.col("id") >= "k010"),
    ("p = 'b c'", pl.col("p") == "b c"),
    ("f > 2", pl.col("f") > 2),
    ("NOT (f < 2)", ~(pl.col("f") < 2)),
    ("f = 0", pl.col("f") == 0),
    ("g >= 0.5", pl.col("g") >= 0.5),
    ("i > 2", pl.col("i") > 2),
    ("i IS NULL", pl.col("i").is_null()),
    ("n = 9223372036854775807", pl.col("n") == 2**63 - 1),
    ("s = ''", pl.col("s") == ""),
    ("day < DATE '1970-01-01'", pl.col("day") < dt.date(1970, 1, 1)),
    ("u >= TIMESTAMP '2026-03-29 02:30:00'", pl.col("u") >= dt.datetime(2026, 3, 29, 2, 30)),
    ("d < 0", pl.col("d") < 0),
    ("b", pl.col("b")),
    ("more IS NULL", pl.col("more").is_null()),
    ("more >= 0.5 AND id >= 'k'", (pl.col("more") >= 0.5) & (pl.col("id") >= "k")),
]


@pytest.fixture(scope="module", params=TABLES)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[hoodie.Table, bool]:
    build, is_native = TABLES[request.param]
    return build(tmp_path_factory.mktemp("native") / "t"), is_native


def of(found: list[Any]) -> list[str]:
    """Rows in one order; NaN, and zeros of both signs, are told apart by their texts."""
    return sorted(map(repr, found))


def test_duckdb_has_the_same_rows(kind: tuple[hoodie.Table, bool]) -> None:
    table, is_native = kind
    con: Any = duckdb.connect()
    con.execute("SET TimeZone = 'Europe/Berlin'")
    dataset = table.to_dataset()
    ours, native = con.from_arrow(dataset.to_table()), table.to_duckdb(con)
    assert ("PARQUET_SCAN" in native.explain()) == is_native
    assert (native.columns, native.types) == (ours.columns, ours.types)
    assert of(native.fetchall()) == of(ours.fetchall())
    assert native.limit(4).project("id").fetchall()
    for one in dataset.schema.names:
        name = f'"{one}"'
        counted = f"count(*), count({name})"
        assert native.aggregate(counted).fetchall() == ours.aggregate(counted).fetchall(), name
        assert of(native.project(name).fetchall()) == of(ours.project(name).fetchall()), name
    for text, condition in CONDITIONS:
        if set(condition.meta.root_names()) <= {*dataset.schema.names}:
            assert of(native.filter(text).fetchall()) == of(ours.filter(text).fetchall()), text
            found = native.filter(text).aggregate("count(*), min(id)").fetchall()
            assert found == ours.filter(text).aggregate("count(*), min(id)").fetchall(), text


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_has_the_same_rows(kind: tuple[hoodie.Table, bool], engine: Any) -> None:
    table, _ = kind
    ours: Any = pl.from_arrow(table.to_dataset().to_table())
    native = table.to_polars()
    assert native.collect_schema() == ours.schema
    whole = native.collect(engine=engine)
    assert whole.schema == ours.schema
    assert of(whole.rows()) == of(ours.rows())
    assert native.select(pl.len()).collect(engine=engine).item() == ours.height
    assert native.head(2).collect(engine=engine).height == min(2, ours.height)
    for name in ours.columns:
        assert of(native.select(name).collect(engine=engine).rows()) == of(ours.select(name).rows()), name
        assert native.select(pl.col(name).null_count()).collect(engine=engine).item() == ours[name].null_count(), name
    for text, condition in CONDITIONS:
        if set(condition.meta.root_names()) <= {*ours.columns}:
            expected = ours.filter(condition)
            assert of(native.filter(condition).collect(engine=engine).rows()) == of(expected.rows()), text
            counted = native.filter(condition).select(pl.len(), pl.col("id").min()).collect(engine=engine)
            assert counted.rows() == expected.select(pl.len(), pl.col("id").min()).rows(), text
            assert native.head(5).filter(condition).collect(engine=engine).height <= 5
            limited = native.filter(condition).head(3).collect(engine=engine)
            assert limited.height == min(3, expected.height), text


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow", "v9_cow", "v9_mor"])
def test_tables_of_the_jvm_have_the_same_rows(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name, spark=False)
    con: Any = duckdb.connect()
    found = table.to_dataset().to_table()
    ours, frame, relation = con.from_arrow(found), table.to_polars(), table.to_duckdb(con)
    assert ("PYTHON" in frame.explain()) == ("ARROW" in relation.explain()) == (name == "v9_mor")
    assert (relation.columns, relation.types) == (ours.columns, ours.types)
    assert of(relation.fetchall()) == of(ours.fetchall())
    from_arrow: Any = pl.from_arrow(found)
    assert of(frame.collect().rows()) == of(from_arrow.rows())


@pytest.mark.parametrize("name", ["all_types", "all_types_row_writer"])
def test_readers_find_the_values_of_all_types_of_the_jvm(name: str) -> None:
    """Of files of both of its writers: one writes lists in an older form."""
    file = f"{Path(__file__).parents[1]}/golden/types/{name}.parquet"
    con: Any = duckdb.connect()
    found = pq.read_table(file)
    ours, native = con.from_arrow(found), con.read_parquet([file], hive_partitioning=False)
    assert (native.columns, native.types) == (ours.columns, ours.types)
    assert repr(native.fetchall()) == repr(ours.fetchall())
    frame: Any = pl.from_arrow(found)
    assert repr(pl.scan_parquet([file], hive_partitioning=False).collect().rows()) == repr(frame.rows())


def test_past_and_read_optimised_snapshots(tmp_path: Path) -> None:
    table = changed(tmp_path / "t")
    for asked in ({"as_of": table.timeline.instants[0].requested_time}, {"view": "read_optimized"}):
        ours: Any = pl.from_arrow(table.to_dataset(**asked).to_table())
        frame, relation = table.to_polars(**asked), table.to_duckdb(duckdb.connect(), **asked)
        assert "PYTHON" not in frame.explain() + relation.explain()
        assert of(frame.collect().rows()) == of(ours.rows())
        assert of(relation.pl().rows()) == of(ours.rows())


def test_later_commits_change_no_frame_and_no_relation(tmp_path: Path) -> None:
    table = changed(tmp_path / "t")
    frame, relation = table.to_polars(), table.to_duckdb(duckdb.connect())
    table.delete(["k001", "k004"])
    assert (frame.collect().height, relation.aggregate("count(*)").fetchall()) == (68, [(68,)])


def test_polars_prunes_before_it_reads(tmp_path: Path) -> None:
    """Files of other partitions are gone, and nothing notices: those of the filter are read by Polars."""
    table = new_table(SCHEMA, rows(0, 66), path=tmp_path / "t", partition_by="id")
    frame = table.to_polars()
    assert "PYTHON" in frame.explain()
    for file in (tmp_path / "t").glob("id=*/*.parquet"):
        if file.parent.name != "id=k007":
            file.unlink()
    assert frame.filter(pl.col("id") == "k007").select("ts", "s").collect().height == 1
    with pytest.raises(hoodie.MissingFileError, match="does not exist"):
        frame.filter(pl.col("id") >= "k007").collect()


@pytest.mark.parametrize("damage", [lambda file: os.truncate(file, 50), os.remove])
def test_a_lost_or_damaged_file_is_named_when_the_scan_is_made(tmp_path: Path, damage: Any) -> None:
    table = made(tmp_path / "t")
    damage(next((tmp_path / "t").glob("*.parquet")))
    for scan in (table.to_polars, table.to_duckdb):
        with pytest.raises((hoodie.MissingFileError, hoodie.CorruptFileError)):
            scan()


def test_duckdb_asks_us_for_rows_where_it_may_not_read_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t", partition_by="p")
    for setting in ("enable_external_access = false", "disabled_filesystems = 'LocalFileSystem'"):
        con: Any = duckdb.connect()
        con.execute(f"SET {setting}")
        found = table.to_duckdb(con)
        assert "PARQUET_SCAN" not in found.explain()
        assert found.aggregate("count(*)").fetchall() == [(69,)]


def test_duckdb_keeps_the_rows_of_a_view(tmp_path: Path) -> None:
    con: Any = duckdb.connect()
    changed(tmp_path / "t").to_duckdb(con).create_view("t")
    assert con.sql("SELECT count(*) FROM t AS a JOIN t AS b USING (id)").fetchall() == [(68,)]


def test_polars_reads_files_of_an_object_store(s3_options: dict[str, str], s3_bucket: str) -> None:
    uri = f"s3://{s3_bucket}/native"
    table = hoodie.create(
        uri, SCHEMA, record_key="id", partition_by="p", type="mor", spark=False, storage_options=s3_options
    )
    table.bulk_insert(rows(0, 60))
    table.delete(["k003"])
    ours: Any = pl.from_arrow(table.to_dataset().to_table())
    frame = table.to_polars()
    assert of(frame.collect().rows()) == of(ours.rows())
    for text, condition in CONDITIONS:
        if "more" not in text:
            assert of(frame.filter(condition).collect().rows()) == of(ours.filter(condition).rows()), text
    assert table.to_duckdb(duckdb.connect()).aggregate("count(*)").fetchall() == [(59,)]


KEYS = (("aws_access_key_id", "a"), ("aws_secret_access_key", "b"))
STORES: dict[StoreSpec, dict[str, str] | None] = {
    StoreSpec("/data/t"): {},
    StoreSpec("s3://b/t", KEYS): dict(KEYS),
    StoreSpec("s3a://b/t", (*KEYS, ("conditional_put", "etag"))): dict(KEYS),
    StoreSpec("s3://b/t"): None,
    StoreSpec("s3://b/t", (*KEYS, ("proxy_url", "http://p"))): None,
    StoreSpec("gs://b/t", KEYS): None,
    StoreSpec("memory://t"): None,
}


@pytest.mark.parametrize("spec", STORES, ids=repr)
def test_polars_gets_options_that_it_knows(spec: StoreSpec) -> None:
    assert reader_options(spec) == STORES[spec]
