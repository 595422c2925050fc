"""Transforms in this process: kinds, options, errors, streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.ingest.latest import latest
from hoodie.ingest.transforms import Context, transforms_of

ROWS = pa.table({"id": ["a", "b", "a", None, None], "n": [1, 2, 3, 4, 5], "x": ["1", "2", "3", "4", "5"]})


def changed(rows: Any, transform: Any, schema: pa.Schema | None = None) -> Any:
    for one in transforms_of(transform):
        rows = one(rows, Context(schema=schema))
    return rows


def stream(rows: pa.Table, size: int = 2) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=size)))


def test_a_chain_in_its_order() -> None:
    chain = [
        {"kind": "sql", "query": "SELECT *, n * 2 AS twice FROM <SRC> WHERE id IS NOT NULL;"},
        {"kind": "rename", "columns": {"TWICE": "double"}},
        {"kind": "drop", "columns": "x"},
        {"kind": "deduplicate", "keys": ["id"], "by": "n"},
        lambda rows: rows.sort_by("id"),
    ]
    assert changed(ROWS, chain).to_pylist() == [
        {"id": "a", "n": 3, "double": 6},
        {"id": "b", "n": 2, "double": 4},
    ]


def test_none_changes_nothing() -> None:
    assert transforms_of(None) == ()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n FROM source WHERE n > 3", [4, 5]),
        ("FROM source SELECT n WHERE n = 1 -- the first", [1]),
        (
            "WITH big AS (SELECT * FROM source WHERE n > 2) SELECT l.n FROM big l JOIN big r USING (n) ORDER BY n",
            [3, 4, 5],
        ),
        ("SELECT s.n FROM source s JOIN source t ON s.n = t.n + 3 ORDER BY 1", [4, 5]),
        ("SELECT n FROM source WHERE n = (SELECT max(n) FROM source)", [5]),
        ("SELECT n FROM source LIMIT 0", []),
    ],
)
@pytest.mark.parametrize("rows", [ROWS, None], ids=["table", "stream"])
def test_a_query_reads_all_rows_each_time_it_names_them(query: str, expected: list[int], rows: pa.Table | None) -> None:
    found = changed(stream(ROWS) if rows is None else rows, query)
    assert isinstance(found, pa.RecordBatchReader) is (rows is None)
    assert [*found][0:0] == [] if rows is None and not expected else True
    table = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
    assert sorted(table["n"].to_pylist()) == expected


def test_a_query_of_a_stream_is_a_stream() -> None:
    taken = []

    def batches() -> Any:
        for number in range(200):
            taken.append(number)
            yield pa.record_batch({"n": list(range(5000))})

    rows = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    found = changed(rows, "SELECT n + 1 AS m FROM source")
    assert found.read_next_batch().num_rows > 0
    assert len(taken) < 150
    assert sum(batch.num_rows for batch in found) > 900_000


def test_sums_of_integers_have_the_type_of_the_table() -> None:
    query = "SELECT sum(n) AS total, sum(n) AS wide, count(*) AS c FROM source"
    found = changed(ROWS, query, pa.schema([("wide", pa.decimal128(20, 0)), ("c", pa.int32())]))
    assert found.schema.types == [pa.int64(), pa.decimal128(20, 0), pa.int64()]
    assert found.to_pylist()[0]["total"] == 15
    big = pa.table({"n": [2**63 - 1, 2**63 - 1]})
    with pytest.raises(SchemaMismatchError, match="column 'total': a sum of integers does not fit int64"):
        changed(big, "SELECT sum(n) AS total FROM source")


def test_times_with_a_zone_are_in_utc() -> None:
    rows = pa.table({"t": pa.array([0], pa.timestamp("us", "Europe/Berlin"))})
    found = changed(rows, "SELECT t, CAST(t AS DATE) AS d FROM source")
    assert found.schema.types == [pa.timestamp("us", "UTC"), pa.date32()]


def test_variables_of_python_are_no_tables() -> None:
    secret = pa.table({"a": [1]})
    with pytest.raises(InvalidConfigError, match="secret"):
        changed(ROWS, "SELECT * FROM secret")
    assert secret.num_rows == 1


@pytest.mark.parametrize("query", ["DROP TABLE source", "SELECT 1; SELECT 2", "SELECT nothing FROM source", "SELEC"])
def test_a_query_that_is_none_is_refused(query: str) -> None:
    with pytest.raises(InvalidConfigError, match="query"):
        changed(ROWS, query)


def test_a_value_that_does_not_fit_is_an_error_of_the_read() -> None:
    rows = stream(pa.table({"x": ["1", "two"]}))
    with pytest.raises(SchemaMismatchError, match="two"):
        changed(rows, "SELECT CAST(x AS INTEGER) AS n FROM source").read_all()


def test_an_error_of_the_rows_stays_what_it_is() -> None:
    def batches() -> Any:
        yield pa.record_batch({"n": [1]})
        raise SchemaMismatchError("row 2 of a.json is bad")

    rows = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(SchemaMismatchError, match=r"row 2 of a\.json is bad"):
        changed(rows, "SELECT sum(n) AS n FROM source").read_all()


NESTED = pa.table({"id": [1, 2], "a": [{"b": 1, "c": {"d": "x"}}, None], "l": [[{"e": 1}], []]})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["id", "a_b", "a_c_d", "l"]),
        ({"depth": 1}, ["id", "a_b", "a_c", "l"]),
        ({"separator": "__"}, ["id", "a__b", "a__c__d", "l"]),
    ],
)
def test_flatten(options: dict[str, Any], names: list[str]) -> None:
    found = changed(stream(NESTED, 1), {"kind": "flatten", **options}).read_all()
    assert found.column_names == names
    assert found.column(1).to_pylist() == [1, None]


def test_flatten_refuses_two_columns_of_one_name() -> None:
    with pytest.raises(SchemaMismatchError, match="a_b"):
        changed(pa.table({"A_B": [1], "a": [{"b": 1}]}), {"kind": "flatten"})


def test_cast() -> None:
    rows = pa.table({"n": [1, None], "x": ["1.5", None], "d": ["2024-02-29", "2020-1-2"]})
    columns = {"N": "string", "x": "decimal(4, 1)", "d": "date"}
    found = changed(stream(rows, 1), {"kind": "cast", "columns": columns}).read_all()
    assert found.schema.types == [pa.string(), pa.decimal128(4, 1), pa.date32()]
    assert found.to_pylist()[1]["x"] is None
    with pytest.raises(SchemaMismatchError, match=r"column 'v': the value 1e\+30 is no bigint"):
        changed(pa.table({"v": [1.5, 1e30]}), {"kind": "cast", "columns": {"v": "bigint"}})


def test_cast_to_the_table() -> None:
    schema = pa.schema([("N", pa.int32()), ("x", pa.int64()), ("other", pa.string())])
    found = changed(ROWS, {"kind": "cast", "to_table": True}, schema)
    assert found.schema.types == [pa.string(), pa.int32(), pa.int64()]
    assert changed(ROWS, {"kind": "cast", "to_table": True}).equals(ROWS)


def test_a_cast_without_a_form_in_process() -> None:
    with pytest.raises(UnsupportedError, match="CAST"):
        changed(pa.table({"v": [b"a"]}), {"kind": "cast", "columns": {"v": "date"}})


def test_the_last_row_of_each_key() -> None:
    rows = pa.table(
        {
            "id": ["a", "a", "b", "b", "b", "c", None, None],
            "st": [{"p": 1}] * 8,
            "o": [1.0, 2.0, float("nan"), None, -1.0, None, 1.0, 1.0],
            "v": list(range(8)),
        }
    )
    found = latest(rows, ["id", "st.p"], ["o"])
    assert found.column_names == rows.column_names
    assert found["v"].to_pylist() == [1, 4, 5, 6, 7]
    assert latest(stream(rows), ["ID"], ["o", "v"])["id"].to_pylist() == ["a", "b", "c", None, None]
    assert latest(rows.slice(0, 0), ["id"], ["o"]).num_rows == 0


def test_equal_rows_keep_the_last_one() -> None:
    rows = pa.table({"id": [1] * 1000, "o": [0] * 1000, "v": range(1000)})
    assert latest(rows, ["id"], ["o"])["v"].to_pylist() == [999]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "sql"}, "query is missing"),
        ({"kind": "sql", "query": " "}, "expected a query"),
        ({"kind": "other"}, "expected one of sql, function"),
        ({"kind": "drop", "columns": ["id"], "x": 1}, "unknown x"),
        ({"kind": "drop", "columns": []}, "at least one column"),
        ({"kind": "rename", "columns": ["a"]}, "texts by column"),
        ({"kind": "cast"}, "one of columns and to_table"),
        ({"kind": "cast", "columns": {"a": "struct<b: int>"}}, "without fields"),
        ({"kind": "cast", "columns": {"a": "nonsense("}}, "type of Spark SQL"),
        ({"kind": "flatten", "depth": -1}, "number from 0"),
        ({"kind": "function", "call": "no.such.module:f"}, "not found"),
        (5, "expected a query, a function"),
    ],
)
def test_wrong_options_are_named(given: Any, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        transforms_of(given)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "drop", "columns": "zz"},
        {"kind": "rename", "columns": {"zz": "y"}},
        {"kind": "rename", "columns": {"id": "N"}},
        {"kind": "cast", "columns": {"zz": "int"}},
        {"kind": "drop", "columns": ["id", "n", "x"]},
        lambda rows: None,
    ],
)
def test_columns_that_are_not_there_are_refused(given: Any) -> None:
    with pytest.raises(InvalidConfigError):
        changed(ROWS, given)


def test_functions_get_arrow_data_of_any_rows() -> None:
    found = changed([{"id": 1}, {"id": 2}], {"kind": "function", "call": lambda rows: rows.slice(1)})
    assert found.to_pylist() == [{"id": 2}]
    assert changed(ROWS, lambda rows: rows.to_pylist()[:1]).num_rows == 1
