"""Named levels of an index of pandas are columns, in every method that takes data."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import MemoryStore
from tests.support.rows import assert_same_rows
from tests.support.tables import new_table, values_of

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "v": [1, 2]})
FRAME = ROWS.to_pandas()


@pytest.fixture
def table() -> hoodie.Table:
    """An empty table."""
    return new_table(ROWS.schema, partition_by="p")


FRAMES = {
    "named": FRAME.set_index("id"),
    "two levels": FRAME.set_index(["p", "id"]),
    "all columns": FRAME.set_index(["id", "p", "v"]),
    "named, and a column too": FRAME.set_index("id", drop=False),
    "categories": FRAME.astype({"id": "category"}).set_index("id"),
    "numbers of rows from 5": FRAME.set_index(pd.RangeIndex(5, 7)),
    "filtered": pd.concat([FRAME.assign(id="z"), FRAME]).iloc[2:],
}


@pytest.mark.parametrize("form", FRAMES)
def test_named_levels_are_columns(table: hoodie.Table, form: str) -> None:
    frame = FRAMES[form]
    assert table.upsert(frame).inserted == 2
    assert_same_rows(table.to_arrow(columns=["id", "p", "v"]), ROWS)
    if form in ("two levels", "all columns"):
        assert table.read_keys(frame).num_rows == 2
        assert table.delete(frame).deleted == 2


def test_a_new_table_has_the_levels() -> None:
    t = hoodie.create(MemoryStore().uri(""), FRAME.set_index("id"), record_key="id")
    assert t.schema.names == ["id", "p", "v"]
    frame = FRAME.assign(v=[5, 6]).set_index("id")
    t.upsert(ROWS)
    merged = t.merge(frame, "id").when_matched_update({"v": "s.v"}).execute()
    assert merged.updated == 2
    assert values_of(t, "v") == [(5,), (6,)]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["q", "r"]),
        pd.DatetimeIndex(["2024-01-01", "2024-01-02"]),
        pd.MultiIndex.from_tuples([("q", 1), ("r", 2)], names=[None, None]),
    ],
)
def test_an_index_without_a_name_is_told(table: hoodie.Table, index: Any) -> None:
    with pytest.warns(hoodie.HoodieWarning, match="rename_axis"):
        table.upsert(FRAME.set_index(index))
    assert_same_rows(table.to_arrow(columns=["id", "p", "v"]), ROWS)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (FRAME.set_index(pd.Index(["b", "a"], name="id")), "the index and the columns .* 'id', with different values"),
        (FRAME.rename_axis("n"), "column 'n' is not in the table"),
        (pd.DataFrame(index=pd.RangeIndex(2)), "2 rows: expected a DataFrame with columns"),
    ],
)
def test_what_would_be_lost_or_is_not_known_is_refused(table: hoodie.Table, frame: pd.DataFrame, reason: str) -> None:
    with pytest.raises(hoodie.SchemaMismatchError, match=reason):
        table.upsert(frame)
    assert table.count() == 0


def test_changed_rows_and_scans_are_streams(table: hoodie.Table) -> None:
    table.upsert(FRAME)
    assert_same_rows(pa.table(table.changes_since(columns=["id", "p", "v"])), ROWS)
    scanner = table.to_dataset().scanner(columns=["v", "id"])
    assert_same_rows(pa.table(scanner), ROWS.select(["v", "id"]))
