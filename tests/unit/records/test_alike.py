"""Which expressions have the same values in every Spark session, and in this process."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError
from hoodie.records.sql.alike import is_alike
from hoodie.records.sql.translate import Translator

SIDE = pa.struct(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("half", pa.float32()),
        ("fare", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("tags", pa.list_(pa.int32())),
    ]
)
SCHEMA = pa.schema([("t", SIDE), ("s", SIDE)])
PRICE, TEXT = pa.decimal128(10, 2), pa.string()
ALIKE = [
    ("s.tags", pa.list_(pa.int32())),
    ("t.fare + s.fare * 1.1", pa.float64()),
    ("-s.n", pa.int32()),
    ("-1.5", pa.float64()),
    ("s.n + 1", pa.int64()),
    ("s.fare > 10.5 AND t.n <= 3 OR NOT s.ok IS TRUE", pa.bool_()),
    ("s.n IN (1, 2, NULL)", pa.bool_()),
    ("s.at > t.at", pa.bool_()),
    ("s.fare <=> NULL", pa.bool_()),
    ("s.tags IS NULL", pa.bool_()),
    ("s.price BETWEEN 1 AND 2.5", pa.bool_()),
    ("s.name || '-' || t.name", TEXT),
    ("concat(s.name, 'x')", TEXT),
    ("coalesce(s.n, t.id, 0)", pa.int64()),
    ("nullif(s.name, 'x')", TEXT),
    ("CASE s.n WHEN 1 THEN 'a' ELSE s.name END", TEXT),
    ("CASE WHEN s.ok THEN t.at END", pa.timestamp("us", "UTC")),
    ("if(s.n > 3, s.n, 0)", pa.int32()),
    ("0", PRICE),
    ("1.5", PRICE),
    ("NULL", PRICE),
]
OTHERS = [
    ("s.fare / t.fare", pa.float64(), "NULL or an error for zero"),
    ("s.n % 3", pa.int32(), "NULL or an error for zero"),
    ("CAST(s.name AS INT)", pa.int32(), "NULL or an error for other text"),
    ("s.name = 3", pa.bool_(), "as above"),
    ("s.name", pa.int32(), "as above"),
    ("s.at > '2020-01-01'", pa.bool_(), "a time in the session's zone"),
    ("s.at > t.day", pa.bool_(), "as above"),
    ("year(s.at)", pa.int32(), "as above"),
    ("s.price * 2", PRICE, "an option decides about lost digits"),
    ("coalesce(s.price, t.n)", PRICE, "as above"),
    ("1.555", PRICE, "rounded"),
    ("12345678901", PRICE, "NULL or an error"),
    ("s.id", pa.int32(), "wraps or an error"),
    ("s.half + t.n", pa.float64(), "a float or a double"),
    ("s.half > t.id", pa.bool_(), "as above"),
    ("coalesce(s.half, 1)", pa.float32(), "as above"),
    ("s.half", pa.float64(), "two ways to widen"),
    ("rand()", pa.float64(), "only Spark computes it"),
    ("current_date()", pa.date32(), "as above"),
    ("s.other", TEXT, "not known"),
    (" + ".join(["s.n"] * 150), pa.int32(), "long"),
]


@pytest.mark.parametrize(("text", "as_type"), ALIKE)
def test_expressions_that_no_option_of_the_session_changes(text: str, as_type: pa.DataType) -> None:
    assert is_alike(text, Translator(SCHEMA), as_type)


@pytest.mark.parametrize(("text", "as_type", "reason"), OTHERS)
def test_expressions_about_which_spark_decides(text: str, as_type: pa.DataType, reason: str) -> None:
    assert not is_alike(text, Translator(SCHEMA), as_type), reason


def test_text_that_is_no_expression() -> None:
    with pytest.raises(InvalidConfigError, match="not a Spark SQL expression"):
        is_alike("s.n +", Translator(SCHEMA), pa.int32())
