"""Spark SQL text to Arrow expressions: results on small tables, refusals, and what a scan may be told."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.records.condition import Condition
from hoodie.records.expression import RowExpression, columns_of

NAN = float("nan")
TABLE = pa.table(
    {
        "id": pa.array([0, 1, 2, 3], pa.int32()),
        "Fare": pa.array([1.5, NAN, None, 30.0]),
        "price": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("-3.25")], pa.decimal128(10, 2)),
        "city": pa.array(["sf", "it's", None, "SF"]),
        "day": pa.array([date(2024, 1, 1), date(2024, 2, 29), None, date(2023, 12, 31)]),
        "at_ms": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, None, None], pa.timestamp("ms", "UTC")),
        "kind": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "rider": pa.array([{"Name": "x"}, {"Name": "y"}, None, {"Name": None}]),
        "large": pa.array(["sf", "la", None, ""], pa.large_string()),
    }
)
SCHEMA = TABLE.schema


def rows(where: str) -> list[int]:
    found: list[int] = Condition.parse(where).row_filter(SCHEMA).matching(TABLE).column("id").to_pylist()
    return found


def test_decimal_literals_become_the_nearest_double() -> None:
    numbers = [0.1, 0.2, 0.3, 0.6, 0.7, 1.1, 4.35, 0.001, 123456.789, 1e-7]
    table = pa.table({"x": numbers})
    for number in numbers:
        text = f"{Decimal(repr(number)):f}"
        for where in (f"x = {text}", f"x IN ({text})", f"x >= {text} AND x <= {text}"):
            assert Condition.parse(where).row_filter(table.schema).matching(table)["x"].to_pylist() == [number], where


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("fare > 2", [1, 3]),
        ("fare = double('NaN')", [1]),
        ("NOT fare > 2", [0]),
        ("FARE IS NULL OR `city` = 'sf'", [0, 2]),
        ("city = 'it''s'", [1]),
        ("city = 'it\\'s'", [1]),
        ("city <> 'sf'", [1, 3]),
        ("city NOT IN ('sf', NULL)", []),
        ("city IN ('sf', NULL)", [0]),
        ("price >= 1.505", [1]),
        ("price = 1.505", []),
        ("id / 5.0 = 0.6", [3]),
        ("fare / 2 = 0.75", [0]),
        ("CAST(price AS DOUBLE) = -3.25", [3]),
        ("price <> 1.505", [0, 1, 3]),
        ("day >= '2024'", [0, 1]),
        ("at_ms = '2024-01-01 00:00:00'", [0]),
        ("at_ms < '2024-01-01 00:00:00.000001'", [0]),
        ("at_ms = TIMESTAMP '2024-01-01 00:00:00.000001'", []),
        ("kind = 'a'", [0, 3]),
        ("rider.name = 'y'", [1]),
        ("large LIKE 's%' OR large = ''", [0, 3]),
        ("large = city", [0]),
        ("id::bigint = 3", [3]),
        ("id IN (" + ",".join(map(str, range(3, 5000))) + ")", [3]),
        (" OR ".join(f"id = {number}" for number in range(2, 2000)), [2, 3]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_is_true(where: str, expected: list[int]) -> None:
    assert rows(where) == expected


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("rlike(city, 'a(?=b)')", "RLIKE"),
        ("id IN (SELECT 1)", "SELECT"),
        ("made_up(id) = 1", "made_up"),
        ("current_date() > day", "CURRENT_DATE"),
        ("CAST(fare AS STRING) = '1.5'", "double to string"),
        ("round(fare, 31) = 1", "ROUND"),
        ("fare % 2 = 0", "double % int32"),
        ("city LIKE kind", "LIKE"),
        ("TRY_CAST(city AS INT) = 1", "TRY_CAST"),
        ("city IN (1, 2)", "text and numbers"),
        ("CAST(id AS INTERVAL) = 1", "INTERVAL"),
    ],
)
def test_what_has_no_faithful_form_is_refused_by_name(text: str, piece: str) -> None:
    with pytest.raises(UnsupportedError, match=piece.replace("(", r"\(")):
        Condition.parse(text).row_filter(SCHEMA)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fares > 1", r"no column 'fares'; did you mean Fare"),
        ("rider.nam = 'x'", r"no column 'rider.nam'; did you mean rider.Name"),
        ("zzz = 1", "the columns are id, Fare"),
        ("day = 'tomorrow'", "'tomorrow' is not a date"),
        ("at_ms > 'noon'", "'noon' is not a timestamp"),
        ("day = DATE '2024-02-31'", "'2024-02-31' is not a date: day is out of range"),
        ("id = 'x'", "'x' is not a value of type int64"),
        ("id + 1", "expected a condition, found 'id \\+ 1' of type int32"),
        ("rider = rider", "cannot compare struct"),
        ("day = 5", "cannot compare date32"),
        ("day = 2026-11-05", "write a date in quotes"),
        ("rider = 1", "cannot compare struct"),
    ],
)
def test_names_and_types_that_do_not_fit_are_named(text: str, reason: str) -> None:
    with pytest.raises(SchemaMismatchError, match=reason):
        Condition.parse(text).row_filter(SCHEMA)


@pytest.mark.parametrize("text", ["", "id =", "id = 1; id = 2", "SELECT 1", "id = 'x", "id = 1 city"])
def test_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfigError, match="expression"):
        Condition.parse(text).row_filter(SCHEMA)


@pytest.mark.parametrize(
    ("text", "as_type", "expected"),
    [
        ("price * 1.1", None, [Decimal("1.650"), Decimal("2.200"), None, Decimal("-3.575")]),
        ("price * 1.1", pa.decimal128(10, 2), [Decimal("1.65"), Decimal("2.20"), None, Decimal("-3.58")]),
        ("fare * 2", pa.float32(), [3.0, NAN, None, 60.0]),
        ("price", pa.int32(), [1, 2, None, -3]),
        ("upper(city)", None, ["SF", "IT'S", None, "SF"]),
        ("NULL", pa.date32(), [None] * 4),
        ("id / 0", None, [None] * 4),
    ],
)
def test_a_projection_is_cast_as_an_assignment_is(
    text: str, as_type: pa.DataType | None, expected: list[object]
) -> None:
    found = RowExpression.parse(text, SCHEMA, as_type=as_type).values(TABLE)
    assert str(found.to_pylist()) == str(expected)
    assert as_type is None or found.type == as_type


def test_overflow_raises_instead_of_wrapping() -> None:
    table = pa.table({"i": pa.array([2**31 - 1], pa.int32())})
    with pytest.raises(SchemaMismatchError, match="overflow"):
        RowExpression.parse("i + 1", table.schema).values(table)


def test_columns_are_the_top_level_ones_as_the_schema_spells_them() -> None:
    assert columns_of("FARE > 1 AND rider.name = 'x' OR `id` = 1", SCHEMA) == {"Fare", "rider", "id"}
    assert columns_of("1 = 1", SCHEMA) == frozenset()


@given(st.text(max_size=8), st.lists(st.text(max_size=6), max_size=5))
def test_like_a_prefix_is_a_range_that_holds_what_starts_with_it(prefix: str, texts: list[str]) -> None:
    given_texts = [*texts, *[prefix + text for text in texts]]
    if any(0xD800 <= ord(one) <= 0xDFFF for one in prefix + "".join(texts)):
        return
    table = pa.table({"s": pa.array(given_texts, pa.string())})
    escaped = "".join(rf"\{one}" if one in "%_\\" else one for one in prefix)
    pattern = escaped.replace("\\", "\\\\").replace("'", "\\'")
    kept = Condition.parse(f"s LIKE '{pattern}%'").row_filter(table.schema).matching(table).column("s").to_pylist()
    assert kept == [text for text in given_texts if text.startswith(prefix)]


def test_expressions_travel_to_workers() -> None:
    expression = Condition.parse("fare > 2 AND city IN ('SF', 'sf')").row_filter(SCHEMA)
    assert pickle.loads(pickle.dumps(expression)).matching(TABLE).column("id").to_pylist() == [3]


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("i = 3", [1]),
        ("i > 3.5", [1, 2]),
        ("i > 3.5 AND f > 0", [1, 2]),
        ("f < 1.5", [0]),
        ("1.5D > f", [0]),
        ("f BETWEEN 0 AND 1.5", [0]),
        ("f > 100", [0, 1, 2]),
        ("i IN (1, 6)", [0, 2]),
        ("s LIKE 'c%'", [1]),
        ("d >= '2024-01-05'", [2]),
        ("p < 2", [0]),
        ("i = 1 OR f > 100", [0, 1, 2]),
        ("i = 1 OR i = 2", [0]),
    ],
)
def test_a_scan_filter_prunes_row_groups(tmp_path: Path, where: str, groups: list[int]) -> None:
    table = pa.table(
        {
            "i": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "f": [1.0, NAN, 2.0, 2.0, NAN, 3.0],
            "s": ["aa", "ab", "ca", "cb", "da", "db"],
            "d": [date(2024, 1, number) for number in range(1, 7)],
            "p": pa.array([Decimal(number) for number in range(1, 7)], pa.decimal128(10, 2)),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    fragment = next(iter(ds.dataset(tmp_path / "t.parquet").get_fragments()))
    scan = Condition.parse(where).row_group_filter(table.schema, in_utc=True)
    kept = fragment.split_by_row_group(filter=scan) if scan is not None else fragment.split_by_row_group()
    assert [group.id for one in kept for group in one.row_groups] == groups


def test_arrow_still_takes_a_group_of_one_number_and_nan_for_constant(tmp_path: Path) -> None:
    """The reason for `row_group_filter`: once this fails, the scanner can take the exact filter."""
    table = pa.table({"f": [5.0, NAN]})
    pq.write_table(table, tmp_path / "t.parquet")
    condition = Condition.parse("f > 7").row_filter(table.schema)
    kept = ds.dataset(tmp_path / "t.parquet").to_table(filter=condition.expression)
    assert kept.num_rows == 0
    assert condition.matching(table).num_rows == 1
    assert Condition.parse("f > 7").row_group_filter(table.schema, in_utc=True) is None


def test_a_scan_filter_checks_what_it_leaves_out_and_an_ambiguous_name_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="ambiguous"):
        Condition.parse("a = 1").row_filter(pa.schema([("a", pa.int32()), ("A", pa.int32())]))
    with pytest.raises(SchemaMismatchError, match="no column"):
        Condition.parse("fare > 1 OR fares > 2").row_group_filter(SCHEMA, in_utc=True)


def test_array_contains_travels_to_workers_and_prunes_nothing(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "l": [["a"], None, ["b", None]]})
    condition = Condition.parse("array_contains(l, 'b') OR array_contains(l, 'a') AND id < 3")
    packed = tmp_path / "packed"
    packed.write_bytes(pickle.dumps(condition.row_filter(table.schema)))
    # Another process, which has not parsed the condition.
    program = "import pickle, sys, pyarrow as pa; t = pa.table({'id': [1, 2, 3], 'l': [['a'], None, ['b', None]]}); "
    program += "print(pickle.load(open(sys.argv[1], 'rb')).matching(t)['id'].to_pylist())"
    done = subprocess.run([sys.executable, "-c", program, packed], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1, 3]"
    assert condition.row_group_filter(table.schema, in_utc=True) is None
    chunked = pa.concat_tables([table.slice(1), table.slice(0, 0), table.slice(0, 1)])
    assert condition.row_filter(table.schema).matching(chunked)["id"].to_pylist() == [3, 1]
    assert RowExpression.parse("array_contains(l, 'b')", table.schema).values(chunked).to_pylist() == [
        None,
        True,
        False,
    ]
