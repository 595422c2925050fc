"""What the data of a write may do to the table's schema."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaMismatchError
from tests.unit.write.tables import files_below

ROWS = pa.table({"id": ["a"], "n": pa.array([(1 << 53) + 1], pa.int64())})


def test_a_missing_value_in_pandas_does_not_turn_a_long_column_into_double(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", ROWS, record_key="id", spark=False)
    table.upsert(ROWS)
    before = files_below(tmp_path)
    frame = pd.DataFrame({"id": ["b", "c"], "n": [1, None]})
    with pytest.raises(SchemaMismatchError, match=r"'n': int64 in the table, double in the data.*Int64"):
        table.upsert(frame)
    assert files_below(tmp_path) == before
    table.upsert(frame.astype({"n": "Int64"}))
    assert sorted(table.to_arrow(["id", "n"]).to_pylist(), key=str) == [
        {"id": "a", "n": (1 << 53) + 1},
        {"id": "b", "n": 1},
        {"id": "c", "n": None},
    ]
