"""Spark and hoodie give each expression the same value on every row, and pruned scans keep the same rows.

RLIKE finds what it finds in Spark, in texts with every end of a line; the current date is that of the session.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.records.condition import Condition
from hoodie.records.expression import RowExpression
from hoodie.records.sql.alike import is_alike
from hoodie.records.sql.translate import Translator
from tests.contract.expression_cases import (
    CONDITIONS,
    DIVISIONS_BY_ZERO,
    NULL_OUTSIDE_ANSI_MODE,
    ONLY_IN_ANSI_MODE,
    PROJECTIONS,
    SCHEMA,
    TABLE,
)
from tests.contract.table_lanes import ANSI, TIME_ZONE, Lane, session_with, trips

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_TYPES = {
    pa.int8(): "tinyint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


@pytest.fixture(scope="module")
def parquet_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two rows per row group: small enough that statistics decide, and that one NaN stands beside one constant."""
    path = tmp_path_factory.mktemp("expressions") / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=2)
    return str(path)


@pytest.fixture(params=[True, False], ids=["ansi", "not ansi"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the session is in ANSI mode."""
    with session_with(spark, {ANSI: str(request.param).lower()}):
        yield request.param


def _query(spark: SparkSession, path: str, expressions: list[str]) -> DataFrame:
    """All expressions as columns of one query, after the id."""
    from pyspark.sql import functions as F

    columns = [F.expr(text).alias(f"e{number}") for number, text in enumerate(expressions)]
    table: DataFrame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(path)
    return table.select("id", *columns)


def _columns(query: DataFrame) -> list[list[object]]:
    rows: list[tuple[object, ...]] = sorted((tuple(row) for row in query.collect()), key=lambda row: str(row[0]))
    return [list(values) for values in zip(*rows, strict=True)][1:]


def _spark_type(data_type: pa.DataType) -> str:
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return SPARK_TYPES[data_type]


def _by_hoodie(text: str) -> list[object]:
    values: list[object] = RowExpression.parse(text, SCHEMA).values(TABLE).to_pylist()
    return values


def _disagreements(texts: list[str], expected: list[list[object]]) -> list[str]:
    wrong = []
    for text, theirs in zip(texts, expected, strict=True):
        ours = _by_hoodie(text)
        if not all(_same(one, other) for one, other in zip(ours, theirs, strict=True)):
            wrong.append(f"{text}\n    spark  {theirs}\n    hoodie {ours}")
    return wrong


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(ours, datetime) and isinstance(theirs, datetime):
        return ours.replace(tzinfo=None) == theirs.replace(tzinfo=None)
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.spark
def test_conditions_have_the_truth_value_of_spark(spark: SparkSession, parquet_file: str, ansi: bool) -> None:
    texts = [*CONDITIONS, *(ONLY_IN_ANSI_MODE if ansi else NULL_OUTSIDE_ANSI_MODE)]
    wrong = _disagreements(texts, _columns(_query(spark, parquet_file, texts)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
def test_projections_have_the_value_and_type_of_spark(spark: SparkSession, parquet_file: str, ansi: bool) -> None:
    texts = PROJECTIONS if ansi else [*PROJECTIONS, *DIVISIONS_BY_ZERO]
    query = _query(spark, parquet_file, texts)
    wrong = _disagreements(texts, _columns(query))
    assert not wrong, "\n".join(wrong)
    types = {text: _spark_type(RowExpression.parse(text, SCHEMA).as_type) for text in texts}
    fields = query.schema.fields[1:]
    assert types == {text: field.dataType.simpleString() for text, field in zip(texts, fields, strict=True)}


@pytest.mark.spark
def test_expressions_that_are_alike_have_the_same_values_in_every_session(
    spark: SparkSession, parquet_file: str, ansi: bool
) -> None:
    """Those of which `is_alike` says so; those that differ between sessions are not among them."""
    texts = [text for text in (*CONDITIONS, *PROJECTIONS) if _is_alike(text)]
    assert len(texts) > 60
    assert not [text for text in (*ONLY_IN_ANSI_MODE, *NULL_OUTSIDE_ANSI_MODE, *DIVISIONS_BY_ZERO) if _is_alike(text)]
    with session_with(spark, {TIME_ZONE: "Asia/Kolkata"}):
        wrong = _disagreements(texts, _columns(_query(spark, parquet_file, texts)))
    assert not wrong, "\n".join(wrong)


def _is_alike(text: str) -> bool:
    try:
        return is_alike(text, Translator(SCHEMA), RowExpression.parse(text, SCHEMA).as_type)
    except SchemaMismatchError:  # Of a value that overflows.
        return False


def test_scanning_with_row_groups_pruned_loses_no_row(parquet_file: str) -> None:
    fragment = next(iter(ds.dataset(parquet_file).get_fragments()))
    for text in (*CONDITIONS, *ONLY_IN_ANSI_MODE, *NULL_OUTSIDE_ANSI_MODE):
        condition = Condition.parse(text)
        exact = condition.row_filter(SCHEMA)
        scanner = fragment.scanner(schema=SCHEMA, filter=condition.row_group_filter(SCHEMA, in_utc=True))
        found = exact.matching(scanner.to_table()).column("id").to_pylist()
        assert found == exact.matching(TABLE).column("id").to_pylist(), text
        assert found == [number for number, kept in enumerate(exact.values(TABLE).to_pylist()) if kept], text


ENDS = ["", "\n", "\r", "\r\n", "\n\r", "\n\n", "\x85", "\u2028", "\u2029", "\x0b", "\x0c", " ", "\x00"]
TEXTS = [
    *(f"{text}{end}" for text in ("", "a", "ab", "ba", "a\nb") for end in ENDS),
    "A", "_", "-", "]", "}", "^", "a^b", "a-b", "a.b", "a+b", "a&b", "\\", "0", "٣", "é", "日本", "😀", "a😀b", "K",
    "ſ", "aaa",
]  # fmt: skip
PATTERNS = [
    "a$", "^a$", "^$", "$", "a.$", "^.$", "^..$", "[^a]$", r"\s$", r"^a\s+$", "a$|^b", "(?:a|b$)", "((a)$)", "a{2,}$",
    r"a\z", r"\Aa\z", "^.*$", ".", "^.+b", r"\S", r"^\S+$", r"^[\s]+$", r"[^\s]", r"\w", r"^\W", r"[\W]", r"\d", r"\D$",
    "[^b]", "[a-]", r"[\^\-\]]", "[a^]", "[^^]", "]", "}", r"\]", r"\}", r"\.", r"\+", "[.+&]", r"\\", r"\_", "日.",
    r"^[\s-_]", "^.$|b", "(a|)+b", "(ab)?$", "a*?b", "a??$", "a{1,2}?b", "a{0}", "()", "|a", "(|x)a",
    r"\t|\n|\r|\f|\a", r"[\n]a?", "[é日]", "[a-z😀]+b", r"\-", r"\ ", "a|b|c", "^a|b$", "(^a|^b)c?",
]  # fmt: skip


@pytest.mark.spark
def test_rlike_finds_what_spark_finds(spark: SparkSession) -> None:
    table = pa.table({"s": [*TEXTS, None]})
    frame = spark.createDataFrame(
        [(number, text) for number, text in enumerate(table["s"].to_pylist())], "n int, s string"
    )
    from pyspark.sql import functions as F

    columns = [F.col("s").rlike(pattern).alias(f"p{number}") for number, pattern in enumerate(PATTERNS)]
    rows = frame.select("n", *columns).orderBy("n").collect()
    wrong = []
    for number, pattern in enumerate(PATTERNS):
        found = RowExpression.parse(f"s RLIKE r'{pattern}'", table.schema).values(table).to_pylist()
        expected = [row[number + 1] for row in rows]
        wrong += [
            f"{pattern!r} in {text!r}: spark {theirs}, hoodie {ours}"
            for text, ours, theirs in zip(table["s"].to_pylist(), found, expected, strict=True)
            if ours != theirs
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "+05:30"])
def test_the_current_date_is_that_of_the_session(spark_lane: Lane, zone: str) -> None:
    """In the first two zones the dates are never the same."""
    with session_with(spark_lane.session, {TIME_ZONE: zone}):
        today = spark_lane.session.sql("SELECT current_date()").collect()[0][0]
        rows = pa.table({"id": ["x", "y", "z"], "day": [today + timedelta(days=more) for more in (-1, 0, 1)]})
        table = spark_lane.table(rows, schema=rows.schema, partition_by="day")
        wheres = ("day = current_date()", "day > CAST(now() AS DATE)")
        found = spark_lane.read_each(table, *({"where": where} for where in wheres))
        assert [part["id"].to_pylist() for part in found] == [["y"], ["z"]]
        assert table.delete_where("day < current_date").deleted == 1


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.filterwarnings("ignore:The SQL config .* has been deprecated:UserWarning")
def test_literals_have_one_value_or_are_refused(spark_lane: Lane) -> None:
    """Spark reads some literals by settings of the session, and by its release."""
    lane = spark_lane
    table = lane.table(trips(("a", 1, 1.0, "it's"), ("b", 1, 1.0, "its"), ("c", 1, 1.0, 'say "it"')))
    escaped, doubled, quotes = r"city = 'it\'s'", "city = 'it''s'", 'city = "it\'s"'
    is_old = lane.session.version.startswith("3.")
    for where in (escaped, quotes) if is_old else (escaped, quotes, doubled):
        assert [row["id"] for row in table.read(where=where).collect()] == ["a"]
    names = "spark.sql.ansi.doubleQuotedIdentifiers"
    refused = [
        ({"spark.sql.parser.escapedStringLiterals": "true"}, escaped),
        ({ANSI: "true", names: "true"}, quotes),
        ({} if is_old else {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}, doubled),
    ]
    for confs, where in refused:
        with session_with(lane.session, confs):
            for call in (
                lambda where: table.read(where=where),
                lambda where: table.delete_where(where),
                lambda where: table.update({"ts": "2"}, where=where),
                lambda where: hoodie.sql(lane.session, f"DELETE FROM hoodie.`{table.path}` WHERE {where}"),
            ):
                with pytest.raises(InvalidConfigError, match="other rows would match"):
                    call(where)
    assert table.count() == 3
