"""A file of the metadata table as a source of bytes that is read in ranges."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.metadata.damage import expected_metadata_file
from hoodie.storage import Store


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The `size` bytes of a file from the byte `start` on: a `ByteSource`."""

    store: Store
    path: str
    size: int
    start: int = 0

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes `[offset, offset + length)`; fewer if the file ends before."""
        with expected_metadata_file(self.store, self.path):
            return self.store.read_range(self.path, self.start + offset, length)
