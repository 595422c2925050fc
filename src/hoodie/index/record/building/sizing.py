"""Compute the number of buckets of a record index from row counts in Parquet footers, without reading all data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie import config as options
from hoodie.engine import EngineFor, TaskContext
from hoodie.errors import InvalidConfigError
from hoodie.files.base_file import open_base_file
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.records.change import RECORD_KEY
from hoodie.storage import StoreSpec, open_store

KEYS_PER_BUCKET = 1_000_000
"""Target number of keys in a bucket after the table has grown by the growth factor."""
BUCKETS_MAX = 10_000
"""Maximum number of buckets. File ids contain the bucket number with four digits, so text order is number order."""
_FILES_PER_TASK = 64
_FOOTER_BYTES = 64 * 1024


def bucket_count(rows: int, properties: Mapping[str, str], *, asked: int | None = None) -> int:
    """Return the number of buckets for `rows` keys: `asked` if given, else for a million keys each, after growth.

    Raises: InvalidConfigError if `asked` is not a number from 1 to `BUCKETS_MAX`.

    >>> bucket_count(40_000_000, {}), bucket_count(1000, {}), bucket_count(1000, {}, asked=3)
    (80, 10, 3)
    """
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= BUCKETS_MAX:
            raise InvalidConfigError(f"buckets={asked!r}: expected a number from 1 to {BUCKETS_MAX:,}")
        return asked
    least, most = options.RECORD_INDEX_BUCKETS_MIN.get(properties), options.RECORD_INDEX_BUCKETS_MAX.get(properties)
    wanted = math.ceil(rows * options.RECORD_INDEX_GROWTH_FACTOR.get(properties) / KEYS_PER_BUCKET)
    return min(max(wanted, least), most, BUCKETS_MAX)


def rows_of_slices(
    engine_for: EngineFor, store: StoreSpec, slices: Sequence[FileSlice], read: SliceRead
) -> dict[FileSlice, int]:
    """Return the rows of each file slice: from the base file's footer, or by merging if there are log files.

    Raises: CorruptFileError if a file is damaged or missing.
    """
    pieces = [tuple(slices[start : start + _FILES_PER_TASK]) for start in range(0, len(slices), _FILES_PER_TASK)]
    engine = engine_for(sum(found.size_bytes if found.log_files else _FOOTER_BYTES for found in slices))
    keys_only = replace(read, columns=(RECORD_KEY,))
    counts = engine.run(_count_rows, [_CountTask(store, piece, keys_only) for piece in pieces])
    return {
        found: rows for piece, told in zip(pieces, counts, strict=True) for found, rows in zip(piece, told, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _CountTask:
    store: StoreSpec
    slices: tuple[FileSlice, ...]
    read: SliceRead


def _count_rows(task: _CountTask, _context: TaskContext) -> list[int]:
    store = open_store(task.store)
    rows = []
    for found in task.slices:
        if found.log_files or found.base_file is None:
            rows.append(sum(merged.num_rows for merged in read_file_slice(store, found, task.read)))
            continue
        with open_base_file(store, found.base_file) as (parquet, _):
            rows.append(int(parquet.metadata.num_rows))
    return rows
