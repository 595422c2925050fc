"""Conditions are parsed once and travel; what they say about partitions, keys and time zones."""

from __future__ import annotations

import pickle
import threading
from datetime import date

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.records.condition import Condition, WantedKeys
from hoodie.records.sql.parse import DEPTH_MAX
from hoodie.records.sql.translate import Translator, depends_on_zone

TABLE = pa.table({"id": [1, 2, 3, 4], "city": ["sf", "la", None, "sf"]})


def matching(condition: Condition) -> list[int]:
    """Ids of the rows that match."""
    found: list[int] = condition.row_filter(TABLE.schema).matching(TABLE)["id"].to_pylist()
    return found


def test_a_pickled_condition_is_equal_and_works() -> None:
    joined = Condition.parse(" AND ".join(f"(id <> {number} OR city = 'it''s')" for number in range(2000, 1, -1)))
    again: Condition = pickle.loads(pickle.dumps(joined))
    assert again == joined
    assert hash(again) == hash(joined)
    assert matching(again) == matching(joined) == [1]


_NESTED = {
    "parentheses": "({}{}{})".format("(" * 10_000, "id = 1", ")" * 10_000),
    "not": "NOT " * 10_000 + "id = 1",
    "plus": "id" + " + id" * 10_000 + " = 1",
    "equal": "id = 1" + " = true" * 10_000,
    "or in parentheses": "(" * 10_000 + "id = 1" + " OR id = 2) AND id < 4" * 10_000,
    "coalesce": "coalesce(" * 10_000 + "id" + ")" * 10_000 + " = 1",
    "dots": "id" + ".id" * 10_000 + " = 1",
    "chains below chains": "({}id{} = 1".format("(" * 50, " + 1" * 60 + ")" + (" + 1" * 60 + ")") * 50),
    "comments": "/*" * 10_000,
}


@pytest.mark.parametrize("case", _NESTED)
def test_deep_text_is_refused(case: str) -> None:
    with pytest.raises(InvalidConfigError) as raised:
        Condition.parse(_NESTED[case])
    assert len(str(raised.value)) < 1000


def test_the_deepest_condition_is_computed() -> None:
    deepest = Condition.parse("id" + " / 1" * (DEPTH_MAX - 3) + " = 1")
    assert matching(deepest) == [1]
    with pytest.raises(InvalidConfigError, match="nested"):
        Condition.parse("id" + " / 1" * DEPTH_MAX + " = 1")


@pytest.mark.parametrize(
    "text",
    [
        "id" + " + 1" * 1000 + " = 1002",
        "id" + " + 1 - 1" * 500 + " = 2",
        "id" + " * 1" * 1000 + " = 2",
        "cast(id AS string)" + " || 'x'" * 1000 + " = concat('2', '" + "x" * 1000 + "')",
    ],
)
def test_long_sums_are_computed_in_their_order(text: str) -> None:
    """Arrow computes them by recursion, here in a thread with a small stack."""
    condition = Condition.parse(text)
    found: list[Condition] = []
    before = threading.stack_size(2 * 1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(pickle.loads(pickle.dumps(condition))))
        thread.start()
        thread.join()
        results: list[list[int]] = []
        thread = threading.Thread(target=lambda: results.append(matching(condition)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [condition]
    assert results == [[2]]


@pytest.mark.later
@pytest.mark.parametrize("connector", ["OR", "AND"])
def test_long_chains_are_computed(connector: str) -> None:
    """Arrow computes a chain by recursion: 10,000 operands ended the interpreter."""
    leaf = {"OR": "id = {}", "AND": "id <> {}"}[connector]
    long = Condition.parse(f" {connector} ".join(leaf.format(number) for number in range(3, 10_003)))
    expected = {"OR": [3, 4], "AND": [1, 2]}[connector]
    assert matching(long) == expected
    pruned = long.row_group_filter(TABLE.schema, in_utc=True)
    assert pruned is not None
    found = ds.dataset(TABLE).to_table(filter=pruned)
    assert set(expected) <= set(found["id"].to_pylist())


@pytest.mark.parametrize("number", ["9" * 5000, "0." + "9" * 5000, "-" + "9" * 39])
def test_numbers_of_too_many_digits_are_refused(number: str) -> None:
    with pytest.raises(UnsupportedError, match="digits") as raised:
        matching(Condition.parse(f"id = {number}"))
    assert len(str(raised.value)) < 500


def test_text_without_utf_8_form_is_refused() -> None:
    with pytest.raises(InvalidConfigError):
        Condition.parse("city = '\ud800'")


# Partitions that a condition rules out

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
    {"city": ["sf", "la", None, "ny"], "day": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3), None]}
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


def test_a_nested_partition_field_is_a_column_with_a_dotted_name() -> None:
    assert len(Condition.parse("city = 'sf'").partitions_to_read(SCHEMA, VALUES.slice(0, 0))) == 0
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


# Parts with another result in another time zone of Spark's session

ZONED = pa.schema(
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
    assert depends_on_zone(tree, Translator(ZONED)) == expected
    assert Condition.parse(f"NOT (x = 1 OR (x = 2 AND {where}))").depends_on_zone(ZONED) == expected
    left = Condition.parse(f"({where}) AND x = 1")
    kept = left.row_group_filter(ZONED, in_utc=False)
    assert kept is not None
    assert not expected or str(kept) == str(Condition.parse("x = 1").row_group_filter(ZONED, in_utc=False))


def test_keys_are_not_looked_up_by_times_that_depend_on_the_zone() -> None:
    columns = {"t": lambda values: values.cast(pa.string())}
    wanted = Condition.parse("t = '2024-01-01 05:00:00Z'").wanted_keys(ZONED, columns)
    assert wanted is not None
    assert len(wanted.keys) == 1
    assert Condition.parse("t = '2024-01-01 05:00:00'").wanted_keys(ZONED, columns) is None


@pytest.mark.parametrize(
    ("where", "keys", "is_certain"),
    [
        ("k = '1.0' AND c = 1", {"1.0"}, True),
        ("c = 1 AND (k = '1.0' OR k = '2') AND k IN ('2', '3')", {"2"}, True),
        ("k = '1.0' OR c = 1", {"1.0", "1.00"}, False),
        ("(k = '1.0' OR c = 2) AND c IN (1, 3, 4)", {"1.0", "2.00"}, False),
        ("c IN (1, 2) AND c = 1", {"1.00"}, False),
    ],
)
def test_keys_with_several_texts_do_not_exclude_those_with_one(where: str, keys: set[str], is_certain: bool) -> None:
    """JVM writers store the decimal 1.00 as `1.0`, too: `k` are the stored texts, `c` are the values."""
    columns = {"k": lambda values: values, "c": lambda values: values.cast(pa.string())}
    schema = pa.schema([("k", pa.string()), ("c", pa.decimal128(9, 2))])
    assert Condition.parse(where).wanted_keys(schema, columns) == WantedKeys(frozenset(keys), is_certain)
