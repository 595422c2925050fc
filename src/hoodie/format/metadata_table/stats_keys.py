"""Keys of `column_stats`, `partition_stats` and `bloom_filters` (docs/format/metadata.md §4.4 to §4.6)."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import lru_cache
from typing import Final

from hoodie.format.hashes.xxhash64 import xxhash64
from hoodie.format.metadata_table.metadata_record import NON_PARTITIONED_KEY

_SEED: Final = 0xFFFFFFFFDABADABA
"""The JVM's seed 0xdabadaba is an int: it is extended with its sign. On disk: do not change."""


def column_prefix(column: str) -> str:
    """Return what the keys of all rows of a column begin with: 12 characters; a nested column has its dotted name.

    >>> column_prefix("fare")
    'k6A0EIIbKbU='
    """
    return _hashed(column)


def partition_stats_key(column: str, partition_path: str) -> str:
    """Return the key of a column of a partition: 24 characters; keys of its files in `column_stats` begin with it.

    >>> partition_stats_key("fare", "city=nyc")
    'k6A0EIIbKbU=+ciZGpRvCv8='
    """
    return _hashed(column) + _hashed(partition_path or NON_PARTITIONED_KEY)


def _file_suffix(file_name: str) -> str:
    """Return what the keys of all rows of a file end with: 24 characters."""
    return b64encode(hashlib.md5(file_name.encode(), usedforsecurity=False).digest()).decode()


def column_stats_key(column: str, partition_path: str, file_name: str) -> str:
    """Return the key of a column of a file: 48 characters."""
    return partition_stats_key(column, partition_path) + _file_suffix(file_name)


def bloom_filter_key(partition_path: str, file_name: str) -> str:
    """Return the key of a base file in `bloom_filters`: 36 characters."""
    return _hashed(partition_path or NON_PARTITIONED_KEY) + _file_suffix(file_name)


@lru_cache(maxsize=4096)
def _hashed(text: str) -> str:
    return b64encode(xxhash64(text.encode(), _SEED).to_bytes(8, "big")).decode()
