"""Make keys like random UUIDs from numbers: a number always gives the same key. A million keys take a second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)
_DASHES_AFTER = (8, 12, 16, 20)


def uuid_keys(numbers: Numbers) -> pa.StringArray:
    """Return one key of 36 characters for each number. Memory: temporarily about 150 bytes for each key."""
    halves = np.empty((len(numbers), 2), ">u8")
    halves[:, 0] = _mixed(numbers.astype(np.uint64) * np.uint64(2))
    halves[:, 1] = _mixed(numbers.astype(np.uint64) * np.uint64(2) + np.uint64(1))
    return uuid_texts(halves.view(np.uint8))


def uuid_texts(values: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return the texts of UUIDs of 16 bytes each; `values` has two axes."""
    digits = _HEX[values].reshape(len(values), 32)
    return texts_of(np.insert(digits, _DASHES_AFTER, ord("-"), axis=1))


def texts_of(characters: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Return texts of the same length; `characters` are their bytes, one row for each text."""
    count, length = characters.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(length)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters)))


def narrow_rows(numbers: Numbers, *, ts: int, cities: int = 10) -> pa.Table:
    """Return rows with three columns: `key`, `ts` (the same value in all rows) and `city` (`number % cities`)."""
    names = pa.array([f"city-{city}" for city in range(cities)])
    return pa.table(
        {
            "key": uuid_keys(numbers),
            "ts": pa.array(np.full(len(numbers), ts, np.int64)),
            "city": names.take(pa.array(numbers % cities)),
        }
    )


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of numbers to pseudo-random numbers, different for each number (the finaliser of splitmix64)."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
