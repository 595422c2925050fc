"""Conditions on the smallest and greatest values: Spark's answer, or our error where Spark fails, from every method."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import HoodieError, SchemaMismatchError, UnsupportedError
from hoodie.records.expression import RowExpression
from hoodie.storage import MemoryStore
from tests.contract.extreme_cases import ANSWERS, DIFFERENT, TABLE, conditions
from tests.contract.table_lanes import ANSI, session_with

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

LETTERS = {True: "T", False: "F", None: "N"}
FAILS = "E"
"""Spark raises an error for the row, in ANSI mode; its older mode gives a value that we do not give."""
FAILS_OR_NULL = "e"
"""Spark raises an error in ANSI mode, and its older mode gives NULL."""


def by_hoodie(text: str, rows: pa.Table) -> str:
    """One letter for each row; each row is evaluated alone."""
    condition = RowExpression.parse(text, rows.schema, as_type=pa.bool_())
    letters = []
    for number in range(rows.num_rows):
        try:
            letters.append(LETTERS[condition.values(rows.slice(number, 1))[0].as_py()])
        except SchemaMismatchError:
            letters.append(FAILS)
    return "".join(letters)


@cache
def answer_of_hoodie(text: str) -> str | HoodieError:
    """The letters for the rows of `TABLE`, or the error that refuses the condition as a whole."""
    try:
        return by_hoodie(text, TABLE)
    except HoodieError as error:
        return error


def agrees(ours: str, theirs: str) -> bool:
    return all(
        one == other or (other == FAILS_OR_NULL and one in "EN") for one, other in zip(ours, theirs, strict=True)
    )


def test_every_condition_has_an_answer_of_spark() -> None:
    assert list(ANSWERS) == conditions()
    assert all(not agrees(ours, ANSWERS[text]) for text, ours in DIFFERENT.items())
    assert sum(set(answer) <= set("TFN") for answer in ANSWERS.values()) > 200
    assert sum(bool(set(answer) & set("Ee")) for answer in ANSWERS.values()) > 100


def test_each_row_has_the_answer_of_spark() -> None:
    wrong, refused = [], []
    for text, theirs in ANSWERS.items():
        ours = answer_of_hoodie(text)
        if not isinstance(ours, str):
            # Refused as a whole: a literal that is no value, or a cast without an Arrow form.
            assert isinstance(ours, (SchemaMismatchError, UnsupportedError)), text
            refused.append(text)
            if isinstance(ours, SchemaMismatchError) and not set(theirs) <= set("EeN"):
                wrong.append(f"{text}\n    spark  {theirs}\n    hoodie {ours}")
            continue
        if not (ours == DIFFERENT[text] if text in DIFFERENT else agrees(ours, theirs)):
            wrong.append(f"{text}\n    spark  {theirs}\n    hoodie {ours}")
    assert not wrong, "\n".join(wrong)
    assert len(refused) < len(ANSWERS) / 4, refused


def test_a_table_fails_where_a_row_fails_and_the_error_names_the_row() -> None:
    for text in ANSWERS:
        ours = answer_of_hoodie(text)
        if not isinstance(ours, str):
            continue
        condition = RowExpression.parse(text, TABLE.schema, as_type=pa.bool_())
        if FAILS not in ours:
            assert "".join(LETTERS[one] for one in condition.values(TABLE).to_pylist()) == ours, text
            continue
        with pytest.raises(SchemaMismatchError) as caught:
            condition.values(TABLE)
        assert str(caught.value).startswith(f"{text}: a value of an expression does not fit its type"), text
        row = TABLE.slice(ours.index(FAILS), 1)
        named = [name for name in ("t", "i", "l", "id") if f" {name} = " in str(caught.value)]
        assert all(f" {name} = {row[name][0].as_py()}" in str(caught.value) for name in named), str(caught.value)


READS: dict[str, Callable[[hoodie.Table, str], object]] = {
    "to_arrow": lambda table, where: table.to_arrow(where=where).num_rows,
    "count": lambda table, where: table.count(where=where),
    "head": lambda table, where: table.head(100, where=where).num_rows,
}
"""How many rows match, by each method that takes a condition in this process."""
WRITES: dict[str, Callable[[hoodie.Table, str], object]] = {
    "delete_where": lambda table, where: table.delete_where(where).deleted,
    "update": lambda table, where: table.update({"id": "id"}, where=where).updated,
    "DELETE": lambda table, where: hoodie.sql(None, f"DELETE FROM t WHERE {where}", tables={"t": table}).deleted,
}


def test_every_method_gives_the_same_answer_or_our_error() -> None:
    """Of a table with statistics, whose partitions and row groups are pruned; a refused write leaves nothing.

    Each condition goes to one read and one write in turn: they find rows in one way, and differ in what they do next.
    """
    rows = TABLE.append_column("key", TABLE["id"].cast(pa.string()))
    properties = {"hoodie.metadata.index.column.stats.enable": "true"}
    tables = [
        hoodie.create(MemoryStore().uri(""), rows, record_key="key", partition_by=partition, properties=properties)
        for partition in ((), "t", "n")
    ]
    for table in tables:
        table.bulk_insert(rows)
    texts = [*conditions()[::11], *conditions()[-24:], "day > '0000-01-01'"]
    for place, text in enumerate(texts):
        table = tables[place % len(tables)]
        ours = answer_of_hoodie(text)
        fails = not isinstance(ours, str) or FAILS in ours
        read, write = (list(methods)[place // len(tables) % 3] for methods in (READS, WRITES))
        # In the table without partitions no row is left out that would fail, so nothing is changed.
        for name, count, asked in ((read, READS[read], table), (write, WRITES[write], tables[0])):
            if name == write and not fails:
                continue
            before = len(asked.timeline)
            try:
                found = count(asked, text)
            except HoodieError:
                assert fails, (text, name)
                assert len(asked.timeline) == before, (text, name)
            else:
                # Partitions and files may be left out in which a row would fail.
                assert found == (ours.count("T") if isinstance(ours, str) else 0), (text, name)


def _letters(frame: DataFrame, texts: list[str]) -> dict[str, str]:
    """Spark's answers; those that fail are asked alone."""
    from pyspark.sql import functions as F

    try:
        columns = [F.expr(text).alias(f"e{number}") for number, text in enumerate(texts)]
        rows: list[Any] = sorted(frame.select("id", *columns).collect())
    except Exception:  # The classes of Spark's errors differ between classic and Connect.
        if len(texts) == 1:
            return {texts[0]: FAILS}
        half = len(texts) // 2
        return _letters(frame, texts[:half]) | _letters(frame, texts[half:])
    return {text: "".join(LETTERS[row[place + 1]] for row in rows) for place, text in enumerate(texts)}


@pytest.mark.spark
def test_spark_gives_the_recorded_answers(spark: SparkSession, tmp_path: Path) -> None:
    if not hasattr(type(spark.range(0)), "scalar"):
        pytest.skip(
            "the answers are those of PySpark 4; PySpark 3.5 fails where it casts a date, and 4 does not cast it"
        )
    pq.write_table(TABLE, tmp_path / "t.parquet")
    frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(tmp_path / "t.parquet"))
    certain = [text for text, answer in ANSWERS.items() if set(answer) <= set("TFN")]
    failing = [text for text in ANSWERS if text not in certain]
    with session_with(spark, {ANSI: "true"}):
        assert _letters(frame, certain) == {text: ANSWERS[text] for text in certain}
        assert [text for text in failing[::25] if _letters(frame, [text])[text] != FAILS] == []
