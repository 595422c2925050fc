"""Hash record keys, to distribute them evenly over tasks. The hash is stable and never stored."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.hashes.java_hash import java_hash

HASH_END: Final = 1 << 32
"""One past the greatest hash."""


def spread(keys: pa.StringArray) -> npt.NDArray[np.uint32]:
    """Return a 32-bit hash per key, made from all its characters; equal keys have equal hashes on every machine.

    Java's hashes of similar keys differ only in their low bits, and do not depend on leading NULs. The length and the
    final mixing step of MurmurHash3 spread the difference over all bits. Keys must not be null. Memory: about 20 MiB,
    and eight bytes per key.
    """
    lengths = pc.binary_length(keys).to_numpy(zero_copy_only=False).astype(np.uint32)
    mixed = java_hash(keys).view(np.uint32) ^ lengths * np.uint32(0x9E3779B9)
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ mixed >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    hashes: npt.NDArray[np.uint32] = mixed ^ mixed >> np.uint32(16)
    return hashes
