"""Tables of a real PostgreSQL, read by JDBC on Spark and by ADBC in this process: same batches, same rows and types."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.adbc import Adbc
from hoodie.ingest.sources.jdbc import Jdbc
from tests.support.postgres_server import PASSWORD, Postgres, running_postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Plan = Callable[..., Batch | None]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL of its own. A missing installation fails the lane; it never skips."""
    with running_postgres() as found:
        yield found


def _jdbc(server: Postgres, **options: Any) -> Jdbc:
    return Jdbc(url=server.jdbc_url, user="hoodie", password=PASSWORD, **options)


@pytest.fixture(params=["adbc", "jdbc"])
def plan(request: pytest.FixtureRequest, server: Postgres) -> Plan:
    """Plan a batch: `plan(after, limit, **options of the source)`."""
    if request.param == "adbc":
        return lambda after=None, limit=None, **options: Adbc(uri=server.uri, **options).plan(
            Request(after=after, limit=limit)
        )
    spark = request.getfixturevalue("spark")
    return lambda after=None, limit=None, **options: _jdbc(server, **options).plan(
        Request(after=after, limit=limit, spark=spark)
    )


def _rows(batch: Batch | None) -> pa.Table:
    assert batch is not None
    found = batch.read()
    return found.read_all() if isinstance(found, pa.RecordBatchReader) else found.toArrow()


def _fill(server: Postgres, kind: str, values: list[str | None]) -> None:
    server.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t (id int, v {kind})")
    if values:
        server.execute(f"INSERT INTO t VALUES (%s, %s::text::{kind})", list(enumerate(values)))


KINDS = {
    "smallint": ["-32768", "0", "0", "7"],
    "bigint": ["-9223372036854775808", "9007199254740993", "9007199254740993", "9223372036854775807"],
    "numeric(38,10)": ["-1.5", "0.0000000001", "0.0000000001", "1234567890123456789012345678.0123456789"],
    "numeric": ["-1e30", "1.00000000000000000000000000000000000001", "1.0", "1.00"],
    "double precision": ["-1.7976931348623157e308", "0.1", "0.30000000000000004", "0.30000000000000004"],
    "real": ["0.1", "0.1", "16777216", "3.4028235e38"],
    "date": ["0044-03-15 BC", "1999-12-31", "2024-02-29", "2024-02-29"],
    "timestamp": ["2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000001", "2024-01-02"],
    "timestamptz": [
        "2024-03-31 00:59:59.999999Z",
        "2024-03-31 01:00:00+01",
        "2024-03-31 00:00:00Z",
        "2024-10-27 02:30+01",
    ],
    "text": ["A", "a", "ä", "ä", "z'\\", "字"],
    "varchar(9)": ["10", "9", "9", "a"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_read_once_by_every_kind_of_column(server: Postgres, plan: Plan, kind: str) -> None:
    values = KINDS[kind]
    _fill(server, kind, [*values])
    found, after, places = [], None, []
    while (batch := plan(after, 1, table="t", column="v")) is not None:
        rows = _rows(batch)["id"].to_pylist()
        # Planned again from the place, as after a death: the same batch.
        again = plan(after, 1, table="t", column="v")
        assert again is not None
        assert (again.place, sorted(_rows(again)["id"].to_pylist())) == (batch.place, sorted(rows))
        found += rows
        places.append(batch.place)
        after = batch.place
    assert sorted(found) == list(range(len(values)))
    assert len(places) == len(set(places)) < len(values)
    rest = plan(places[0], None, table="t", column="v")
    assert len(_rows(rest)) == len(values) - len(_rows(plan(None, 1, table="t", column="v")))


def test_ties_around_the_limit(server: Postgres, plan: Plan) -> None:
    _fill(server, "int", ["1", "2", "2", "2", "3", None])
    first = plan(None, 2, table="t", column="v", counts_lag=True)
    assert first is not None
    assert (first.place, first.lag_rows, sorted(_rows(first)["v"].to_pylist())) == ("2", 1, [1, 2, 2, 2])
    assert first.notes == ("t, column v: 1 rows have NULL and are never read",)
    last = plan(first.place, 2, query="SELECT * FROM t; ", column="V")
    assert last is not None
    assert (last.place, _rows(last)["id"].to_pylist()) == ("3", [4])
    # Another source object, as in another process, notes the nulls again.
    assert last.notes == ("query 'SELECT * FROM t;', column v: 1 rows have NULL and are never read",)
    assert plan(last.place, 2, table="t", column="v") is None
    with pytest.raises(SourceError, match="found NULL in 1 rows"):
        plan(table="t", column="v", nulls="error")


def test_changed_rows_appear_again_and_a_place_of_jvm_hudi_is_understood(server: Postgres, plan: Plan) -> None:
    _fill(server, "timestamp", ["2024-01-01", "2024-01-02"])
    batch = plan("2024-01-01 00:00:00.0", None, table="t", column="v")
    assert batch is not None
    assert (batch.place, _rows(batch)["id"].to_pylist()) == ("2024-01-02 00:00:00", [1])
    server.execute("UPDATE t SET v = '2024-01-03' WHERE id = 0")
    assert _rows(plan(batch.place, None, table="t", column="v"))["id"].to_pylist() == [0]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_late_rows_are_read_with_a_lag(server: Postgres, plan: Plan, kind: str) -> None:
    import psycopg

    _fill(server, kind, ["2024-01-01"])
    options = {"table": "t", "column": "v", "lag_seconds": 60 if kind != "date" else 0}
    now = f"(now() AT TIME ZONE 'UTC')::{kind}" if kind != "timestamptz" else "now()"
    with psycopg.connect(server.uri) as late:
        late.execute(f"INSERT INTO t VALUES (1, {now})")
        server.execute(f"INSERT INTO t VALUES (2, {now})")
        batch = plan(None, None, **options)
        assert batch is not None
        # The row of the open transaction would be above no later place.
        assert (_rows(batch)["id"].to_pylist(), batch.notes) == ([0], ())
    assert plan(batch.place, None, **options) is None
    server.execute(f"UPDATE t SET v = v - interval '{'1 day' if kind == 'date' else '61 seconds'}' WHERE id > 0")
    assert sorted(_rows(plan(batch.place, None, **options))["id"].to_pylist()) == [1, 2]


def test_days_without_a_lag_are_noted(server: Postgres, plan: Plan) -> None:
    _fill(server, "date", ["2024-01-01"])
    batch = plan(table="t", column="v")
    assert batch is not None
    assert "rows that get the value 2024-01-01 from now on are never read; set lag_seconds = 0" in batch.notes[0]


def test_columns_that_cannot_be_places(server: Postgres, plan: Plan) -> None:
    _fill(server, "uuid", [])
    with pytest.raises(UnsupportedError, match="column v: expected a number, date, timestamp or text"):
        plan(table="t", column="v")
    with pytest.raises(InvalidConfigError, match=r"columns of t \(id, v\): 'w'"):
        plan(table="t", column="w")
    with pytest.raises(InvalidConfigError, match="lag_seconds: expected a timestamp or date"):
        plan(table="t", column="id", lag_seconds=1)
    for kind, value in (("float8", "NaN"), ("timestamp", "infinity")):
        _fill(server, kind, [value])
        with pytest.raises(SourceError, match=f"the greatest value is {value}"):
            plan(table="t", column="v")


TYPES = {
    "i": ("int", "-1", pa.int32()),
    "b": ("bigint", "9223372036854775807", pa.int64()),
    "n": ("numeric(20,4)", "-1234567890123456.7891", pa.decimal128(20, 4)),
    "n0": ("numeric(10)", "5", pa.decimal128(10, 0)),
    "n38": ("numeric(38,18)", "0.000000000000000001", pa.decimal128(38, 18)),
    "nn": ("numeric", "1e30", pa.string()),
    "t": ("text", "ä", pa.string()),
    "v": ("varchar(20)", "v ", pa.string()),
    "c": ("char(5)", "c", pa.string()),
    "bo": ("boolean", "true", pa.bool_()),
    "d": ("date", "2024-02-29", pa.date32()),
    "ts": ("timestamp", "2024-01-01 00:00:00.123456", pa.timestamp("us")),
    "tz": ("timestamptz", "2024-01-01 00:00:00.123456+02", pa.timestamp("us", "UTC")),
    "f": ("double precision", "0.30000000000000004", pa.float64()),
    "r": ("real", "0.1", pa.float32()),
    "by": ("bytea", "\\x00ff", pa.binary()),
    "j": ("json", '{"a": 1}', pa.string()),
    "jb": ("jsonb", '{"a": 1}', pa.string()),
    "u": ("uuid", "00000000-0000-0000-0000-000000000001", pa.string()),
    "ti": ("time", "12:00:00.5", pa.string()),
    "iv": ("interval", "1 day", pa.string()),
    "ip": ("inet", "1.1.1.1", pa.string()),
    "ar": ("int[]", "{1,NULL}", pa.list_(pa.int32())),
    "at": ("text[]", "{a,b}", pa.list_(pa.string())),
    "an": ("numeric(5,2)[]", "{1.5}", pa.string()),
    'Odd "name"': ("int", "1", pa.int32()),
}


def test_spark_and_adbc_return_the_same_rows_and_types(server: Postgres, spark: SparkSession) -> None:
    names = ['"' + name.replace('"', '""') + '"' for name in TYPES]
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in zip(names, TYPES.values(), strict=True))
    values = ", ".join(f"'{value}'" for _, value, _ in TYPES.values())
    server.execute(f"CREATE SCHEMA s; CREATE TABLE s.types ({columns})")
    server.execute(f"INSERT INTO s.types VALUES ({values}), ({', '.join(['NULL'] * len(TYPES))})")
    in_process = _rows(Adbc(uri=server.uri, table="s.types").plan(Request()))
    assert dict(zip(in_process.schema.names, in_process.schema.types, strict=True)) == {
        name: found for name, (_, _, found) in TYPES.items()
    }
    on_spark = _rows(_jdbc(server, table="s.types").plan(Request(spark=spark)))
    assert on_spark.schema.names == in_process.schema.names
    assert on_spark.schema.types == in_process.schema.types
    assert on_spark.to_pylist() == in_process.to_pylist()
    handed_on = Adbc(uri=server.uri, table="s.types").plan(Request(spark=spark))
    assert _rows(handed_on).to_pylist() == in_process.to_pylist()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bigint", "i"),
        ("numeric(12,2)", "i + 0.5"),
        ("date", "date '2024-01-01' + i"),
        ("timestamptz", "now() + i * interval '1 hour'"),
    ],
)
def test_partitioned_reads(server: Postgres, spark: SparkSession, kind: str, value: str) -> None:
    rows = f"SELECT i AS id, ({value})::{kind} AS p FROM generate_series(1, 1000) i"
    server.execute(f"DROP TABLE IF EXISTS t; CREATE TABLE t AS {rows}")
    server.execute("INSERT INTO t VALUES (1001, NULL)")
    source = _jdbc(server, table="t", column="id", partition_column="p", partitions=4, fetch_size=100)
    batch = source.plan(Request(after="0", spark=spark))
    assert batch is not None
    frame = batch.read()
    parts = [row["count"] for row in frame.groupBy(_partition()).count().collect()]
    assert len(parts) == 4
    assert min(parts) > 200
    assert sorted(row["id"] for row in frame.select("id").collect()) == list(range(1, 1002))


def _partition() -> Any:
    from pyspark.sql.functions import spark_partition_id

    return spark_partition_id()


def test_partitions_of_texts_are_refused(server: Postgres, spark: SparkSession) -> None:
    _fill(server, "text", ["a"])
    batch = _jdbc(server, table="t", partition_column="v", partitions=2).plan(Request(spark=spark))
    assert batch is not None
    with pytest.raises(InvalidConfigError, match="partition_column: expected a number, date or timestamp"):
        batch.read()


def _assert_masked(error: BaseException | None) -> None:
    while error is not None:
        assert "geheim" not in str(error).replace("/", "").replace("%2F", "")
        error = error.__cause__


def test_a_database_that_is_gone_is_an_error_and_the_next_try_goes_on(server: Postgres, plan: Plan) -> None:
    _fill(server, "int", ["1", "2"])
    batch = plan(None, 1, table="t", column="v")
    assert batch is not None
    server.stop()
    try:
        for attempt in (batch.read, lambda: plan(batch.place, 1, table="t", column="v")):
            with pytest.raises(SourceError, match=r"t of .*127\.0\.0\.1.*: the database cannot be read: ") as caught:
                attempt()
            _assert_masked(caught.value)
            assert "\n" not in str(caught.value)
    finally:
        server.start()
    assert _rows(batch)["id"].to_pylist() == [0]
    assert _rows(plan(batch.place, 1, table="t", column="v"))["id"].to_pylist() == [1]


def test_a_server_that_stops_in_the_middle_of_the_rows(server: Postgres) -> None:
    server.execute(
        "DROP TABLE IF EXISTS t; "
        "CREATE TABLE t AS SELECT i AS id, repeat('x', 1000) x FROM generate_series(1, 200000) i"
    )
    batch = Adbc(uri=server.uri, table="t", column="id").plan(Request())
    assert batch is not None
    reader = batch.read()
    assert reader.read_next_batch().num_rows > 0
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    stopping.join(30)
    try:
        with pytest.raises(SourceError, match=r"t of .*: the database cannot be read: ") as caught:
            reader.read_all()
        _assert_masked(caught.value)
    finally:
        server.start()
    assert batch.read().read_all().num_rows == 200_000


def test_errors_of_the_database_are_one_line(server: Postgres, plan: Plan) -> None:
    with pytest.raises(SourceError, match=r'relation "nothing" does not exist') as caught:
        _rows(plan(table="nothing"))
    assert "\n" not in str(caught.value)


def test_a_wrong_password_and_a_missing_driver(server: Postgres, spark: SparkSession) -> None:
    uri = server.uri.replace("%261", "wrong")
    with pytest.raises(SourceError, match="password authentication failed") as caught:
        Adbc(uri=uri, table="t").plan(Request())
    _assert_masked(caught.value)
    source = Jdbc(url=server.jdbc_url, user="hoodie", password="geheim", table="t")
    with pytest.raises(SourceError, match="the database cannot be read") as caught:
        _rows(source.plan(Request(spark=spark)))
    _assert_masked(caught.value)
    source = Jdbc(url="jdbc:db2://127.0.0.1/d", driver="com.example.Missing", table="t")
    with pytest.raises(SourceError, match=r"com\.example\.Missing; put the driver's jar on Spark's class path"):
        _rows(source.plan(Request(spark=spark)))


def test_a_database_without_a_dialect_of_its_own(spark: SparkSession) -> None:
    """Derby, whose driver comes with Spark, reads the standard SQL of the other databases."""
    url = "jdbc:derby:memory:other;create=true"
    times = enumerate(["2024-01-01 00:00:00.1", "2024-01-01 00:00:00.1", "2024-01-02 00:00:00"], start=1)
    rows = ", ".join(f"({number}, TIMESTAMP('{time}'))" for number, time in times)
    query = f'SELECT * FROM (VALUES {rows}) AS q ("id", "v")'
    after, found = None, []
    source = Jdbc(url=url, driver="org.apache.derby.iapi.jdbc.AutoloadedDriver", query=query, column="v")
    while (batch := source.plan(Request(after=after, limit=1, spark=spark))) is not None:
        found.append(sorted(_rows(batch)["id"].to_pylist()))
        after = batch.place
    assert found == [[1, 2], [3]]
    assert after == "2024-01-02 00:00:00"
