"""Conditions find rows with NaN, which is greater than every number, whichever way files are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.contract.table_lanes import Lane, table_of

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


def ids(lane: Lane, table: hoodie.Table, conditions: Sequence[str]) -> dict[str, set[str]]:
    """The ids that match each condition. Spark reads for all conditions in one job."""
    if lane.session is None:
        return {where: set(table.to_arrow("id", where=where)["id"].to_pylist()) for where in conditions}
    found: dict[str, set[str]] = {where: set() for where in conditions}
    frames = [table.read("id", where=where).selectExpr(f"{n} AS n", "id") for n, where in enumerate(conditions)]
    for one in reduce(lambda left, right: left.union(right), frames).collect():
        found[conditions[one.n]].add(one.id)
    return found


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_rows_with_nan_are_found(lane: Lane, kind: str) -> None:
    table = lane.create(SCHEMA, type=kind, partition_by="part")
    table.upsert(lane.data(table_of(SCHEMA, *(row(name, value) for name, value in VALUES.items()))))
    if kind == "merge_on_read":
        # Some files are merged with log files, others have none and are read by Spark's own scan.
        table.upsert(lane.data(table_of(SCHEMA, *(row(name, VALUES[name]) for name in ("below", "one")))))
    assert ids(lane, table, list(CASES)) == CASES
