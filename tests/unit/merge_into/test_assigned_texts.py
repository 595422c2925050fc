"""A text that is assigned to a column of another type is a value of it, or the write is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.support.refusals import refused
from tests.support.tables import new_table, values_of

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.string()),
        ("i", pa.int64()),
        ("d", pa.float64()),
        ("b", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("n", pa.decimal128(10, 2)),
    ]
)
COLUMNS = SCHEMA.names[2:]


def table(*texts: str | None) -> hoodie.Table:
    rows = [{"id": f"k{number}", "s": text} for number, text in enumerate(texts)]
    return new_table(SCHEMA, pa.Table.from_pylist(rows, SCHEMA))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("expression", ["s", "concat(s, '')", "CASE WHEN id = 'k0' THEN s ELSE s END"])
def test_a_text_that_is_no_value_is_refused(column: str, expression: str) -> None:
    t = table("x", None, "z")
    with refused(t, "2 texts are no values of type", 'the first is "x"', "CAST", error=hoodie.SchemaMismatchError):
        t.update({column: expression})


KINDS = ("bigint", "double", "boolean", "timestamp", "date", "decimal(10, 2)")


@pytest.mark.parametrize(("column", "kind"), [*zip(COLUMNS, KINDS, strict=True)])
def test_a_cast_gives_null(column: str, kind: str) -> None:
    t = table("x")
    assert t.update({column: f"CAST(s AS {kind})"}).updated == 1
    assert values_of(t, column) == [(None,)]


@pytest.mark.parametrize(
    ("column", "texts", "found"),
    [("i", ["7", None, " 8 "], {7, None, 8}), ("d", ["1.5"], {1.5}), ("b", ["true"], {True})],
)
def test_texts_that_are_values_are_stored(column: str, texts: list[str | None], found: set[Any]) -> None:
    t = table(*texts)
    t.update({column: "s"})
    assert {*t.to_arrow([column])[column].to_pylist()} == found
