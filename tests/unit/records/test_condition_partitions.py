"""Partitions that a condition rules out, and the key values it asks for."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import SchemaMismatchError
from hoodie.records.condition import Condition

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("key", pa.string()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("fare", pa.float64()),
        ("price", pa.decimal128(10, 2)),
        ("rider", pa.struct([("Zone", pa.int32())])),
    ]
)
VALUES = pa.table(
    {
        "city": ["sf", "la", None, "ny"],
        "day": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3), None],
    }
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("city = 'sf'", [True, False, False, False]),
        ("CITY = 'sf' AND id = 1", [True, False, False, False]),
        ("city = 'sf' OR id = 1", [True, True, True, True]),
        ("(city = 'sf' AND id = 1) OR (city = 'ny' AND id = 2)", [True, False, False, True]),
        ("city <> 'sf'", [False, True, False, True]),
        ("NOT city = 'sf'", [False, True, False, True]),
        ("city IS NULL", [False, False, True, False]),
        ("day >= '2024-01-02'", [False, True, True, False]),
        ("day >= '2024-01-02' AND city <> 'la'", [False, False, False, False]),
        ("year(day) = 2024", [True, True, True, False]),
        ("city = key", [True, True, True, True]),
        ("id = 1", [True, True, True, True]),
        ("false", [False, False, False, False]),
        ("city = 'sf' AND NULL", [False, False, False, False]),
    ],
)
def test_a_partition_goes_only_if_the_condition_cannot_hold_there(where: str, expected: list[bool]) -> None:
    assert Condition.parse(where).partitions_to_read(SCHEMA, VALUES).to_pylist() == expected


def test_an_unknown_value_keeps_its_partition_unless_another_column_rules_it_out() -> None:
    unknown = {"city": pa.array([False, True, True, True])}
    by_city = Condition.parse("city = 'sf'")
    assert by_city.partitions_to_read(SCHEMA, VALUES, unknown=unknown).to_pylist() == [True, True, True, True]
    by_both = Condition.parse("city = 'sf' AND day = '2024-01-02'")
    assert by_both.partitions_to_read(SCHEMA, VALUES, unknown=unknown).to_pylist() == [False, True, False, False]


def test_no_partition_gives_no_flags() -> None:
    assert len(Condition.parse("city = 'sf'").partitions_to_read(SCHEMA, VALUES.slice(0, 0))) == 0


def test_a_nested_partition_field_is_a_column_with_a_dotted_name() -> None:
    values = pa.table({"rider.Zone": pa.array([1, 2], pa.int32())})
    assert Condition.parse("rider.zone = 2 AND id > 5").partitions_to_read(SCHEMA, values).to_pylist() == [False, True]


def test_values_of_another_type_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="partition values of 'day': expected date32"):
        Condition.parse("day > '2024'").partitions_to_read(SCHEMA, pa.table({"day": ["2024-01-01"]}))


def test_a_misspelt_column_is_refused_even_outside_the_partition_fields() -> None:
    with pytest.raises(SchemaMismatchError, match="no column 'idd'"):
        Condition.parse("city = 'sf' AND idd = 1").partitions_to_read(SCHEMA, VALUES)


@given(
    st.recursive(
        st.sampled_from(["p = 1", "p > 1", "p IS NULL", "x = 1", "p = x", "x <> 2", "p IN (0, NULL)"]),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=6,
    )
)
def test_no_partition_with_a_matching_row_is_dropped(where: str) -> None:
    schema = pa.schema([("p", pa.int32()), ("x", pa.int32())])
    options = [None, 0, 1, 2]
    rows = pa.table({"p": [p for p in options for _ in options], "x": options * len(options)}, schema=schema)
    partitions = pa.table({"p": pa.array(options, pa.int32())})
    kept = partitions.filter(Condition.parse(where).partitions_to_read(schema, partitions)).column("p").to_pylist()
    assert set(Condition.parse(where).row_filter(schema).matching(rows).column("p").to_pylist()) <= set(kept)
