"""Which names of a query are tables, and which are rows of its WITH clauses."""

from __future__ import annotations

import pytest

from hoodie.records.sql.parse import parse_statement
from hoodie.statements.references import references


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT * FROM <t>",
        "WITH t AS (SELECT * FROM <t>) SELECT * FROM t",
        "WITH t AS (SELECT * FROM <t>), u AS (SELECT * FROM T) SELECT * FROM u JOIN t",
        "WITH u AS (SELECT * FROM <t>), t AS (SELECT 1) SELECT * FROM u, t",
        "WITH u AS (SELECT 1) SELECT * FROM <t> WHERE x IN (SELECT * FROM u)",
        "WITH t AS (SELECT 1) SELECT * FROM <db.t>",
        "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN <t>",
        "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t",
        "WITH t AS (WITH t AS (SELECT * FROM <t>) SELECT * FROM t) SELECT * FROM t",
        "INSERT INTO <m> WITH t AS (SELECT * FROM <t>) SELECT * FROM t",
    ],
)
def test_names_of_with_clauses(marked: str) -> None:
    """The tables are between < and >."""
    text = marked.replace("<", "").replace(">", "")
    found = references(text, parse_statement(text))
    shown = text
    for one in reversed(found):
        shown = f"{shown[: one.start]}<{shown[one.start : one.end]}>{shown[one.end :]}"
    assert shown == marked
