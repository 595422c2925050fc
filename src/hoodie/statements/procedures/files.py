"""Procedures that describe the files of a table."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie.statements.procedure import Call, Procedure, optional, required

SIZES_SCHEMA: Final = pa.schema(
    [
        ("commit_time", pa.string()),
        ("min", pa.int64()),
        ("10th", pa.float64()),
        ("50th", pa.float64()),
        ("avg", pa.float64()),
        ("95th", pa.float64()),
        ("max", pa.int64()),
        ("num_files", pa.int32()),
        ("std_dev", pa.float64()),
    ]
)
_ALL: Final = "ALL"


def _stats_file_sizes(call: Call) -> pa.Table:
    """Return the distribution of the sizes of the data files by the instant in their names, and of all of them."""
    files = call.table.inspect.files()
    wanted = call["partition_path"]
    by_instant: dict[str, list[int]] = {}
    columns = (files[name].to_pylist() for name in ("partition_path", "instant", "size_bytes"))
    for partition_path, instant, size_bytes in zip(*columns, strict=True):
        if not wanted or fnmatchcase(partition_path, wanted):
            by_instant.setdefault(instant, []).append(size_bytes)
    rows = [_sizes(instant, found) for instant, found in sorted(by_instant.items(), reverse=True)[: call["limit"]]]
    everything = [size for found in by_instant.values() for size in found]
    return pa.Table.from_pylist([*rows, _sizes(_ALL, everything)], schema=SIZES_SCHEMA)


def _sizes(instant: str, found: list[int]) -> Mapping[str, Any]:
    if not found:
        return {"commit_time": instant, "num_files": 0}
    sizes = np.asarray(found, np.int64)
    # The JVM's histogram places a quantile q at q * (n + 1).
    tenth, half, most = np.quantile(sizes, [0.1, 0.5, 0.95], method="weibull")
    return {
        "commit_time": instant,
        "min": int(sizes.min()),
        "10th": float(tenth),
        "50th": float(half),
        "avg": float(sizes.mean()),
        "95th": float(most),
        "max": int(sizes.max()),
        "num_files": len(found),
        "std_dev": float(sizes.std(ddof=1)) if len(found) > 1 else 0.0,
    }


FILES: Final = (
    Procedure(
        name="stats_file_sizes",
        about="Tell how large the data files of each instant are, and all of them; partition_path may have wildcards.",
        parameters=(required("table"), optional("partition_path", ""), optional("limit", 10)),
        run=_stats_file_sizes,
    ),
)
