"""Binary search in sorted Arrow columns of bytes, for many needles at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64Array = npt.NDArray[np.int64]


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
