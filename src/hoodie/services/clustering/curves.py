"""Space-filling curves over ranks: z-order and Hilbert order of several columns as one number, vectorised.

Points that are close on a curve are close in every dimension, so a file that holds a piece of the curve has a narrow
range of values of each column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.uint64]
_KEY_BITS = 63
_RANK_BITS_MAX = 16
_ONE = np.uint64(1)


def bits_of(dimensions: int) -> int:
    """Return how many bits of each dimension go into a key of 63 bits: at most 16.

    >>> [bits_of(dimensions) for dimensions in (1, 2, 4, 8)]
    [16, 16, 15, 7]
    """
    return max(1, min(_RANK_BITS_MAX, _KEY_BITS // dimensions))


def z_order(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """Interleave the low `bits` bits of each dimension, highest bit first; the first dimension has the highest bit.

    >>> z_order([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 0, 1], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    key = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << _ONE) | ((rank >> np.uint64(bit)) & _ONE)
    return key


def hilbert_order(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """Return the position of each point on the Hilbert curve through all points of `bits` bits in each dimension.

    J. Skilling, "Programming the Hilbert curve" (2004): the points are transformed in place, then interleaved.

    >>> hilbert_order([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    axes = [rank.astype(np.uint64, copy=True) for rank in ranks]
    _undo_rotations(axes, bits)
    for place in range(1, len(axes)):
        axes[place] ^= axes[place - 1]
    gray = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, 0, -1):
        is_set = (axes[-1] >> np.uint64(bit)) & _ONE == _ONE
        gray ^= np.where(is_set, np.uint64((1 << bit) - 1), np.uint64(0))
    return z_order([axis ^ gray for axis in axes], bits)


def _undo_rotations(axes: list[Ranks], bits: int) -> None:
    """Rotate and reflect the lower bits of the axes by each higher bit, in place."""
    for bit in range(bits - 1, 0, -1):
        lower = np.uint64((1 << bit) - 1)
        for place, axis in enumerate(axes):
            is_set = (axis >> np.uint64(bit)) & _ONE == _ONE
            exchanged = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & lower)
            axes[0] = axes[0] ^ np.where(is_set, lower, exchanged)
            if place:
                axes[place] = axis ^ exchanged
