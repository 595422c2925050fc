"""The sizes of row groups after many writes that copy: none grows without bound, and they do not become many."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.files import stored_groups
from hoodie.files.base_file import ParquetOptions
from hoodie.metadata.kinds import registry
from hoodie.table import Table
from hoodie.view.slices import list_slices
from tests.support.tables import new_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
GROUP_BYTES = 40_000


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_groups, "_SINGLE_BYTES_MIN", 2000)
    monkeypatch.setattr(registry, "ParquetOptions", partial(ParquetOptions, row_group_bytes=GROUP_BYTES))


def rows(first: int, count: int, text: str | None = None) -> pa.Table:
    keys = [f"k{number:06}" for number in range(first, first + count)]
    return pa.table([keys, [1] * count, [text] * count], schema=SCHEMA)


def groups_of(table: Table) -> list[int]:
    """The rows of the row groups of the only file slice."""
    (found,) = list_slices(table.view())
    assert found.base_file is not None
    metadata = pq.read_metadata(pa.BufferReader(table.view().store.read(found.base_file.path)))
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


@pytest.mark.parametrize("way", ["upsert", "update", "update again"])
def test_a_row_group_that_grows_is_split(way: str) -> None:
    table = new_table(SCHEMA, type="cow", ordering="ts", index="simple")
    table.bulk_insert(rows(0, 600))
    before = groups_of(table)
    text = "x" * 1000
    if way == "upsert":
        table.upsert(rows(0, 600, text))
    else:
        table.update({"text": f"'{text}'"})
        if way == "update again":
            table.update({"text": f"'{text}'"}, "id < 'k000300'")
    assert len(groups_of(table)) >= 10 > len(before)
    assert table.to_arrow(["id", "ts", "text"]).sort_by("id").equals(rows(0, 600, text))


def test_inserts_fill_the_last_row_group() -> None:
    table = new_table(SCHEMA, type="cow", ordering="ts", index="simple")
    table.insert(rows(0, 100))
    for number in range(1, 21):
        table.insert(rows(number * 50 + 50, 50))
    assert table.count() == 1100
    sizes = groups_of(table)
    assert len(sizes) <= 2 * (1100 // max(sizes) + 1)


def test_a_large_row_group_is_encoded_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(SCHEMA, type="cow", ordering="ts", index="simple")
    table.bulk_insert(rows(0, 600))
    monkeypatch.setattr(stored_groups, "MERGED_BYTES_MAX", 0)
    table.upsert(rows(7, 1, "new"))
    assert table.update({"text": "'newer'"}, "id >= 'k000599'").updated == 1
    texts = table.to_arrow(["id", "text"], where="text IS NOT NULL").sort_by("id")["text"].to_pylist()
    assert texts == ["new", "newer"]
    assert table.verify(full=True).ok
