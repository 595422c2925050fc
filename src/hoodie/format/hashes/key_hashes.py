"""Hash functions by which record keys fall into buckets, by name.

RFC-08 lets a developer choose the hash function of an index. `record_index` has no choice: every engine computes the
bucket of a key with the JVM's function, docs/format/metadata.md §5.1, and the table does not say which one was used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import InvalidConfigError
from hoodie.format.hashes.java_hash import file_group_index
from hoodie.format.hashes.murmur import chained_hashes

KeyHash = Callable[[pa.StringArray, int], npt.NDArray[np.int32]]
"""Bucket of every key, from 0 up to the count (exclusive). No null keys; equal keys get equal buckets everywhere."""

JAVA: Final = "java"
"""`String.hashCode`, the example of RFC-08 and the function of every Hudi engine."""


def murmur(keys: pa.StringArray, count: int) -> npt.NDArray[np.int32]:
    """Spread keys by the 32-bit MurmurHash2 of their UTF-8 bytes, as in bloom filters (seed 0). Memory: O(keys).

    >>> murmur(pa.array(["key-000000", "key-000349", "TXN-001"]), 10).tolist()
    [5, 8, 1]
    """
    hashes = np.empty(len(keys), np.uint32)
    for start, order, steps in chained_hashes(keys, 1):
        hashes[start + order.astype(np.int64)] = next(steps)
    buckets: npt.NDArray[np.int32] = (hashes % np.uint32(count)).astype(np.int32)
    return buckets


_HASHES: Final[dict[str, KeyHash]] = {JAVA: file_group_index, "murmur": murmur}


def register(name: str, function: KeyHash) -> None:
    """Make a hash function known to this process under a name of its own.

    Raises:
        InvalidConfigError: the name is no identifier, or is taken by another function: keys that lie in the buckets
            of the one would be looked for in those of the other.
    """
    if not name.isidentifier():
        raise InvalidConfigError(f"the name of a hash function must be an identifier such as 'fnv1a', got {name!r}")
    if _HASHES.setdefault(name, function) is not function:
        raise InvalidConfigError(f"there is a hash function {name!r} already; choose another name")


def key_hash(name: str) -> KeyHash:
    """Find a hash function by its name.

    Raises:
        InvalidConfigError: there is none; the message lists those that there are.

    >>> key_hash("java")(pa.array(["key-000000", "key-000349", "TXN-001"]), 10).tolist()
    [4, 0, 8]
    """
    if name not in _HASHES:
        raise InvalidConfigError(f"there is no hash function {name!r}; there are {', '.join(sorted(_HASHES))}")
    return _HASHES[name]


def record_index_hash(name: str) -> KeyHash:
    """Find the hash function that is asked for `record_index`: the JVM's, or the answer is no.

    Raises:
        InvalidConfigError: it is another one, or there is none of that name.
    """
    function = key_hash(name)
    if name != JAVA:
        raise InvalidConfigError(
            f"the hash function {name!r} cannot serve record_index: JVM Hudi and every other engine look a key up in "
            f"the bucket that {JAVA!r} (Java's String.hashCode) gives, would miss the keys that lie in other buckets, "
            f"and insert them a second time; leave the option out or say {JAVA!r}"
        )
    return function
