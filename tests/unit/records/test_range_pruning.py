"""A condition on bounds: false only where no value between the bounds, and no null, can match."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatchError
from hoodie.records.condition import Condition
from hoodie.records.range_pruning import Bounds, bounded_columns, can_match

SCHEMA = pa.schema(
    [
        ("x", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("o", pa.struct([("x", pa.int64())])),
    ]
)


def bounds(name: str, *ranges: tuple[Any, Any] | None, nulls: bool = False) -> dict[str, Bounds]:
    """The ranges of places; None: not known. A range of two None has no value."""
    data_type = SCHEMA.field(name).type if "." not in name else pa.int64()
    known = np.array([found is not None for found in ranges])
    return {
        name: Bounds(
            low=pa.array([None if found is None else found[0] for found in ranges], data_type),
            high=pa.array([None if found is None else found[1] for found in ranges], data_type),
            is_known=known,
            may_be_null=~known | nulls,
            may_have_value=np.array([found is None or found[0] is not None for found in ranges]),
        )
    }


X = bounds("x", (0, 9), (10, 19), None, (None, None))
S = bounds("s", ("apple", "banana"), ("bz", "cherry"), ("é", "é"), None)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x = 9", "1.1."),
        ("x < 10", "1.1."),
        ("x <= 10", "111."),
        ("x > 19", "..1."),
        ("19 <= x", ".11."),
        ("x BETWEEN 9 AND 10", "111."),
        ("x BETWEEN 20 AND 30", "..1."),
        ("x IN (3, 30)", "1.1."),
        ("x IN (3, NULL)", "1.1."),
        ("x <=> 12", ".11."),
        ("x <=> NULL", "1111"),
        ("x = 2.5", "1.1."),
        ("x = 12 OR x = 3", "111."),
        ("x = 12 AND x = 3", "..1."),
        ("x = 12 AND length(s) > 3", ".11."),
        ("x = 12 OR length(s) > 3", "1111"),
        ("NOT (x = 12)", "1111"),
        ("x != 3", "1111"),
        ("CAST(x AS STRING) = '12'", "1111"),
        ("x IS NOT NULL", "111."),
        ("NOT (x IS NULL)", "111."),
        ("x IS NULL", "..1."),
        ("isnull(x)", "..1."),
        ("(x) = (12)", ".11."),
        ("x = 5000000000", "..1."),
        ("s LIKE 'b%'", "11.1"),
        ("s LIKE 'bz%'", ".1.1"),
        ("s LIKE 'a'", "1..1"),
        ("s LIKE '%a'", "1111"),
        ("s LIKE 'ban_na'", "1..1"),
        ("s LIKE 'é%'", "..11"),
        ("s NOT LIKE 'b%'", "1111"),
        ("s NOT LIKE 'b%' ESCAPE '!'", "1111"),
        ("startswith(s, 'ch')", ".1.1"),
        ("s > 'cherry'", "..11"),
        ("s = 5", "1111"),
        ("upper(s) = 'X'", "1111"),
    ],
)
def test_comparisons(where: str, expected: str) -> None:
    found = can_match(Condition.parse(where).tree, SCHEMA, X | S, 4)
    assert "".join("1" if kept else "." for kept in found) == expected


def test_greater_floats_are_never_excluded() -> None:
    """Writers leave NaN out of bounds, and NaN is greater than every number."""
    floats = bounds("f", (1.0, 2.0))
    for where, kept in {
        "f > 5": True,
        "f >= 5": True,
        "f < 1": False,
        "f = 5": False,
        "f BETWEEN 0 AND 0.5": False,
    }.items():
        assert can_match(Condition.parse(where).tree, SCHEMA, floats, 1).tolist() == [kept], where
    assert can_match(Condition.parse("f = CAST('NaN' AS DOUBLE)").tree, SCHEMA, floats, 1).all()


def test_other_types() -> None:
    def kept(where: str, found: dict[str, Bounds]) -> bool:
        return bool(can_match(Condition.parse(where).tree, SCHEMA, found, 1)[0])

    flags = bounds("b", (False, False))
    assert not kept("b", flags)
    assert not kept("b = true", flags)
    assert kept("NOT b", flags)
    days = bounds("day", (dt.date(1960, 1, 1), dt.date(1960, 12, 31)))
    assert kept("day = '1960-02-29'", days)
    assert not kept("day > DATE '1970-01-01'", days)
    # Which day a time is on depends on the session's time zone.
    assert kept("day > TIMESTAMP '1970-01-01 00:00:00'", days)
    assert not kept("o.x = 5", bounds("o.x", (6, 7)))
    assert not kept("O.X = 5", bounds("o.x", (6, 7)))


def test_columns_with_bounds() -> None:
    tree = Condition.parse("O.x > 5 AND S = 'a'").tree
    assert set(bounded_columns(tree, SCHEMA)) == {"o.x", "s"}
    with pytest.raises(SchemaMismatchError):
        bounded_columns(Condition.parse("nothing = 5").tree, SCHEMA)
    dotted = pa.schema([*SCHEMA, ("o.x", pa.int64())])
    assert set(bounded_columns(Condition.parse("o.x > 5").tree, dotted)) == set()
