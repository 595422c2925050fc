"""RLIKE finds what it finds in Spark, in texts with every end of a line; the current date is that of the session."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie
from hoodie.records.expression import RowExpression

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

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
def test_the_current_date_is_that_of_the_session(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """In the first two zones the dates are never the same."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        today = spark.sql("SELECT current_date()").collect()[0][0]
        rows = pa.table({"id": ["x", "y", "z"], "day": [today + timedelta(days=more) for more in (-1, 0, 1)]})
        t = hoodie.create(str(tmp_path / "t"), rows, record_key="id", partition_by="day", spark=spark)
        t.upsert(rows)
        assert [row["id"] for row in t.read(where="day = current_date()").collect()] == ["y"]
        assert [row["id"] for row in t.read(where="day > CAST(now() AS DATE)").collect()] == ["z"]
        assert t.delete_where("day < current_date").deleted == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
