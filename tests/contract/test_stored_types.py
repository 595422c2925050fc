"""Which files Spark scans with older types, and how few commits are read to find out."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

import hoodie
from hoodie.files import base_file
from hoodie.files.slices import BaseFile
from hoodie.spark import stored_types
from hoodie.spark.stored_types import files_by_types
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView
from tests.contract.table_lanes import TRIPS, trips
from tests.support.tables import new_table

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


def test_one_footer_tells_the_types_of_what_an_archived_commit_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = trips(("a", 1, 1.0, "sf"), ("b", 1, 2.0, "nyc"), ("c", 1, 2.0, "la"))
    table = new_table(TRIPS, rows, partition_by="city")
    view = table.view()
    files = tuple(found.base_file for found in list_slices(view) if found.base_file)
    monkeypatch.setattr(stored_types, "_schema_text", lambda *_: None)
    opened: list[str] = []
    real = base_file.open_base_file

    def counting(store: hoodie.storage.Store, file: BaseFile) -> object:
        opened.append(file.path)
        return real(store, file)

    monkeypatch.setattr(stored_types, "open_base_file", counting)
    for _ in range(2):
        ((schema, found),) = files_by_types(table.view(), files, TRIPS)
        assert (schema, set(found)) == (TRIPS, set(files))
    assert len(files) == 3
    assert len(opened) == 1
