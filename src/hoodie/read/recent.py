"""A cache of the results that this process used last, of bounded bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class RecentResults(Generic[Value]):
    """Keeps the results that were used last, up to `bytes_max` bytes in total. Thread-safe."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable | None) -> Value | None:
        """Return the result with this key; None if it is not kept. Nothing is kept without a key."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable | None, value: Value, size_bytes: int) -> None:
        """Keep a result, and drop those that were used longest ago; a result above the limit is not kept."""
        if key is None or size_bytes > self._bytes_max:
            return
        with self._lock:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1]
            self._kept[key] = value, size_bytes
            self._bytes += size_bytes
            while self._bytes > self._bytes_max:
                self._bytes -= self._kept.popitem(last=False)[1][1]
