"""Buckets of a table with a simple bucket index: the stored number of each partition, and the bucket of each key.

docs/format/table.md §5.5. Each change of the numbers is one JSON file, named after its instant. The bucket is the hash
of the list of the hash fields' values, modulo the number of buckets. The values are parsed from the record key, as in
the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.patterns import check_pattern, is_found
from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.hashes.java_hash import hash_ranges, java_hash, text_chunks
from hoodie.format.json_text import parse_json_object

BUCKET_FOLDER: Final = ".hoodie/.bucket_index"
HASHING_CONFIG_FOLDER: Final = f"{BUCKET_FOLDER}/partition_bucket_index_meta/configs"
CONSISTENT_HASHING_FOLDER: Final = f"{BUCKET_FOLDER}/consistent_hashing_metadata"
HASHING_CONFIG_SUFFIX: Final = ".hashing_config"
_COMMA, _COLON = ord(","), ord(":")
_NULL, _EMPTY = b"__null__", b"__empty__"
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The number of buckets of each partition, from the first rule whose pattern is in its path, or `default`.

    `rules` are pairs of a pattern and a number.
    """

    default: int
    rules: tuple[tuple[str, int], ...] = ()

    def of(self, partition_path: str) -> int:
        """Return the number of buckets of a partition.

        >>> BucketCounts(8, (("2026-0[1-3]", 32),)).of("day=2026-02-07")
        32
        """
        return next((count for pattern, count in self.rules if is_found(pattern, partition_path)), self.default)

    @classmethod
    def parse(cls, expressions: str, default: int, *, where: str) -> BucketCounts:
        """Parse `pattern,number;pattern,number`. Raises: UnsupportedError if it has another form."""
        rules: list[tuple[str, int]] = []
        for expression in filter(None, expressions.split(";")):
            parts = [part.strip() for part in expression.strip().split(",")]
            if len(parts) != 2 or not parts[1].isdecimal() or int(parts[1]) == 0 or not _is_understood(parts[0]):
                raise UnsupportedError(
                    f"{where}: the number of buckets {expression!r} is not understood: expected a regular expression, "
                    "a comma and a number; write to the table with JVM Hudi"
                )
            rules.append((parts[0], int(parts[1])))
        return cls(default, tuple(rules))

    @classmethod
    def parse_file(cls, data: bytes, *, path: str) -> BucketCounts:
        """Parse a `.hashing_config` file. Raises: CorruptFileError; UnsupportedError for rules that are not known."""
        content = parse_json_object(data, path=path)
        expressions, default, rule = (content.get(name) for name in ("expressions", "defaultBucketNumber", "rule"))
        if not isinstance(expressions, str) or not isinstance(default, int) or default <= 0:
            raise CorruptFileError(
                f"expected expressions and defaultBucketNumber, found {expressions!r} and {default!r}", path=path
            )
        if str(rule).lower() != "regex":
            raise UnsupportedError(f"{path}: the rule {rule!r} is not known: expected regex; write with JVM Hudi")
        return cls.parse(expressions, default, where=path)


def _is_understood(pattern: str) -> bool:
    try:
        check_pattern(pattern)
    except ValueError:
        return False
    return True


def bucket_of_keys(keys: pa.StringArray, fields: Sequence[str], count: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each record key among `count` buckets; `fields` are the hash fields. Keys must not be null.

    A key without a comma or without a colon is one value. Any other key is parsed as `field:value,field:value`; if none
    of its fields is a hash field, the key is one value. Memory: some 40 MiB, and 12 bytes per key.

    >>> bucket_of_keys(pa.array(["key-000000", "id:7,city:sf", "id:7,city:la"]), ["id"], 8).tolist()
    [5, 6, 6]
    """
    hashes = np.uint32(31) + java_hash(keys).view(np.uint32)
    names = [name.encode() for name in fields]
    for rows, text, offsets in text_chunks(keys):
        _hash_composite(text, offsets, names, hashes[rows])
    buckets: npt.NDArray[np.int32] = ((hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)).astype(np.int32)
    return buckets


def _hash_composite(text: memoryview, offsets: Places, names: list[bytes], hashes: npt.NDArray[np.uint32]) -> None:
    """Replace the hashes of the keys that have values of hash fields by the hashes of the lists of these values."""
    data = np.frombuffer(text, np.uint8)
    marks = _Marks(np.flatnonzero(data == _COMMA), np.flatnonzero(data == _COLON))
    has_both = np.diff(np.searchsorted(marks.commas, offsets)).astype(np.bool_)
    has_both &= np.diff(np.searchsorted(marks.colons, offsets)).astype(np.bool_)
    keys = np.flatnonzero(has_both)
    here, ends = offsets[:-1][keys], offsets[1:][keys]
    lists = np.ones(len(keys), np.uint32)
    found = np.zeros(len(keys), np.bool_)
    active = np.arange(len(keys))
    while len(active):
        start, end = here[active], ends[active]
        colon = marks.next_colon(start)
        split = marks.split(colon, end)
        mine = np.flatnonzero(_equal_any(data, start, colon, names))
        chosen = active[mine]
        lists[chosen] = lists[chosen] * np.uint32(31) + _value_hashes(text, data, colon[mine] + 1, split[mine])
        found[chosen] = True
        here[active] = split + 1
        active = active[split < end]
    hashes[keys[found]] = lists[found]


class _Marks:
    """The positions of the commas and colons of a text."""

    def __init__(self, commas: Places, colons: Places) -> None:
        end = np.array([np.iinfo(np.int64).max])
        self.commas, self.colons = np.concatenate([commas, end]), np.concatenate([colons, end])

    def next_colon(self, start: Places) -> Places:
        return self.colons[np.searchsorted(self.colons, start)]

    def split(self, colon: Places, end: Places) -> Places:
        """Return the end of each value that starts behind `colon`.

        It is the last comma before the first colon that has a comma between it and `colon`; `end` without such a colon.
        Commas in a value, and colons before the first comma of a value, are thus part of the value.
        """
        comma = self.commas[np.searchsorted(self.commas, colon)]
        inside = comma < end
        later = self.colons[np.searchsorted(self.colons, np.where(inside, comma, end))]
        inside &= later < end
        last = self.commas[np.searchsorted(self.commas, np.where(inside, later, 0)) - 1]
        return np.where(inside, last, end)


def _value_hashes(
    text: memoryview, data: npt.NDArray[np.uint8], starts: Places, ends: Places
) -> npt.NDArray[np.uint32]:
    """Return the hash of each value. Placeholders of null and of the empty text have the hash 0."""
    hashes = hash_ranges(text, starts, ends).view(np.uint32).copy()
    hashes[_equal_any(data, starts, ends, [_NULL, _EMPTY])] = 0
    return hashes


def _equal_any(
    data: npt.NDArray[np.uint8], starts: Places, ends: Places, names: Sequence[bytes]
) -> npt.NDArray[np.bool_]:
    """Return which ranges of the text are one of the names."""
    found = np.zeros(len(starts), np.bool_)
    for name in names:
        alike = np.flatnonzero(ends - starts == len(name))
        for position, byte in enumerate(name):
            alike = alike[data[starts[alike] + position] == byte]
        found[alike] = True
    return found
