"""The key range of a base file, as its footer stores it, in an order that tests of UTF-8 bytes can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.format.hashes.bloom import MAX_KEY_FOOTER_KEY, MIN_KEY_FOOTER_KEY

_BEYOND: Final = 0xEE
"""UTF-8 of characters from U+E000 up begins with this byte or a greater one."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and greatest key of a file, both inclusive; None if they are not known."""

    low: str | None = None
    high: str | None = None

    @classmethod
    def of(cls, low: str | None, high: str | None) -> KeyRange:
        """Return the range between two keys in UTF-8 or UTF-16 order; unknown if the two orders may differ.

        The JVM orders keys by UTF-16. Both orders place a key on the same side of a bound whose characters are all
        below U+E000, whatever the characters of the key.
        """
        if not low or not high or max(low.encode() + high.encode()) >= _BEYOND:
            return cls()
        return cls(low, high)

    @classmethod
    def of_footer(cls, footer: Mapping[bytes, bytes] | None) -> KeyRange:
        """Return the range that the footer of a base file stores; unknown if it stores none."""
        found = footer or {}
        low, high = found.get(MIN_KEY_FOOTER_KEY.encode()), found.get(MAX_KEY_FOOTER_KEY.encode())
        return cls() if not low or not high else cls.of(low.decode(), high.decode())

    def excludes(self, least: str, greatest: str) -> bool:
        """Return whether no key between `least` and `greatest` (in UTF-8 order) is in the range."""
        if self.low is None or self.high is None:
            return False
        return greatest.encode() < self.low.encode() or least.encode() > self.high.encode()
