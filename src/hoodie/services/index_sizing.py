"""How large a record index must be, told by Parquet footers: no counting pass over the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hoodie import config as options
from hoodie.config import Option
from hoodie.engine import Engine, TaskContext
from hoodie.errors import InvalidConfigError
from hoodie.files.base_file import open_parquet
from hoodie.files.slices import BaseFile
from hoodie.storage import StoreSpec, open_store

KEYS_PER_BUCKET = 1_000_000
"""Keys that a bucket is made for, once the table has grown by the growth factor."""
BUCKETS_MAX = 10_000
"""File ids number the buckets in four digits, and their order as texts must be their order as numbers."""
_FILES_PER_TASK = 64
_FOOTER_BYTES = 64 * 1024

GROWTH_FACTOR = Option(
    "hoodie.metadata.record.index.growth.factor",
    2.0,
    float,
    "0.14",
    "By how much a table is expected to grow while its record index keeps its number of buckets.",
)


def bucket_count(rows: int, properties: Mapping[str, str], *, asked: int | None = None) -> int:
    """The number of buckets for so many keys: as asked for, else for a million keys each, after growth.

    Raises: InvalidConfigError for a number that cannot be.

    >>> bucket_count(40_000_000, {}), bucket_count(1000, {}), bucket_count(1000, {}, asked=3)
    (80, 10, 3)
    """
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= BUCKETS_MAX:
            raise InvalidConfigError(f"buckets={asked!r}: expected a number from 1 to {BUCKETS_MAX:,}")
        return asked
    least, most = options.RECORD_INDEX_BUCKETS_MIN.get(properties), options.RECORD_INDEX_BUCKETS_MAX.get(properties)
    wanted = math.ceil(rows * GROWTH_FACTOR.get(properties) / KEYS_PER_BUCKET)
    return min(max(wanted, least), most, BUCKETS_MAX)


def rows_of_files(
    engine_for: Callable[[int], Engine], store: StoreSpec, files: Sequence[BaseFile]
) -> dict[BaseFile, int]:
    """Rows of each base file, as its footer says.

    Raises: CorruptFileError for a file that is no whole Parquet file; FileNotFoundError.
    """
    pieces = [tuple(files[start : start + _FILES_PER_TASK]) for start in range(0, len(files), _FILES_PER_TASK)]
    engine = engine_for(len(files) * _FOOTER_BYTES)
    counts = engine.run(_count_rows, [_CountTask(store, piece) for piece in pieces])
    return {
        file: rows for piece, found in zip(pieces, counts, strict=True) for file, rows in zip(piece, found, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _CountTask:
    store: StoreSpec
    files: tuple[BaseFile, ...]


def _count_rows(task: _CountTask, _context: TaskContext) -> list[int]:
    store = open_store(task.store)
    rows = []
    for file in task.files:
        with open_parquet(store, file.path) as parquet:
            rows.append(int(parquet.metadata.num_rows))
    return rows
