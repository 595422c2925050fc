"""JSON messages on Spark by its own parser, `from_json`, where that reads as the parser of this process does.

A message is the only element of a list, as in `json_types.py`, so that nothing behind an object is ignored. What
`from_json` refuses, or reads too kindly (text that is no UTF-8, numbers beyond a double, other forms of times), is bad;
the reasons of the bad messages come from the parser of this process, which reads them alone.

Two differences are left: a number, an object or a list in a text column becomes its JSON text, and of two members of
one name the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from hoodie.ingest.bad_rows import POSITION, REASON, VALUE
from hoodie.ingest.json_types import DATE_TEXT, LOCAL_TEXT, ZONED_TEXT
from hoodie.ingest.transforms.cast import SPARK_NAMES
from hoodie.records.sql.quoting import literal_of, quoted

_PARSED: Final = "_hoodie_parsed"
_BAD: Final = "_hoodie_bad"
ROW: Final = f"get({_PARSED}.v, 0)"
"""The object that `parse_call` found in a text; null if there is no element, also in ANSI mode."""
IS_ONE_OBJECT: Final = f"{_PARSED}.{_BAD} IS NULL AND size({_PARSED}.v) = 1 AND {ROW} IS NOT NULL"
_PLAIN: Final = SPARK_NAMES.keys() - {pa.int8(), pa.binary(), pa.date32()}
_DAYS: Final = r"^-?\d{1,6}$"
_WITHOUT_SECONDS: Final = r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d)($| ?[Z+-])"
_SPARK_MIN: Final = 4
"""Spark 3.5 has no `is_valid_utf8`."""


def reads_alike(schema: pa.Schema, version: str) -> bool:
    """Return whether a Spark of this version reads messages of the schema as the parser of this process does."""
    columns = (field.type for field in schema)
    return _is_new(version) and all(kind == pa.date32() or _is_instant(kind) or _is_plain(kind) for kind in columns)


def valid_text(column: str, version: str) -> str:
    """Return bytes or text as text in a Spark of this version; what is no UTF-8 becomes U+FFFD, as in process.

    Spark 4 raises an error of `decode`.
    """
    return f"make_valid_utf8(CAST({column} AS STRING))" if _is_new(version) else f"decode({column}, 'UTF-8')"


def _is_new(version: str) -> bool:
    return int(version.partition(".")[0]) >= _SPARK_MIN


def parse_call(text: str, kind: str, options: Mapping[str, str]) -> str:
    """Return a column that parses a text as the only element of a list, whose `ROW` has the type `kind`."""
    options = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    texts = ", ".join(literal_of(one) for pair in options.items() for one in pair)
    kind = literal_of(f"struct<v: array<{kind}>, {_BAD}: string>")
    return f"from_json(concat('{{\"v\":[', {text}, ']}}'), {kind}, map({texts})) AS {_PARSED}"


def parsed(messages: Any, schema: pa.Schema, *, skips_null: bool) -> Any:
    """Return a DataFrame of messages with the columns of the schema, and `REASON`, `POSITION` and `VALUE`.

    `messages`: with `VALUE` (binary), `POSITION` and others, which stay. `REASON` of a bad message is not its cause.
    `VALUE` is binary, and null for good messages.
    """
    text = f"CAST({VALUE} AS string)"
    others = [quoted(name) for name in messages.columns if name not in (VALUE, POSITION)]
    found = messages.where(f"{VALUE} IS NOT NULL") if skips_null else messages
    found = found.selectExpr(VALUE, POSITION, *others, parse_call(text, _type_text(pa.struct(list(schema))), {}))
    checks = (check for field in schema for check in _checks(f"{ROW}.{quoted(field.name)}", field.type))
    is_good = f"coalesce({' AND '.join([IS_ONE_OBJECT, f'is_valid_utf8({text})', *checks])}, false)"
    columns = [f"{_value(f'{ROW}.{quoted(field.name)}', field.type)} AS {quoted(field.name)}" for field in schema]
    return found.selectExpr(
        *columns,
        *others,
        f"CASE WHEN NOT {is_good} THEN 'the value does not fit the columns' END AS {REASON}",
        POSITION,
        f"CASE WHEN NOT {is_good} THEN {VALUE} END AS {VALUE}",
    )


def _is_plain(kind: pa.DataType, *, in_list: bool = False) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_plain(field.type, in_list=in_list) for field in kind.fields)
    if pa.types.is_list(kind):
        return _is_plain(kind.value_type, in_list=True)
    return kind in _PLAIN and not (in_list and pa.types.is_floating(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def _type_text(kind: pa.DataType) -> str:
    """Return the type that `from_json` reads; dates and times are read as text."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{quoted(field.name)}: {_type_text(field.type)}' for field in kind.fields)}>"
    if pa.types.is_list(kind):
        return f"array<{_type_text(kind.value_type)}>"
    return SPARK_NAMES[kind] if kind in _PLAIN else "string"


def _checks(column: str, kind: pa.DataType) -> Iterator[str]:
    """Yield conditions of a good column; null is good."""
    if pa.types.is_struct(kind):
        for field in kind.fields:
            yield from _checks(f"{column}.{quoted(field.name)}", field.type)
    elif pa.types.is_floating(kind):
        yield f"coalesce(abs({column}) < double('Infinity'), true) AND NOT coalesce(isnan({column}), false)"
    elif pa.types.is_temporal(kind):
        pattern = f"{DATE_TEXT}|{_DAYS}" if pa.types.is_date(kind) else f"{LOCAL_TEXT}|{ZONED_TEXT}"
        yield f"coalesce({column} RLIKE r'{pattern}' AND {_value(column, kind)} IS NOT NULL, {column} IS NULL)"


def _value(column: str, kind: pa.DataType) -> str:
    if pa.types.is_date(kind):
        days = f"date_add(DATE '1970-01-01', try_cast({column} AS int))"
        return f"IF({column} RLIKE r'{_DAYS}', {days}, try_cast({column} AS date))"
    if _is_instant(kind):
        # Spark's cast requires seconds before a zone, and no space.
        whole = f"regexp_replace({column}, r'{_WITHOUT_SECONDS}', '$1:00$2')"
        zoned = f"concat(substring({whole}, 1, 11), replace(substring({whole}, 12), ' ', ''))"
        local = f"concat({whole}, IF(length({column}) = 10, 'T00:00:00Z', 'Z'))"
        return f"try_cast(IF({column} RLIKE r'{ZONED_TEXT}', {zoned}, {local}) AS timestamp)"
    return column
