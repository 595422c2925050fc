"""An index may dictate the file groups of inserts; without that the sizes of files decide (see test_plan)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.index.api import HashRange, InsertShare, Placement
from hoodie.index.record import RecordIndex
from hoodie.records.keys.sorting import HASH_END
from hoodie.view.slices import list_slices
from tests.unit.write.tables import SCHEMA, trips


class Halves:
    """Two file groups for each partition, whatever their size: one for each half of the key hashes."""

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        for half in range(2):
            file_id = f"0000000{half}-0000-0000-0000-000000000000-0"
            hashes = HashRange(half * HASH_END // 2, (half + 1) * HASH_END // 2)
            yield InsertShare(file_id, hashes, rows // 2)


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_inserts_go_where_the_index_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def halves(session: RecordIndex, default: Placement) -> Placement:
        return Halves()

    monkeypatch.setattr(RecordIndex, "placement", halves)
    table = hoodie.create(tmp_path, SCHEMA, record_key="id", partition_by="city", type=kind, spark=False)
    for start in (0, 20, 40):
        table.upsert(trips(*((f"k{number}", number, 1.0, "sf") for number in range(start, start + 40))))
    ids = {found.file_id for found in list_slices(table.view())}
    assert ids == {f"0000000{half}-0000-0000-0000-000000000000-0" for half in range(2)}
    assert table.to_arrow().num_rows == 80
    if kind == "copy_on_write":
        table.insert(trips(("more", 1, 1.0, "sf")))
        assert {found.file_id for found in list_slices(table.view())} == ids
        assert table.to_arrow().num_rows == 81
        return
    with pytest.raises(UnsupportedError, match="which accept no inserts in this write"):
        table.insert(trips(("more", 1, 1.0, "sf")))
    assert table.to_arrow().num_rows == 80
