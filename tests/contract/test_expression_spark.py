"""Spark and hoodie give each expression the same value on every row, and pruned scans keep the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hoodie.errors import SchemaMismatchError
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


@pytest.fixture
def set_ansi_mode(spark: SparkSession) -> Iterator[Any]:
    before = spark.conf.get("spark.sql.ansi.enabled", "false")
    yield lambda on: spark.conf.set("spark.sql.ansi.enabled", str(on).lower())
    spark.conf.set("spark.sql.ansi.enabled", str(before))


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
@pytest.mark.parametrize("ansi", [True, False])
def test_conditions_have_the_truth_value_of_spark(
    spark: SparkSession, parquet_file: str, set_ansi_mode: Any, ansi: bool
) -> None:
    set_ansi_mode(ansi)
    texts = [*CONDITIONS, *(ONLY_IN_ANSI_MODE if ansi else NULL_OUTSIDE_ANSI_MODE)]
    wrong = _disagreements(texts, _columns(_query(spark, parquet_file, texts)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
def test_projections_have_the_value_and_type_of_spark(
    spark: SparkSession, parquet_file: str, set_ansi_mode: Any, ansi: bool
) -> None:
    set_ansi_mode(ansi)
    texts = PROJECTIONS if ansi else [*PROJECTIONS, *DIVISIONS_BY_ZERO]
    query = _query(spark, parquet_file, texts)
    wrong = _disagreements(texts, _columns(query))
    assert not wrong, "\n".join(wrong)
    types = {text: _spark_type(RowExpression.parse(text, SCHEMA).as_type) for text in texts}
    fields = query.schema.fields[1:]
    assert types == {text: field.dataType.simpleString() for text, field in zip(texts, fields, strict=True)}


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
def test_expressions_that_are_alike_have_the_same_values_in_every_session(
    spark: SparkSession, parquet_file: str, set_ansi_mode: Any, ansi: bool
) -> None:
    """Those of which `is_alike` says so; those that differ between sessions are not among them."""
    texts = [text for text in (*CONDITIONS, *PROJECTIONS) if _is_alike(text)]
    assert len(texts) > 60
    assert not [text for text in (*ONLY_IN_ANSI_MODE, *NULL_OUTSIDE_ANSI_MODE, *DIVISIONS_BY_ZERO) if _is_alike(text)]
    set_ansi_mode(ansi)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        wrong = _disagreements(texts, _columns(_query(spark, parquet_file, texts)))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert not wrong, "\n".join(wrong)


def _is_alike(text: str) -> bool:
    try:
        return is_alike(text, Translator(SCHEMA), RowExpression.parse(text, SCHEMA).as_type)
    except SchemaMismatchError:  # Of a value that overflows.
        return False


@pytest.mark.parametrize("text", [*CONDITIONS, *ONLY_IN_ANSI_MODE, *NULL_OUTSIDE_ANSI_MODE])
def test_scanning_with_row_groups_pruned_loses_no_row(parquet_file: str, text: str) -> None:
    exact = Condition.parse(text).row_filter(SCHEMA)
    fragment = next(iter(ds.dataset(parquet_file).get_fragments()))
    scanner = fragment.scanner(schema=SCHEMA, filter=Condition.parse(text).row_group_filter(SCHEMA, in_utc=True))
    found = exact.matching(scanner.to_table()).column("id").to_pylist()
    assert found == exact.matching(TABLE).column("id").to_pylist()
    expected = [number for number, kept in enumerate(exact.values(TABLE).to_pylist()) if kept]
    assert found == expected
