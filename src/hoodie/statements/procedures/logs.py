"""Procedures that show the blocks and the records of log files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from hoodie.errors import InvalidConfigError
from hoodie.files.slices import join_path
from hoodie.format.filenames import LogFileName
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, LogBlock, parse_log_blocks
from hoodie.statements.procedures.procedure import FILTER, TABLE, Call, Row, optional, procedure, required, unsupported
from hoodie.view.listing import list_files

_PATTERN: Final = (*TABLE, required("log_file_path_pattern"))


def _blocks(call: Call) -> Iterator[tuple[LogBlock, str]]:
    """Yield the blocks of the committed log files whose path or URI matches the pattern, with the path of the file.

    Memory: one log file. Raises: InvalidConfigError if no log file matches.
    """
    view, pattern = call.table.view(), call["log_file_path_pattern"]
    paths = [
        join_path(partition, name)
        for partition, names in sorted(list_files(view).items())
        for name in sorted(names)
        if LogFileName.parse(name) is not None
    ]
    local = view.store.uri("").removeprefix("file://").rstrip("/")
    chosen = [
        path
        for path in paths
        if any(fnmatchcase(text, pattern) for text in (path, view.store.uri(path), f"{local}/{path}"))
    ]
    if not chosen:
        raise InvalidConfigError(
            f"CALL: log_file_path_pattern => {pattern!r} matches none of the {len(paths)} log files of "
            f"{view.store.uri('')}: expected a path or a URI, with * for any text"
        )
    for path in chosen:
        for block in parse_log_blocks(view.store.read(path), path=view.store.uri(path)):
            yield block, path


@procedure(
    parameters=(*_PATTERN, optional("limit", 10), FILTER),
    columns="instant_time string, record_count integer, block_type string, header_metadata string, "
    "footer_metadata string",
)
def show_logfile_metadata(call: Call) -> Iterable[Row]:
    """List the blocks of log files; the pattern of their paths may have wildcards."""
    return call.limited(
        {
            "instant_time": block.instant_time,
            "record_count": _count(block, path),
            "block_type": f"{block.block_type.name}_BLOCK",
            "header_metadata": json.dumps({key.name: text for key, text in block.headers.items()}),
            "footer_metadata": "{}",
        }
        for block, path in _blocks(call)
    )


def _count(block: LogBlock, path: str) -> int:
    if block.block_type is BlockType.DELETE:
        return len(DeleteRecords.parse(block.content, path=path, offset=block.content_offset))
    return read_data_block(block, path=path).num_rows if block.block_type.holds_data else 0


@procedure(
    parameters=(*_PATTERN, unsupported("merge", bool, False), optional("limit", 10), FILTER),
    columns="records string",
)
def show_logfile_records(call: Call) -> Iterable[Row]:
    """List the records of the data blocks of log files as JSON; the pattern as for show_logfile_metadata."""
    return call.limited(
        {"records": json.dumps(record, default=_text, ensure_ascii=False)}
        for block, path in _blocks(call)
        if block.block_type.holds_data
        for record in read_data_block(block, path=path).to_pylist()
    )


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
