"""How many bytes a record will take in a base file: told by earlier commits, else guessed from the data at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie import config as options
from hoodie.files.staging.staged import StagedRun
from hoodie.view.table_view import TableView

_COMMITS_ASKED = 5
_ROWS_ENOUGH = 1000
_PARQUET_SHARE = 0.5
"""A Parquet file's bytes per byte of Arrow data, before any file is known."""
_DEFAULT_BYTES = 1024.0


def record_bytes(view: TableView, runs: Sequence[StagedRun], stored: Mapping[str, str]) -> float:
    """Expected bytes of one record: as the option says, as newest commits tell, or a share of its Arrow size."""
    fixed = options.RECORD_BYTES.get(stored)
    if fixed:
        return float(fixed)
    for instant in reversed(view.completed_writes()[-_COMMITS_ASKED:]):
        stats = [stat for stat in view.commit_metadata(instant).write_stats() if not stat.is_log_append]
        rows = sum(stat.num_writes for stat in stats)
        if rows >= _ROWS_ENOUGH:
            return max(sum(stat.file_size_bytes for stat in stats) / rows, 1.0)
    rows = sum(run.rows for run in runs)
    if not rows:
        return _DEFAULT_BYTES
    return max(sum(run.size_bytes for run in runs) / rows * _PARQUET_SHARE, 1.0)
