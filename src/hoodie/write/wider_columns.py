"""Refuse wider columns that Hudi 0.15 could not read in the log files of a table of version 6.

Hudi 0.15 neither reads nor compacts a slice with a Parquet block whose column has a narrower type than the table, nor
one with a decimal of fewer digits in any log file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.files.logs.log_scan import stored_blocks
from hoodie.format.log.log_block import BlockType
from hoodie.format.table.table_config import TableType
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView


def check_logs_allow(view: TableView, before: pa.Schema, after: pa.Schema) -> None:
    """Refuse a wider type at any depth while the newest slices have log files that 0.15 could not read then.

    Reads the headers of their blocks, if a type changes in a merge-on-read table of version 6.

    Raises: UnsupportedError.
    """
    config = view.config
    if not config.version.logs_avro or config.table_type is not TableType.MERGE_ON_READ:
        return
    known = dict(_leaves(before))
    wider = {path: known[path] for path, kind in _leaves(after) if path in known and known[path] != kind}
    if not wider:
        return
    logs = [log for found in list_slices(view) for log in found.log_files]
    decimals = sorted(path for path, kind in wider.items() if pa.types.is_decimal(kind))
    if logs and decimals:
        raise _refused(view, decimals, "log files")
    rule = view.slice_read().rule
    if any(block.block_type is BlockType.PARQUET_DATA for block in stored_blocks(view.store, logs, rule)):
        raise _refused(view, sorted(wider), "log files with Parquet blocks")


def _refused(view: TableView, columns: list[str], what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{view.store.uri('')}: the column {', '.join(columns)} would get a wider type, and the newest file slices "
        f"have {what}, which Hudi 0.15 could not read any more. Compact first, with "
        "t.schedule_compaction(strategy='unbounded') and t.compact(), or upgrade the table to version 9"
    )


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and type of each field at every depth that has no fields of its own."""
    for field in schema:
        yield from _leaves_of(field.name, field.type)


def _leaves_of(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaves_of(f"{path}.{child.name}", child.type)
    elif pa.types.is_map(kind):
        yield from _leaves_of(f"{path}.key", kind.key_type)
        yield from _leaves_of(f"{path}.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves_of(f"{path}.element", kind.value_type)
    else:
        yield path, kind
