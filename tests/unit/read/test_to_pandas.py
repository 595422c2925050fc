"""`t.to_pandas()` changes no value, at any depth: the frame that is written back is the table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.read.to_pandas import to_pandas
from tests.support.tables import new_table

LARGE = 2**53 + 1
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
LEAVES: dict[str, tuple[pa.DataType, Any]] = {
    "int64": (pa.int64(), LARGE),
    "int32": (pa.int32(), 7),
    "boolean": (pa.bool_(), True),
    "text": (pa.string(), "a"),
    "decimal": (pa.decimal128(20, 2), 5),
    "zoned": (pa.timestamp("us", "UTC"), NOON),
    "local": (pa.timestamp("us"), NOON.replace(tzinfo=None)),
    "date": (pa.date32(), NOON.date()),
}
NESTINGS: dict[str, Any] = {
    "flat": (lambda kind: kind, lambda value: [value, None]),
    "list": (pa.list_, lambda value: [[value, None], None, []]),
    "struct": (lambda kind: pa.struct([("x", kind)]), lambda value: [{"x": value}, {"x": None}, None]),
    "map": (lambda kind: pa.map_(pa.string(), kind), lambda value: [[("k", value), ("n", None)], None]),
    "list of structs": (
        lambda kind: pa.list_(pa.struct([("x", kind)])),
        lambda value: [[{"x": value}, {"x": None}, None]],
    ),
    "struct of lists": (lambda kind: pa.struct([("x", pa.list_(kind))]), lambda value: [{"x": [value, None]}]),
    "list of lists": (lambda kind: pa.list_(pa.list_(kind)), lambda value: [[[value, None], None]]),
    "map of lists": (lambda kind: pa.map_(pa.string(), pa.list_(kind)), lambda value: [[("k", [value, None])]]),
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("nesting", NESTINGS)
def test_values_at_every_depth(leaf: str, nesting: str) -> None:
    kind, value = LEAVES[leaf]
    type_of, values_of = NESTINGS[nesting]
    rows = pa.table({"v": pa.array(values_of(value), type_of(kind))})
    frame = to_pandas(rows)
    assert pa.Table.from_pandas(frame, schema=rows.schema, preserve_index=False).equals(rows)
    found = frame["v"].iloc[0]
    if nesting == "list" and leaf in ("int64", "zoned"):
        assert (found[0], found[1]) == (value, None)
    if nesting == "struct":
        assert found == {"x": rows["v"][0].as_py()["x"]}


def test_a_frame_that_is_written_back_changes_nothing() -> None:
    schema = pa.schema([("id", pa.string()), ("v", pa.list_(pa.int64())), ("s", pa.struct([("x", pa.int64())]))])
    table = new_table(schema, [{"id": "a", "v": [LARGE, None], "s": {"x": LARGE}}, {"id": "b", "v": None, "s": None}])
    before = table.to_arrow(schema.names)
    table.upsert(table.to_pandas(schema.names))
    assert table.to_arrow(schema.names).equals(before)


def test_dates_after_the_year_9999() -> None:
    day = pa.array([3_000_000], pa.int32()).cast(pa.date32())
    assert str(to_pandas(pa.table({"v": day}))["v"].iloc[0]).startswith("10183-")
    listed = pa.ListArray.from_arrays([0, 1], day)
    assert str(to_pandas(pa.table({"v": listed}))["v"].iloc[0][0]).startswith("10183-")
    struct = pa.StructArray.from_arrays([pa.array([253_402_387_200_000_000]).cast(pa.timestamp("us"))], ["x"])
    with pytest.raises(hoodie.UnsupportedError, match=r"column 'v' of type struct.*read it with to_arrow"):
        to_pandas(pa.table({"v": struct}))
