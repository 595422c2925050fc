"""Data without declared types takes the types of the table; the schema changes only by data that declares types."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hoodie.engine import UntypedDataset
from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.table import Table
from tests.support.tables import new_table, values_of
from tests.unit.write.tables import untouched

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("q", pa.int32()),
        ("x", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("tags", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("n", pa.int32()), ("l", pa.list_(pa.int32()))])),
    ]
)
NULLS = {"x": None, "d": None, "tags": None, "s": None}
OPTION = "hoodie.python.schema.evolution"
FILL = "hoodie.write.set.null.for.missing.columns"


def refused(table: Table, data: object, match: str) -> None:
    """The write is refused with these words, and no file changes."""
    with untouched(table, match, SchemaMismatchError):
        table.upsert(data)


SOURCES: dict[str, Any] = {
    "dicts": lambda rows: rows,
    "dict of lists": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "pandas": pd.DataFrame,
    "pandas objects": lambda rows: pd.DataFrame(rows).astype(object),
}


@pytest.mark.parametrize("source", SOURCES)
def test_untyped_values_take_the_types_of_the_table(source: str) -> None:
    table = new_table(SCHEMA)
    full = {"id": "a", "q": 1, "x": 0.1, "d": 12, "tags": {"k": 7}, "s": {"n": 2, "l": [3, None]}}
    result = table.upsert(SOURCES[source]([full, {"id": "b", "q": 2, **NULLS}]))
    assert (result.inserted, result.notes) == (2, ())
    assert table.schema == SCHEMA
    found = sorted(table.to_arrow(SCHEMA.names).to_pylist(), key=str)
    assert found[0]["tags"] == [("k", 7)]
    assert (found[0]["q"], found[0]["s"]) == (1, {"n": 2, "l": [3, None]})
    assert pa.scalar(found[0]["x"], pa.float32()) == pa.scalar(0.1, pa.float32())
    assert str(found[0]["d"]) == "12.00"
    assert found[1] == {"id": "b", "q": 2, **NULLS}


MISFITS: list[tuple[str, object, str]] = [
    ("q", 1 << 40, r"column 'q', row 1: 1099511627776 \(int\) does not fit int32.*long column"),
    ("q", 1.5, r"column 'q', row 1: 1.5 \(float\) does not fit int32"),
    ("q", True, r"column 'q', row 1: True \(bool\) does not fit int32"),
    ("q", "one", r"column 'q', row 1: 'one' \(str\) does not fit int32"),
    ("q", float("nan"), r"column 'q', row 1: nan \(float\) does not fit int32"),
    ("x", 0.123456789, r"column 'x', row 1: 0.123456789 \(float\) does not fit float.*double column"),
    ("x", 1e300, r"column 'x', row 1: 1e\+300"),
    ("d", 1 << 60, r"column 'd', row 1: 1152921504606846976 \(int\) does not fit decimal128\(10, 2\)"),
    ("tags", {"k": "v"}, r"column 'tags.value', row 1: 'v' \(str\) does not fit int32"),
    ("tags", 5, r"column 'tags', row 1: 5 \(int\) does not fit map"),
    ("tags", [5], r"column 'tags', row 1: 5 \(int\) does not fit map"),
    ("s", {"m": 1}, r"column 's.m', row 1: the table has no such field in 's' \(n, l\); .*schema.evolution=always"),
    ("s", {"l": [0, 1 << 40]}, r"column 's.l.element', row 1: 1099511627776"),
    ("s", [1], r"column 's', row 1: \[1\] \(list\) does not fit struct"),
]


def test_a_value_that_does_not_fit_is_named() -> None:
    table = new_table(SCHEMA)
    for column, value, match in MISFITS:
        refused(table, [{"id": "a", "q": 1, **NULLS}, {"id": "b", "q": 2, **NULLS, column: value}], match)


def test_columns_of_later_rows_are_not_lost() -> None:
    table = new_table(SCHEMA)
    table.upsert([{"id": "a", "q": 1, "x": 1.0, "d": None, "tags": None}, {"id": "b", "s": {"n": 1, "l": None}}])
    assert values_of(table, "id", "q", "s")[1] == ("b", None, {"n": 1, "l": None})


def test_a_column_that_the_table_lacks_needs_a_declared_type() -> None:
    table = new_table(SCHEMA)
    row = {"id": "a", "q": 1, **NULLS, "qq": 2}
    for data in ([row], {name: [value] for name, value in row.items()}, pd.DataFrame([row])):
        refused(table, data, rf"column 'qq' is not in the table.*{OPTION}=always")
    result = table.upsert([row], properties={OPTION: "always"})
    assert result.notes == ("column qq added: int64",)
    assert table.schema.field("qq").type == pa.int64()


def test_a_column_of_pandas_with_a_chosen_type_evolves_the_table() -> None:
    table = new_table(SCHEMA)
    frame = pd.DataFrame([{"id": "a", "q": 1, **NULLS}])
    assert table.upsert(frame).notes == ()
    result = table.upsert(frame.assign(q=frame["q"].astype("Int64"), y=np.array([1], np.int16)))
    assert result.notes == ("column q: int32 -> int64", "column y added: int32")
    assert "note: column q: int32 -> int64" in str(result)


def test_arrow_data_evolves_the_table_and_says_so() -> None:
    schema = pa.schema([pa.field("id", pa.string(), False), ("s", pa.struct([("n", pa.int32())]))])
    table = new_table(schema)
    wider = pa.schema([("id", pa.string()), ("s", pa.struct([("n", pa.int64()), ("m", pa.bool_())]))])
    result = table.bulk_insert(pa.Table.from_pylist([{"id": "a", "s": {"n": 1, "m": True}}], wider))
    assert result.notes == ("column s.n: int32 -> int64", "column s.m added: bool")
    assert table.insert(pa.Table.from_pylist([{"id": "b", "s": None}], wider)).notes == ()


def test_no_data_evolves_a_table_that_forbids_it() -> None:
    table = new_table(SCHEMA, properties={OPTION: "never"})
    wide = SCHEMA.set(1, pa.field("q", pa.int64())).append(pa.field("y", pa.string()))
    refused(table, wide.empty_table(), rf"q: int32 -> int64; column y added: string.*{OPTION}=never")
    assert table.upsert(SCHEMA.empty_table()).notes == ()


def test_the_error_of_a_missing_column_names_the_option_that_fills_it() -> None:
    table = new_table(SCHEMA)
    refused(table, [{"id": "a"}], rf"'q' \(int32\) is missing in the data: add .*partial=True.*{FILL}=true")
    refused(table, [{"q": 1, **NULLS}], r"'id' .* is missing in the data.*part of the record key")
    done = table.upsert([{"id": "a"}], properties={FILL: "true"})
    assert "the data lacks ['q', " in done.notes[0]
    assert table.to_arrow(["id", "q"]).to_pylist() == [{"id": "a", "q": None}]


PAIR = pa.struct([("x", pa.int32()), ("y", pa.int32())])
PAIRS = {"struct": PAIR, "list": pa.list_(PAIR), "map": pa.map_(pa.string(), PAIR)}
WRAPPED: dict[str, Any] = {"struct": lambda one: one, "list": lambda one: [one], "map": lambda one: [("k", one)]}


def _without_y(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), pa.struct([PAIR.field(0)]))
    return pa.struct([PAIR.field(0)]) if pa.types.is_struct(kind) else pa.list_(pa.struct([PAIR.field(0)]))


@pytest.mark.parametrize("kind", PAIRS)
def test_a_field_that_no_dict_has_is_missing_as_a_column_is(kind: str) -> None:
    wrap = WRAPPED[kind]
    table = new_table(pa.schema([("id", pa.string()), ("s", PAIRS[kind])]))
    table.upsert([{"id": "a", "s": wrap({"x": 1, "y": 2})}])
    rows = [{"id": "a", "s": wrap({"x": 3})}, {"id": "b", "s": None}]
    for data in (rows, pd.DataFrame(rows)):
        refused(table, data, rf"'s.*\.y' \(int32\) is missing in the data: add the column to the data\. {FILL}=true")
    table.upsert([*rows, {"id": "c", "s": wrap({"x": 1, "y": None})}])
    filled = [{"id": "d", "s": wrap({"x": 4})}, {"id": "e", "s": wrap({})}]
    typed = pa.Table.from_pylist(filled, pa.schema([("id", pa.string()), ("s", _without_y(PAIRS[kind]))]))
    for data in (filled, typed):
        done = table.upsert(data, properties={FILL: "true"})
        place = {"struct": "s.y", "list": "s.element.y", "map": "s.value.y"}[kind]
        assert done.notes == (f"the data lacks ['{place}']: null in the written rows ({FILL})",)
    expected = {"a": 3, "b": None, "c": 1, "d": 4, "e": None}
    found = dict(values_of(table, "id", "s"))
    assert found == {key: None if key == "b" else wrap({"x": x, "y": None}) for key, x in expected.items()}


def test_columns_of_nulls_take_the_type_of_the_table() -> None:
    table = new_table(SCHEMA)
    table.upsert(pa.table({"id": ["a"], **{name: pa.nulls(1) for name in SCHEMA.names[1:]}}))
    table.upsert(pd.DataFrame({"id": ["b"], **{name: [None] for name in SCHEMA.names[1:]}}))
    table.upsert(
        pa.table({"id": ["c"], "q": [1], **NULLS_OF_ARROW, "s": [{"n": None, "l": []}]}).cast(
            pa.schema([*SCHEMA][:5]).append(pa.field("s", pa.struct([("n", pa.null()), ("l", pa.list_(pa.null()))])))
        )
    )
    assert table.schema == SCHEMA
    assert [row[1] for row in values_of(table, "id", "s")] == [None, None, {"n": None, "l": []}]


NULLS_OF_ARROW = {name: pa.nulls(1) for name in ("x", "d", "tags")}


def test_missing_integers_of_pandas_come_back_as_integers() -> None:
    rows = pa.table({"id": ["a"], "n": pa.array([(1 << 53) + 1], pa.int64())})
    table = new_table(rows.schema, rows)
    table.upsert(pd.DataFrame({"id": ["b", "c"], "n": [1, None]}))
    assert table.schema == rows.schema
    assert values_of(table) == [("a", (1 << 53) + 1), ("b", 1), ("c", None)]
    refused(table, pd.DataFrame({"id": ["d"], "n": [2.0**60]}), "column 'n', row 0")
    refused(table, pd.DataFrame({"id": ["d"], "n": [0.5]}), "column 'n', row 0: 0.5")


def test_required_columns_stay_required() -> None:
    schema = pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int32(), False)])
    table = new_table(schema)
    assert table.upsert([{"id": "a", "n": 1}]).notes == ()
    assert table.schema == schema
    refused(table, [{"id": "b", "n": None}], "column 'n' allows no null")


class LazyFrame:
    """What a Polars LazyFrame offers: `collect` gives data with an Arrow stream."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def collect(self) -> pa.Table:
        return self.rows


ROWS = pa.table({"id": ["a", "b"], "q": pa.array([1, 2], pa.int32())})
KINDS: dict[str, Any] = {
    "dataset": ds.dataset,
    "scanner": lambda rows: ds.dataset(rows).scanner(),
    "lazy frame": LazyFrame,
    "dict of lists": lambda rows: rows.to_pydict(),
    "dict of arrays": lambda rows: {"id": rows["id"], "q": np.array([1, 2], np.int32)},
    "tuples": lambda rows: {name: tuple(values) for name, values in rows.to_pydict().items()},
}


@pytest.mark.parametrize("kind", KINDS)
def test_more_kinds_of_data_are_taken(kind: str) -> None:
    table = new_table(ROWS.schema)
    assert table.upsert(KINDS[kind](ROWS)).inserted == 2
    assert sorted(table.to_arrow(["id", "q"]).to_pylist(), key=str) == ROWS.to_pylist()
    assert table.delete(KINDS[kind](ROWS)).deleted == 2


def test_no_rows_are_no_rows() -> None:
    table = new_table(SCHEMA)
    assert table.upsert([]).inserted == 0
    refused(table, [{}], "empty dicts")
    refused(table, {"id": ["a", "b"], "q": [1]}, "one length, found {'id': 2, 'q': 1}")
    with pytest.raises(UnsupportedError, match="a list of dicts, a dict of lists"):
        table.upsert({"id": "a", "q": 1})


REQUIRED = pa.struct([pa.field("n", pa.int64(), nullable=False)])
"""A struct whose field is required."""


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", [REQUIRED, pa.list_(REQUIRED), pa.map_(pa.string(), REQUIRED)], ids=str)
def test_a_null_struct_may_have_required_fields(source: str, kind: pa.DataType) -> None:
    below: dict[str, Any] = {"list": lambda value: [value], "map": lambda value: [("k", value)]}
    wrap: Any = below.get(str(kind).partition("<")[0], lambda value: value)
    rows = [{"id": "a", "s": wrap({"n": 1})}, {"id": "b", "s": wrap(None)}]
    table = new_table(pa.schema([("id", pa.string()), ("s", kind)]))
    assert table.upsert(SOURCES[source](rows)).inserted == 2
    assert sorted(table.to_arrow(["id", "s"]).to_pylist(), key=str) == rows
    refused(table, SOURCES[source]([rows[0], {"id": "c", "s": wrap({})}]), r"column 's.*\.n', row 1: .*null")


def test_required_fields_of_arrow_data_of_the_same_type_are_checked() -> None:
    schema = pa.schema([("id", pa.string()), ("s", REQUIRED)])
    table = new_table(schema)
    rows = pa.table({"id": ["a", "b"], "s": pa.array([{"n": 1}, None], REQUIRED)}, schema)
    assert table.upsert(rows).inserted == 2
    assert sorted(table.to_arrow(["id", "s"]).to_pylist(), key=str) == rows.to_pylist()
    missing = pa.table({"id": ["b"], "s": pa.array([{"n": None}], REQUIRED)}, schema)
    refused(table, missing, r"column 's.n' allows no null")


def test_arrays_of_numpy_in_lists_keep_their_types() -> None:
    kinds = {"t": pa.timestamp("us"), "n": pa.int64(), "x": pa.float64(), "f": pa.float32(), "w": pa.string()}
    schema = pa.schema([("id", pa.string()), *((name, pa.list_(kind)) for name, kind in kinds.items())])
    table = new_table(schema)
    times = np.array(["2024-01-01", "NaT"], "datetime64[ns]")
    row = {
        "id": "a",
        "t": times,
        "n": np.array([1.0, np.nan]),
        "x": np.array([0.6], np.float32),
        "f": np.zeros(0, np.float32),
        "w": np.array(["x", None], object),
    }
    table.upsert(pd.DataFrame([row, {"id": "b"}]))
    found = sorted(table.to_arrow(schema.names).to_pylist(), key=str)
    stored = {"t": [datetime(2024, 1, 1), None], "n": [1, None], "x": [0.6], "f": [], "w": ["x", None]}
    assert found == [{"id": "a", **stored}, {"id": "b", **dict.fromkeys(kinds)}]
    rows = [row, {**row, "id": "c", "n": times}]
    refused(table, pd.DataFrame(rows), r"column 'n.element', row 1: .*does not fit int64")
    refused(table, [{**row, "n": [1]}, {**row, "n": [1, np.array(1)]}], r"column 'n.element', row 1: ")
    refused(table, [{**row, "n": np.array(1)}], r"column 'n', row 0: ")


def test_nulls_in_lists_survive_pandas() -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.list_(pa.int32())), ("x", pa.list_(pa.float64()))])
    table = new_table(schema)
    rows = [{"id": "a", "n": [1, None], "x": [0.5, None]}, {"id": "b", "n": None, "x": [None]}]
    table.upsert(rows)
    table.upsert(table.to_arrow(schema.names).to_pandas())
    assert sorted(table.to_arrow(schema.names).to_pylist(), key=str) == rows


def test_floats_become_the_doubles_of_the_same_text() -> None:
    schema = pa.schema([("id", pa.string()), ("x", pa.float64())])
    table = new_table(schema)
    table.upsert([{"id": "a", "x": np.float32(0.6)}, {"id": "b", "x": 0.5}, {"id": "c", "x": np.float32(0.1)}])
    table.upsert({"id": ["d"], "x": np.array([np.float32(0.7)], object)})
    assert sorted(x for _, x in values_of(table)) == [0.1, 0.5, 0.6, 0.7]


def test_values_of_several_types_keep_their_order_and_name_their_row() -> None:
    table = new_table(SCHEMA)
    values = [1, np.int64(2), Decimal("3.5"), 4.25, None, True]
    rows = [{"id": str(n), "q": n, **NULLS, "d": value} for n, value in enumerate(values)]
    table.upsert(rows[:5])
    found = [d if d is None else str(d) for _, d in values_of(table, "id", "d")]
    assert found == ["1.00", "2.00", "3.50", "4.25", None]
    refused(table, rows, r"column 'd', row 5: True \(bool\) does not fit decimal")
    refused(table, [*rows[:5], {**rows[0], "d": 1 << 70}], r"column 'd', row 5: .*does not fit decimal")


def test_chunks_of_text_stay_chunks() -> None:
    """The chunks of a column may have more than 2 GiB together, which one array of text cannot have."""
    chunks = pa.chunked_array([["a"], ["b", "c"]])
    data = UntypedDataset((("s", chunks), ("l", [["x"]] * 3)))
    schema = pa.schema([("s", pa.string()), ("l", pa.list_(pa.string()))])
    assert data.inferred().source["s"].num_chunks == 2
    assert data.typed(schema).source["s"].num_chunks == 2
    assert data.typed(schema).schema == schema
    rows = UntypedDataset((("s", chunks),))
    with pytest.raises(SchemaMismatchError, match="column 's', row 0: 'a'"):
        rows.typed(pa.schema([("s", pa.int32())]))
