"""Merge small logs in the driver, so that a query runs no Python: decision 0020."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.config import LOCAL_BYTES_MAX
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.read.local_merges import LocalMerge, Superseded, key_of_all, merge_locally, superseded_locally
from hoodie.read.plan import ScanPlan
from hoodie.spark.local_rows import frame_of, kept, makes_frames_of_arrow
from hoodie.spark.merged import SliceReader, decisive_bytes

LOG_BYTES_MAX: Final = 16 * 1024 * 1024
"""Up to this many bytes of log files, their rows are merged in the driver too."""


@dataclass(frozen=True, slots=True)
class DriverMerges:
    """What the driver has found: the merge of each base file with its logs, and a DataFrame of the rows of logs.

    `has_rows`: the driver has merged the rows of logs; `rows` is None if there are none.
    """

    by_file: Mapping[BaseFile, LocalMerge]
    has_rows: bool
    rows: Any = None


def merged_by_driver(
    session: Any, plan: ScanPlan, slices: Sequence[FileSlice], reader: SliceReader, schema: Any
) -> DriverMerges | None:
    """Merge slices with log files on threads of the driver, now; None if this is the work of Spark's workers.

    The driver merges up to `hoodie.python.local.bytes.max` bytes of logs and keys; if the logs have more than
    `LOG_BYTES_MAX` bytes, it finds only the superseded rows. `schema` is the Spark schema of `reader`.

    Memory: as `merge_locally`; the JVM holds the rows too.
    """
    limit = LOCAL_BYTES_MAX.get(plan.view.config.raw)
    if not slices or sum(map(decisive_bytes, slices)) > limit or not makes_frames_of_arrow(session):
        return None
    store = plan.view.store
    if sum(log.size_bytes for found in slices for log in found.log_files) <= LOG_BYTES_MAX:
        merges = merge_locally(store, slices, reader.scan, reader.schema)
        if merges is not None:
            rows = _rows(session, merges, schema)
            return DriverMerges(_by_file(slices, merges), has_rows=True, rows=rows)
    scanned = [found for found in slices if found.base_file is not None]
    return DriverMerges(_by_file(scanned, superseded_locally(store, scanned, Superseded.of(plan))), has_rows=False)


def _by_file(slices: Sequence[FileSlice], merges: Sequence[LocalMerge]) -> dict[BaseFile, LocalMerge]:
    found = zip(slices, merges, strict=True)
    return {a_slice.base_file: merge for a_slice, merge in found if a_slice.base_file is not None}


def _rows(session: Any, merges: Sequence[LocalMerge], schema: Any) -> Any:
    tables = [merge.rows for merge in merges if merge.rows is not None and merge.rows.num_rows]
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    key = key_of_all(merges)
    key = None if key is None else ("rows", key, schema.json())
    return kept(session, key, rows.nbytes, lambda: frame_of(session, rows, schema))
