"""Estimate the bytes of a record in a base file: from earlier commits, else from the data of the write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie import config as options
from hoodie.files.staging.staged import StagedRun
from hoodie.view.table_view import TableView

_COMMITS_ASKED = 5
_ROWS_ENOUGH = 1000
_PARQUET_SHARE = 0.5
"""Bytes of a Parquet file per byte of Arrow data; used before any commit has written a base file."""
_DEFAULT_BYTES = 1024.0


def record_bytes(view: TableView, runs: Sequence[StagedRun], stored: Mapping[str, str]) -> float:
    """Return the expected bytes of one record: the option, else an average of the newest commits, else a default.

    Without a suitable commit the result is a share of the Arrow size of the staged rows; without rows it is 1024.
    """
    known = known_record_bytes(view, stored)
    if known is not None:
        return known
    rows = sum(run.rows for run in runs)
    if not rows:
        return _DEFAULT_BYTES
    return max(sum(run.size_bytes for run in runs) / rows * _PARQUET_SHARE, 1.0)


def known_record_bytes(view: TableView, stored: Mapping[str, str]) -> float | None:
    """Return the bytes of one record from the option or the newest commits; None if neither tells."""
    fixed = options.RECORD_BYTES.get(stored)
    if fixed:
        return float(fixed)
    for instant in reversed(view.completed_writes()[-_COMMITS_ASKED:]):
        written = view.written_bytes(instant, rows_enough=_ROWS_ENOUGH)
        if written.rows >= _ROWS_ENOUGH:
            return max(written.size_bytes / written.rows, 1.0)
    return None
