"""Which parts of a condition have another result in another time zone of Spark's session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.records.condition import Condition
from hoodie.records.sql.translate import Translator, depends_on_zone

SCHEMA = pa.schema(
    [
        ("t", pa.timestamp("us", "UTC")),
        ("u", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("d", pa.date32()),
        ("s", pa.string()),
        ("x", pa.int32()),
    ]
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("t = '2024-01-01'", True),
        ("t = TIMESTAMP '2024-01-01 05:00:00'", True),
        ("t > DATE '2024-01-01'", True),
        ("t IN ('2024-01-01 05:00:00Z', '2024-01-01')", True),
        ("t BETWEEN '2024-01-01' AND '2024-01-02'", True),
        ("t = n", True),
        ("d < t", True),
        ("day(t) = 31", True),
        ("CAST(t AS DATE) = '2024-01-01'", True),
        ("d = TIMESTAMP '2024-01-01 05:00:00Z'", True),
        ("t = '2024-01-01 05:00:00Z'", False),
        ("t IN ('2024-01-01 05:00:00Z', '2024-01-01 05:00:00+02:00')", False),
        ("t = u", False),
        ("t IS NULL", False),
        ("t <=> NULL", False),
        ("n = '2024-01-01 05:00:00'", False),
        ("d = '2024-01-01'", False),
        ("n < DATE '2024-01-01'", False),
        ("s = '2024-01-01'", False),
        ("x IN (1, 2)", False),
    ],
)
def test_parts_that_depend_on_the_zone(where: str, expected: bool) -> None:
    tree = Condition.parse(where).tree
    assert depends_on_zone(tree, Translator(SCHEMA)) == expected
    left = Condition.parse(f"({where}) AND x = 1")
    kept = left.row_group_filter(SCHEMA, in_utc=False)
    assert kept is not None
    assert not expected or str(kept) == str(Condition.parse("x = 1").row_group_filter(SCHEMA, in_utc=False))


def test_keys_are_not_looked_up_by_times_that_depend_on_the_zone() -> None:
    columns = {"t": lambda values: values.cast(pa.string())}
    wanted = Condition.parse("t = '2024-01-01 05:00:00Z'").wanted_keys(SCHEMA, columns)
    assert wanted is not None
    assert len(wanted.keys) == 1
    assert Condition.parse("t = '2024-01-01 05:00:00'").wanted_keys(SCHEMA, columns) is None
