"""A source of bytes, and a store, in memory, that note which ranges are asked of them."""

from __future__ import annotations

from hoodie.storage import MemoryStore


class CountingSource:
    """`requests`: offsets and lengths."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.requests: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        assert 0 <= offset <= offset + length <= self.size
        self.requests.append((offset, length))
        return self._data[offset : offset + length]

    @property
    def bytes_read(self) -> int:
        return sum(length for _, length in self.requests)


class CountingStore(MemoryStore):
    """`requests`: starts and lengths of ranges; no file is read whole."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[int, int]] = []

    def read(self, path: str) -> bytes:
        raise AssertionError(f"{path} is too large to be read whole")

    def read_range(self, path: str, start: int, length: int) -> bytes:
        self.requests.append((start, length))
        return super().read(path)[start : start + length]

    @property
    def bytes_read(self) -> int:
        return sum(length for _, length in self.requests)
