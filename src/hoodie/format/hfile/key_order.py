"""The two key orders of HFiles: byte order, and Java's order of strings, which compares UTF-16 units.

Byte order sorts characters beyond U+FFFF (such as emoji) after the characters from U+E000 to U+FFFF (such as full-width
letters); Java's order sorts them before these characters. JVM Hudi 1.2.0 writes and seeks in Java's order; its look-ups
miss some of these keys or fail. This reader accepts both orders (docs/format/metadata.md §1.11).
Binary search finds many needles at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_FIRST_CONTESTED = 0xEE
"""The least UTF-8 byte that the orders sort differently.

EE and EF begin the characters U+E000 to U+FFFF; F0 to F4 begin the characters beyond U+FFFF.
"""

_RANKS = np.arange(256, dtype=np.uint8)
_RANKS[[0xEE, 0xEF, 0xF0, 0xF1, 0xF2, 0xF3, 0xF4]] = [0xF3, 0xF4, 0xEE, 0xEF, 0xF0, 0xF1, 0xF2]
Int64Array = npt.NDArray[np.int64]


def is_plain(keys: pa.BinaryArray) -> bool:
    """Return whether both orders give these keys the same place, whatever other keys there are."""
    _, offsets, data = keys.buffers()
    if data is None or not len(keys):
        return True
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    used = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return not len(used) or int(used.max()) < _FIRST_CONTESTED


def as_java_sorts(keys: pa.BinaryArray) -> pa.BinaryArray:
    """Return other keys whose byte order is Java's order of these keys. Memory: the keys once more."""
    _, offsets, data = keys.buffers()
    if data is None:
        return keys
    ranked = _RANKS[np.frombuffer(data, np.uint8)]
    return pa.BinaryArray.from_buffers(keys.type, len(keys), [None, offsets, pa.py_buffer(ranked)], 0, keys.offset)


def ascends(keys: pa.BinaryArray) -> bool:
    """Return whether each key is not less than the key before it, in byte order."""
    return len(keys) < 2 or bool(pc.all(pc.greater_equal(keys[1:], keys[:-1])).as_py())


def ascends_somehow(keys: pa.BinaryArray) -> bool:
    """Return whether the keys ascend in one of the two orders."""
    return ascends(keys) or (not is_plain(keys) and ascends(as_java_sorts(keys)))


def is_less(keys: pa.BinaryArray, others: pa.BinaryArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the places where a key is less than the other key in both orders."""
    found: npt.NDArray[np.bool_] = np.asarray(pc.less(keys, others))
    if found.any() and not (is_plain(keys) and is_plain(others)):
        found = found & np.asarray(pc.less(as_java_sorts(keys), as_java_sorts(others)))
    return found


def lower_bounds(
    sorted_keys: pa.BinaryArray, needles: pa.BinaryArray, low: Int64Array | None = None, high: Int64Array | None = None
) -> Int64Array:
    """Find for each needle the first place in `[low, high]` whose key is not less (default: all of `sorted_keys`).

    The Python loop runs once per halving. Memory: a few numbers and one key for each needle.
    """
    low = np.zeros(len(needles), np.int64) if low is None else low.copy()
    high = np.full(len(needles), len(sorted_keys), np.int64) if high is None else high.copy()
    while (is_open := low < high).any():
        middle = (low + high) >> 1
        probe = np.where(is_open, middle, 0)
        is_less = np.asarray(pc.less(sorted_keys.take(pa.array(probe)), needles)) & is_open
        low = np.where(is_less, middle + 1, low)
        high = np.where(is_less | ~is_open, high, middle)
    return low


def first_not_less(sorted_keys: pa.BinaryArray, needle: bytes) -> int:
    """Find the first place whose key is not less than `needle`; return the number of keys if there is none."""
    return int(lower_bounds(sorted_keys, pa.array([needle], pa.binary()))[0])
