"""Place inserts by the sizes of the files: the default placement (docs/format/table.md §9.1)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hoodie.files.slices import FileSlice
from hoodie.format.filenames import new_file_id
from hoodie.index.placement import HashRange, InsertShare
from hoodie.records.keys.sorting import HASH_END
from hoodie.write.context import FileSizing


@dataclass(frozen=True, slots=True)
class SizePlacement:
    """Fill small file groups first, the smallest first, then distribute the other rows evenly over new file groups.

    `record_bytes` is the expected size of a record in a base file.
    """

    sizing: FileSizing
    record_bytes: float
    new_id: Callable[[], uuid.UUID] = uuid.uuid4

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        """Choose file groups for the inserts of a partition; see `Placement.place`."""
        placed: list[tuple[FileSlice | None, int]] = []
        left = rows
        for found in sorted(slices, key=lambda found: (found.size_bytes, found.file_id)):
            room = int((self.sizing.max_file_bytes - found.size_bytes) / self.record_bytes)
            if left <= 0 or found.size_bytes >= self.sizing.small_file_bytes:
                break
            if room > 0:
                placed.append((found, min(room, left)))
                left -= min(room, left)
        if left > 0:
            count = -(-left // max(int(self.sizing.max_file_bytes / self.record_bytes), 1))
            placed += [(None, -(-left // count))] * count
        total = sum(share for _, share in placed)
        before = 0
        for file_slice, share in placed:
            start, end = before * HASH_END // total, (before + share) * HASH_END // total
            before += share
            file_id = new_file_id(self.new_id(), 0) if file_slice is None else file_slice.file_id
            yield InsertShare(file_id, HashRange(start, end), share)
