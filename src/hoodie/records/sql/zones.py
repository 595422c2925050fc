"""Parts of a condition whose result depends on the time zone of Spark's session, which is not known here.

Spark reads times without a zone (text, dates, columns) in the time zone of its session when it compares them with times
that have a zone. Expressions that this library evaluates assume UTC.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import HoodieError
from hoodie.records.sql.dates import names_zone
from hoodie.records.sql.translate import Translator
from hoodie.records.sql.values import Value


def depends_on_zone(node: exp.Expression, translator: Translator) -> bool:
    """Return whether a condition without AND and OR may be true in one time zone and not in another.

    That is so if it has a time with a zone, and anything else than such times, tests for null, and times in text that
    names its zone.
    """
    parts = [part for part in node.find_all(exp.Expression) if not isinstance(part, exp.Literal)]
    values = [value for part in parts if (value := _value(part, translator)) is not None]
    if not any(map(_is_zoned, values)):
        return False
    if any(not _is_zoned(value) and value.family not in ("null", "boolean") for value in values):
        return True
    return not all(one.is_string and names_zone(one.name) for one in node.find_all(exp.Literal))


def _is_zoned(value: Value) -> bool:
    return bool(pa.types.is_timestamp(value.type) and value.type.tz is not None)


def _value(part: exp.Expression, translator: Translator) -> Value | None:
    try:
        return translator.value(part)
    except HoodieError:
        return None  # not an expression of its own, such as the type of a cast
