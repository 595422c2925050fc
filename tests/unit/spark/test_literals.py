"""Literals that a session of Spark would read otherwise than this library are refused by name."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.spark.session import check_literals
from tests.support.tables import new_table, rows

ANSI, NAMES = "spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers"
AS_WRITTEN = "spark.sql.parser.escapedStringLiterals"
JOINED = "spark.sql.legacy.consecutiveStringLiterals.enabled"


class Confs:
    """A session with these settings, of a release of Spark; it is its own `conf`."""

    def __init__(self, version: str = "4.1.0", **settings: str) -> None:
        self.version, self.conf, self.reads = version, self, 0
        self._settings = {ANSI: "true" if version > "4" else "false", **settings}

    def get(self, name: str, default: str | None = None) -> Any:
        self.reads += 1
        return self._settings.get(name, default)


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        ("city = 'it''s'", {"version": "3.5.7"}, "Spark 3 "),
        ('city = "a""b"', {"version": "3.5.7"}, "Spark 3 "),
        ("city = 'it''s'", {JOINED: "true"}, JOINED),
        ("city = 'it''s'", {AS_WRITTEN: "true"}, AS_WRITTEN),
        (r"city = 'it\'s'", {AS_WRITTEN: "true"}, AS_WRITTEN),
        (r"city RLIKE '\\d'", {AS_WRITTEN: "true"}, AS_WRITTEN),
        ('"city" = 1', {NAMES: "true"}, NAMES),
        ('"city" = 1', {NAMES: "true", ANSI: "false"}, None),
        ('"city" = 1', {"version": "3.5.7", NAMES: "true"}, None),
        ("city = 'it''s' OR city = 'it\\'s' OR city = \"it's\"", {}, None),
        (r"city = 'it\'s' OR city = 'a' 'b' OR city = ''", {"version": "3.5.7", JOINED: "true"}, None),
        ("city = '\"' OR `a\"b` = 'x' -- 'it''s'", {AS_WRITTEN: "true", JOINED: "true", NAMES: "true"}, None),
        (r"`a\b` = ''", {AS_WRITTEN: "true", JOINED: "true"}, None),
        ("city = 'it''s", {JOINED: "true"}, None),
    ],
)
def test_only_literals_of_another_value_are_refused(text: str, settings: dict[str, str], expected: str | None) -> None:
    session = Confs(**settings)
    if expected is None:
        check_literals(session, text)
        return
    with pytest.raises(InvalidConfigError, match=expected):
        check_literals(session, text)


def test_other_texts_read_no_settings() -> None:
    session = Confs()
    check_literals(session, "city = 'it' AND ts > 1")
    assert session.reads == 0


def test_texts_of_each_call_are_checked_before_anything_is_read() -> None:
    context = hoodie.open(new_table(rows("a").schema, rows("a")).path, spark=False)._context
    session = Confs(**{AS_WRITTEN: "true"})
    with pytest.raises(InvalidConfigError, match=AS_WRITTEN):
        context.condition(r"city = 'it\'s'", session=session)
    with pytest.raises(InvalidConfigError, match=AS_WRITTEN):
        context.condition(pl.col("city") == "it's", session=session)
    with pytest.raises(InvalidConfigError, match=AS_WRITTEN):
        context.clock(session).set_in("'it''s'", list)
    assert context.condition(r"city = 'it\'s'") is not None
