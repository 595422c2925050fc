"""Conditions find rows with NaN, which is greater than every number, whichever way files are read."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tests.contract.table_lanes import Lane
from tests.support.tables import table_of

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.struct([("x", pa.float64())])),
    ]
)
VALUES: dict[str, float | None] = {
    "below": -0.0,
    "beside": math.nan,
    "alone": math.nan,
    "one": 1.5,
    "null": None,
    "with null": math.nan,
    "far": -math.inf,
}
PARTS = {"below": "a", "beside": "a", "alone": "b", "null": "c", "with null": "c"}
"""One file each; the other rows are in one more file."""
NANS = {"beside", "alone", "with null"}
FOUND = {
    "{} >= 1.5": NANS | {"one"},
    "{} > 1.5": NANS,
    "{} > double('inf')": NANS,
    "{} = double('NaN')": NANS,
    "isnan({})": NANS,
    "{} <> 0": NANS | {"one", "far"},
    "{} IN (double('NaN'), 1.5)": NANS | {"one"},
    "NOT ({} < 1)": NANS | {"one"},
    "{} < 1": {"below", "far"},
    "{} IS NULL": {"null"},
}
CASES = {
    **{text.format("d"): found for text, found in FOUND.items()},
    "f >= 1.5": NANS | {"one"},
    "f < 1": {"below", "far"},
    "s.x > 1.5": NANS,
}


def row(name: str, value: float | None) -> tuple[Any, ...]:
    return (name, PARTS.get(name, "d"), value, value, {"x": value})


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_rows_with_nan_are_found(lane: Lane, kind: str) -> None:
    """In the merge-on-read table some files are merged with log files, others are read by Spark's own scan."""
    writes = [table_of(SCHEMA, *(row(name, value) for name, value in VALUES.items()))]
    if kind == "merge_on_read":
        writes.append(table_of(SCHEMA, *(row(name, VALUES[name]) for name in ("below", "one"))))
    table = lane.table(*writes, schema=SCHEMA, type=kind, partition_by="part")
    found = lane.read_each(table, *({"columns": ["id"], "where": where} for where in CASES))
    assert {where: set(rows["id"].to_pylist()) for where, rows in zip(CASES, found, strict=True)} == CASES
