"""SQL of bounds, texts of places, options, and errors without passwords."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie.config.secrets import masked, redacted, redacted_content, secrets_of
from hoodie.errors import InvalidConfigError, SourceError, UnsupportedError
from hoodie.ingest.source import Request
from hoodie.ingest.sources.adbc import Adbc
from hoodie.ingest.sources.dialects import (
    MYSQL,
    POSTGRESQL,
    SQLITE,
    STANDARD,
    Kind,
    PostgresColumn,
    canonical,
    dialect_of,
    postgres_list,
)
from hoodie.ingest.sources.incremental import Selection
from hoodie.ingest.sources.jdbc import Jdbc
from hoodie.ingest.sources.secrets import cause


@pytest.mark.parametrize(
    ("kind", "place", "expected"),
    [
        (Kind.INTEGER, "9223372036854775807", "9223372036854775807"),
        (Kind.INTEGER, "5.0", "5"),
        (Kind.DECIMAL, "12345678901234567890.123456789012345678", "12345678901234567890.123456789012345678"),
        (Kind.DECIMAL, "1E+3", "1000"),
        (Kind.FLOAT, "1.0E10", "10000000000.0"),
        (Kind.FLOAT, "0.1", "0.1"),
        (Kind.DATE, "2024-01-01", "2024-01-01"),
        # As JVM Hudi stores them.
        (Kind.DATE, "2024-01-01 00:00:00.0", "2024-01-01"),
        (Kind.TIMESTAMP, "2024-01-01 00:00:00.0", "2024-01-01 00:00:00.0"),
        (Kind.TIMESTAMP, "2024-01-01T10:20:30.123456", "2024-01-01 10:20:30.123456"),
        (Kind.TIMESTAMP, "2024-01-01T10:20:30Z", "2024-01-01 10:20:30"),
        (Kind.TIMESTAMP, "-infinity", "-infinity"),
        (Kind.INSTANT, "2024-01-01 00:00:00.0", "2024-01-01 00:00:00.0+00"),
        (Kind.INSTANT, "2024-01-01T10:20:30.123456+05:30", "2024-01-01 10:20:30.123456+05:30"),
        (Kind.INSTANT, "0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC"),
        (Kind.TEXT, "it's", "it's"),
    ],
)
def test_places_are_read_exactly(kind: Kind, place: str, expected: str) -> None:
    assert canonical(place, kind, "t") == expected


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (Kind.INTEGER, "5.5"),
        (Kind.INTEGER, "2024-01-01"),
        (Kind.DECIMAL, "NaN"),
        (Kind.FLOAT, "many"),
        (Kind.DATE, "2024-01-01 10:00:00"),
        (Kind.DATE, "yesterday"),
        (Kind.TIMESTAMP, "2024-01-01 10:00:00+02"),
        (Kind.TIMESTAMP, "1'; DROP TABLE t; --"),
        (Kind.INSTANT, "events,0:17"),
    ],
)
def test_a_place_of_another_kind_is_refused(kind: Kind, place: str) -> None:
    with pytest.raises(SourceError, match=r"orders, column c: expected a.* found"):
        canonical(place, kind, "orders, column c")


def test_literals_end_no_text() -> None:
    assert POSTGRESQL.literals[Kind.TEXT]("a'b\\") == "'a''b\\'"
    assert MYSQL.literals[Kind.TEXT]("a'b\\") == "'a''b\\\\'"
    assert STANDARD.literals[Kind.TIMESTAMP]("2024-01-01 00:00:00") == "{ts '2024-01-01 00:00:00'}"
    assert STANDARD.literals[Kind.FLOAT]("1.5") == "1.5E0"
    assert Kind.INSTANT not in STANDARD.literals
    assert MYSQL.quoted("a`b") == "`a``b`"
    assert POSTGRESQL.value('a"b', Kind.TEXT) == '"a""b" COLLATE "C"'


def test_dialects_by_url() -> None:
    found = [dialect_of(url) for url in ("jdbc:postgresql://h/d", "jdbc:mariadb://h/d", "sqlite:///a", "jdbc:db2:x")]
    assert found == [POSTGRESQL, MYSQL, SQLITE, STANDARD]


def test_columns_that_become_text() -> None:
    plain = [PostgresColumn("a", "int4"), PostgresColumn("n", "numeric", (20, 4)), PostgresColumn("l", "_text")]
    assert postgres_list(plain) == "*"
    odd = [PostgresColumn("n", "numeric"), PostgresColumn("m", "numeric", (5, -2)), PostgresColumn("u", "uuid")]
    assert postgres_list([plain[0], *odd]) == (
        '"a", CAST("n" AS text) AS "n", CAST("m" AS text) AS "m", CAST("u" AS text) AS "u"'
    )


URL = "jdbc:postgresql://h/d"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": URL}, "expected one of table and query"),
        ({"url": URL, "table": "t", "query": "SELECT 1"}, "expected one of table and query"),
        ({"url": URL, "query": " "}, "expected one of table and query"),
        ({"url": "postgresql://u:geheim@h/d", "table": "t"}, r"url: expected jdbc:.*found 'postgresql://u:\*\*\*@h/d'"),
        ({"url": URL, "table": "t", "options": {"dbTable": "x"}}, "options: .*dbTable"),
        ({"url": URL, "table": "t", "nulls": "keep"}, "nulls: expected one of note, error, found 'keep'"),
        ({"url": URL, "table": "t", "column": "c", "lag_seconds": -1}, "lag_seconds: .*-1"),
        ({"url": URL, "table": "t", "column": "c", "lag_seconds": True}, "lag_seconds: expected float"),
        ({"url": URL, "table": "t", "lag_seconds": 1}, "expected an incremental column"),
        ({"url": URL, "table": "t", "partitions": 4}, "partitions: .*4 and None"),
        ({"url": URL, "table": "t", "partition_column": "c"}, "partitions: .*1 and 'c'"),
        ({"url": URL, "table": "t", "fetch_size": -1}, "fetch_size: .*-1"),
        ({"url": URL, "table": "t", "password": 12345}, "password: expected str | None, found a value of type int"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message) as caught:
        Jdbc(**options)
    assert "geheim" not in str(caught.value)
    assert "12345" not in str(caught.value)


@pytest.mark.parametrize("uri", ["", "jdbc:sqlite:a.db", "mysql://u:geheim@h/d"])
def test_adbc_reads_two_databases(uri: str) -> None:
    with pytest.raises(InvalidConfigError, match="uri: expected postgresql://") as caught:
        Adbc(uri=uri, table="t")
    assert "geheim" not in str(caught.value)


def test_jdbc_requires_spark() -> None:
    with pytest.raises(UnsupportedError, match="expected a Spark session, found none"):
        Jdbc(url=URL, table="t").plan(Request())


def test_reprs_have_no_passwords() -> None:
    jdbc = Jdbc(url=f"{URL}?user=u&password=geheim", table="t", password="secret1", options={"sslpassword": "secret2"})
    assert repr(jdbc) == "Jdbc(jdbc:postgresql://h/d?user=u&password=***, t)"
    adbc = Adbc(uri="postgresql://u:ge%2Fheim@h/d", query="SELECT *\nFROM t")
    assert repr(adbc) == "Adbc(postgresql://u:***@h/d, query 'SELECT * FROM t')"


def test_passwords_are_masked_in_every_form() -> None:
    secrets = secrets_of("postgresql://u:ge%2Fheim@h/d?sslpassword=zwei", {"trustStorePassword": "drei", "a": "b"})
    assert set(secrets) == {"ge%2Fheim", "ge/heim", "zwei", "drei"}
    assert masked("ge/heim, ge%2Fheim, zwei and drei", secrets) == "***, ***, *** and ***"
    assert masked("jdbc:oracle:thin:scott/tiger@h") == "jdbc:oracle:thin:scott/***@h"
    assert masked("jdbc:sqlserver://h;user=u;password=p;x=1") == "jdbc:sqlserver://h;user=u;password=***;x=1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x required username="u" password="my top HIDDEN;x";', 'x required username="u" password="***";'),
        ('config: {"password": "HIDDEN", "user": "x"}', 'config: {"password": "***", "user": "x"}'),
        (r"{\"password\": \"HIDDEN\"}, x", r"{\"password\": \"***\"}, x"),
        ("awsAccessKey=HIDDEN, accessKeyId=HIDDEN", "awsAccessKey=***, accessKeyId=***"),
        ("AccountName=a;AccountKey=HIDDEN==;EndpointSuffix=x", "AccountName=a;AccountKey=***;EndpointSuffix=x"),
        ("https://a.net/c?sv=1&sig=HIDDEN%3D&x=1", "https://a.net/c?sv=1&sig=***&x=1"),
        ("s3://h/p?X-Amz-Signature=HIDDEN", "s3://h/p?X-Amz-Signature=***"),
        ("Authorization: Basic HIDDEN==", "Authorization: Basic ***"),
    ],
)
def test_passwords_in_texts_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected
    assert redacted({"a": text}) == {"a": expected}


def test_names_that_look_like_secrets_stay() -> None:
    properties = {
        "hoodie.table.recordkey.fields": "id,token",
        "hoodie.datasource.write.partitionpath.field": "day",
        "text": "the record key=id, writeToken=1-2-3, design=x",
        "checkpoint.key": "topic,0:5",
        "writeToken": "1-0-1",
        "schema": '{"name": "password", "type": "string"}',
    }
    assert redacted(properties) == properties
    statistics = {
        "token=a": [{"path": "token=a/f1_1-0-1_2.parquet", "numWrites": 3, "deletes": ["token=a/.f_1.log.1_0-1-2"]}]
    }
    assert redacted_content(statistics) == statistics


def test_secrets_of_contents_are_hidden_at_every_depth() -> None:
    content = {"api_key": 7, "a": [{"pwd": "x", "n": 7}], "credentials": {"id": ["x"], "n": 7, "token": 7}, "pass": ""}
    shown = {"api_key": "***", "a": [{"pwd": "***", "n": 7}], "credentials": {"id": ["***"], "n": 7, "token": "***"}}
    assert redacted_content(content) == {**shown, "pass": ""}
    assert redacted({"x": '{"a": {"secret": "x"}, "b": 1}'}) == {"x": '{"a": {"secret": "***"}, "b": 1}'}


def test_causes_are_one_line() -> None:
    spark = ": org.apache.spark.SparkException: Job aborted (h): org.x.PSQLException: ERROR: no\n\tat a.b"
    assert cause(ValueError(spark)) == "PSQLException: ERROR: no"
    assert cause(ValueError("IO: refused\nIs the server running?")) == "IO: refused"
    assert cause(ValueError()) == "ValueError"


def test_queries_keep_their_own_comments() -> None:
    assert Selection(query="SELECT 1 -- one;").relation == "(SELECT 1 -- one\n) hoodie_source"
    assert Selection(table="s.t").relation == "s.t"
