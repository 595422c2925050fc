"""Measure the memory of a worker that looks keys up in the record index, and compute its bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from bench.memory import peak_memory
from hoodie.engine import LocalEngine
from hoodie.index.record.file_groups import RecordIndexState, read_file_group
from hoodie.index.record.state import record_index
from hoodie.metadata.slices import CACHE_BYTES_MAX
from hoodie.storage import open_store

_ENTRY_BYTES = 21
"""Bytes of an entry in a block, without its key and value (docs/record-index/scaling.md)."""


def memory_of_look_up(folder: Path, keys: pa.StringArray) -> dict[str, Any]:
    """Look keys up in this process, which must be new. Sizes are in MiB."""
    _load_libraries()
    table = hoodie.open(folder, spark=False)
    with peak_memory() as peak:
        peak.sample()
        before = peak.driver_mib
        found = table.record_locations(keys)
    assert found["file_id"].null_count == 0, f"{found['file_id'].null_count} of {len(keys)} keys were not found"
    state = record_index(table.view())
    assert state is not None, "the table has no record index"
    threads = LocalEngine().threads
    task = _task_bytes(folder, state)
    return {
        "keys": len(keys),
        "before_mib": round(before, 1),
        "grown_mib": round(peak.driver_mib - before, 1),
        "cache_mib": CACHE_BYTES_MAX / 2**20,
        "task_mib": round(task / 2**20, 1),
        "threads": threads,
        "bound_mib": round((CACHE_BYTES_MAX + threads * task) / 2**20, 1),
    }


def _load_libraries() -> None:
    """Load the libraries by a small look-up, because their memory is not part of the figure."""
    rows = pa.table({"key": ["a", "b"]})
    table = hoodie.create("memory://bench-look-up-memory", rows.schema, record_key="key", index="record")
    table.upsert(rows)
    table.record_locations(rows)


def _task_bytes(folder: Path, state: RecordIndexState) -> int:
    """Compute the maximum memory of a task: the files of the largest index file group, and its entries.

    The entries are counted twice, as blocks and as columns.
    """
    bucket = max(state.file_groups, key=lambda bucket: bucket.size_bytes)
    content = read_file_group(open_store(folder), bucket)
    columns = [column for block in content.blocks for column in (block.keys, block.values) if column is not None]
    rows = sum(len(block) for block in content.blocks)
    if content.base is not None:
        columns += content.base.entries()
        rows += len(content.base)
    held = sum(int(column.nbytes) for column in columns)
    return bucket.size_bytes + 2 * held + _ENTRY_BYTES * rows
