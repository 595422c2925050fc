"""The order of ordering values, as JVM Hudi 1.2.0 compares them (tests/interop/test_merge_rules.py asks it)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.format.table.merge_config import MergeMode
from hoodie.records.change import Kind, change_schema
from hoodie.records.merging.merge import RecordMerger

# Ascending; values in one tuple are equal.
ORDERS: dict[str, tuple[pa.DataType, list[tuple[Any, ...]]]] = {
    "double": (
        pa.float64(),
        [(None,), (-np.inf,), (-1.5,), (-5e-324,), (-0.0,), (0.0,), (5e-324,), (1.5,), (np.inf,), (np.nan, -np.nan)],
    ),
    "float": (pa.float32(), [(None,), (-np.inf,), (-1.5,), (-0.0,), (0.0,), (1.5,), (np.inf,), (np.nan,)]),
    "bytes are signed": (
        pa.binary(),
        [(None,), (b"",), (b"\x80",), (b"\xff",), (b"\x00",), (b"\x00\x80",), (b"\x7f",)],
    ),
    "boolean": (pa.bool_(), [(None,), (False,), (True,)]),
    "text by UTF-8": (pa.string(), [(None,), ("",), ("10",), ("9",), ("Z",), ("a",), ("é",), ("\uffff",), ("😀",)]),
    "a null int is 0": (pa.int32(), [(-1,), (0, None), (1,)]),
    "long": (pa.int64(), [(None,), (-1,), (0,), (1,)]),
}


def _changes(kind: pa.DataType, values: list[Any], keys: list[str]) -> pa.Table:
    schema = change_schema(pa.schema([("at", kind)]))
    count = len(values)
    columns = [pa.array([int(Kind.ROW)] * count, pa.int8()), pa.array(keys), pa.array([""] * count)]
    return pa.table([*columns, pa.array(values, kind)], schema=schema)


@pytest.mark.parametrize("name", ORDERS)
def test_every_pair_of_values(name: str) -> None:
    kind, groups = ORDERS[name]
    ranked = [(value, rank) for rank, group in enumerate(groups) for value in group]
    pairs = list(itertools.product(ranked, ranked))
    older = [stored for (stored, _), _ in pairs]
    newer = [incoming for _, (incoming, _) in pairs]
    wins = [incoming_rank >= stored_rank for (_, stored_rank), (_, incoming_rank) in pairs]
    keys = [str(number) for number in range(len(pairs))]
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("at",))

    changes = _changes(kind, newer, keys)
    assert merger.newer_wins(_changes(kind, older, keys), changes).tolist() == wins

    both = pa.concat_tables([_changes(kind, older, keys), changes])
    winners = merger.reduce(both.append_column("second", pa.array([False] * len(pairs) + [True] * len(pairs))))
    order = sorted(range(len(pairs)), key=lambda place: int(winners["_hoodie_record_key"][place].as_py()))
    assert [winners["second"][place].as_py() for place in order] == wins


def test_slices_of_arrays_are_compared_from_their_own_start() -> None:
    older = _changes(pa.binary(), [b"zzz", b"\x00", b"a"], ["x", "a", "b"]).slice(1)
    newer = _changes(pa.binary(), [b"zzz", b"\x80", b"b"], ["x", "a", "b"]).slice(1)
    merger = RecordMerger(MergeMode.EVENT_TIME_ORDERING, ("at",))
    assert merger.newer_wins(older, newer).tolist() == [False, True]
