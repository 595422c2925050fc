"""Send rows to a chosen Spark partition on every Spark version.

`DataFrame.repartition(n, column)` sends a row to partition `pmod(murmur3(value), n)`. This module finds for each
partition an integer (its salt) whose hash selects the partition, and rows are repartitioned by the salt of their
partition. Spark 4.1 has `repartitionById`. It is not used, because one way for all versions needs fewer tests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark.sql import functions as F

_SEED = 42
_MASK = 0xFFFFFFFF


def salts(bucket_column: str, count: int) -> Any:
    """Return a column expression that `repartition(count, ...)` maps to partition `bucket % count`."""
    numbers = F.array(*(F.lit(number) for number in _salt_numbers(count)))
    return F.element_at(numbers, (F.col(bucket_column) % count + 1).cast("int"))


@lru_cache
def _salt_numbers(count: int) -> tuple[int, ...]:
    """Return for each partition the smallest number whose hash selects it."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(murmur3_of_int(number) % count, number)
        number += 1
    return tuple(found[partition] for partition in range(count))


def murmur3_of_int(value: int) -> int:
    """Compute Spark's hash of an int column: Murmur3 x86 32-bit with seed 42, as a signed number.

    >>> murmur3_of_int(0), murmur3_of_int(1)
    (933211791, -559580957)
    """
    mixed = value * 0xCC9E2D51 & _MASK
    mixed = ((mixed << 15) | (mixed >> 17)) & _MASK
    mixed = mixed * 0x1B873593 & _MASK
    hashed = _SEED ^ mixed
    hashed = ((hashed << 13) | (hashed >> 19)) & _MASK
    hashed = (hashed * 5 + 0xE6546B64) & _MASK
    hashed ^= 4
    hashed ^= hashed >> 16
    hashed = hashed * 0x85EBCA6B & _MASK
    hashed ^= hashed >> 13
    hashed = hashed * 0xC2B2AE35 & _MASK
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed
