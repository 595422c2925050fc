"""Which files Spark scans with older types, and how few commits are read to find out."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from hoodie.spark import stored_types
from hoodie.view.table_view import TableView

CURRENT = pa.schema([pa.field("id", pa.string(), False), ("s", pa.struct([("n", pa.int64()), ("m", pa.string())]))])


@pytest.mark.parametrize("first_new", [0, 1, 637, 999, 1000])
def test_few_commits_are_asked_for_their_schema(monkeypatch: pytest.MonkeyPatch, first_new: int) -> None:
    asked: list[str] = []

    def text_of(view: Any, instant: str) -> str:
        asked.append(instant)
        return "new" if int(instant) >= first_new else "old"

    monkeypatch.setattr(stored_types, "_schema_text", text_of)
    instants = [f"{number:04}" for number in range(1000)]
    texts = stored_types._schema_texts(cast("TableView", None), instants)
    assert texts == {instant: "new" if int(instant) >= first_new else "old" for instant in instants}
    assert len(asked) <= 12
    assert stored_types._schema_texts(cast("TableView", None), []) == {}


def test_nested_columns_keep_todays_shape_with_stored_types() -> None:
    stored = pa.schema([("gone", pa.int32()), ("s", pa.struct([("n", pa.int32())])), ("id", pa.string())])
    expected = pa.schema([("id", pa.string()), ("s", pa.struct([("n", pa.int32()), ("m", pa.string())]))])
    assert stored_types.with_stored_types(CURRENT, stored) == expected
