"""Random Avro types with values for them, as fastavro writes them and as Arrow gives them back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

Values = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Typed:
    """An Avro type and a strategy for its values."""

    avro: Any
    values: Values


def decimals(precision: int, scale: int) -> Values:
    limit = 10**precision - 1
    exact = Context(prec=60)
    return st.integers(-limit, limit).map(lambda number: Decimal(number).scaleb(-scale, exact))


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
AWARE = MOMENTS.map(lambda at: at.replace(tzinfo=UTC))
UUIDS = st.integers(0, 2**128 - 1).map(lambda number: str(uuid.UUID(int=number)))


def logical(kind: str, name: str, values: Values) -> Typed:
    return Typed({"type": kind, "logicalType": name}, values)


def decimal_bytes(precision: int, scale: int) -> Typed:
    avro = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    return Typed(avro, decimals(precision, scale))


def _to_millis(at: Any) -> Any:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


SIMPLE = [
    Typed("boolean", st.booleans()),
    Typed("int", st.integers(-(2**31), 2**31 - 1)),
    Typed("long", st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-70, 70))),
    Typed("float", st.floats(width=32, allow_nan=False)),
    Typed("double", st.floats(allow_nan=False)),
    Typed("string", st.text(max_size=100)),
    Typed("bytes", st.binary(max_size=20)),
    logical("string", "uuid", UUIDS),
    logical("int", "date", st.dates()),
    logical("int", "time-millis", st.times().map(_to_millis)),
    logical("long", "time-micros", st.times()),
    logical("long", "timestamp-micros", AWARE),
    logical("long", "timestamp-millis", AWARE.map(_to_millis)),
    logical("long", "local-timestamp-micros", MOMENTS),
    *(decimal_bytes(precision, scale) for precision, scale in ((1, 0), (10, 2), (19, 0), (38, 18))),
]


def optional(inner: Typed, null_first: bool) -> Typed:
    avro = ["null", inner.avro] if null_first else [inner.avro, "null"]
    return Typed(avro, st.one_of(st.none(), inner.values))


@st.composite
def named(draw: st.DrawFn, number: int) -> Typed:
    """A type that has a name."""
    kind = draw(st.sampled_from(("fixed", "decimal", "enum")))
    if kind == "enum":
        symbols = [f"S{place}" for place in range(draw(st.integers(1, 100)))]
        return Typed({"type": "enum", "name": f"n{number}", "symbols": symbols}, st.sampled_from(symbols))
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return Typed({"type": "fixed", "name": f"n{number}", "size": size}, st.binary(min_size=size, max_size=size))
    precision, size = draw(st.sampled_from(((1, 1), (10, 5), (18, 8), (20, 9), (38, 16), (38, 20))))
    fixed = {"type": "fixed", "name": f"n{number}", "size": size}
    return Typed({**fixed, "logicalType": "decimal", "precision": precision, "scale": 1}, decimals(precision, 1))


@st.composite
def types(draw: st.DrawFn, depth: int, counter: list[int]) -> Typed:
    """Any type that a table may have; `counter` makes names unique."""
    counter[0] += 1
    deep = ("simple", "simple", "named", "optional", "array", "map", "record")
    kind = draw(st.sampled_from(deep if depth else ("simple", "named")))
    if kind == "simple":
        return draw(st.sampled_from(SIMPLE))
    if kind == "named":
        return draw(named(counter[0]))
    if kind == "record":
        return draw(records(depth - 1, counter, f"r{counter[0]}"))
    inner = draw(types(depth - 1, counter))
    if kind == "array":
        return Typed({"type": "array", "items": inner.avro}, st.lists(inner.values, max_size=5))
    if kind == "map":
        values = st.dictionaries(st.text(max_size=8), inner.values, max_size=4)
        return Typed({"type": "map", "values": inner.avro}, values)
    return inner if isinstance(inner.avro, list) else optional(inner, draw(st.booleans()))


@st.composite
def records(draw: st.DrawFn, depth: int, counter: list[int], name: str) -> Typed:
    """A record of one to five fields."""
    fields = [draw(types(depth, counter)) for _ in range(draw(st.integers(1, 5)))]
    avro = [{"name": f"f{place}", "type": child.avro} for place, child in enumerate(fields)]
    return Typed(
        {"type": "record", "name": name, "fields": avro},
        st.fixed_dictionaries({f"f{place}": child.values for place, child in enumerate(fields)}),
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A record schema and some rows of it."""
    record = draw(records(3, [0], "row"))
    return record.avro, draw(st.lists(record.values, max_size=8))
