"""Write log files: their format, the blocks that one delta commit appends to one file group, and delete blocks.

On-disk format: docs/format/table.md §4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.writes import LOG_BLOCK_FORMAT
from hoodie.engine import TaskContext
from hoodie.files.slices import FileSlice, join_path
from hoodie.format.filenames import UNKNOWN_WRITE_TOKEN, LogFileName, write_token
from hoodie.format.log.data_block import DataFormat
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, rollback_block
from hoodie.format.table.table_config import TableConfig
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store


@dataclass(frozen=True, slots=True)
class LogNames:
    """How the next log file of a file slice is named, by table version (docs/format/table.md §4.1). Picklable.

    `compacted`: version 6 only, the file groups (partition path, file id) of pending compactions, each with the instant
    of its compaction: their next log files belong to the file slice that the compaction creates.
    """

    has_base_instant: bool = False
    compacted: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)

    def next_name(self, found: FileSlice, instant_time: str, attempt: TaskContext) -> LogFileName:
        """Return the name of the log file that an attempt at a write appends to the slice.

        In version 6 the names of two writers that append to one slice differ in the write token only. So it contains
        the time of day of the instant.
        """
        if not self.has_base_instant:
            return LogFileName(found.file_id, instant_time, _FIRST_VERSION, attempt.write_token)
        base_time = self.compacted.get(found.group, found.base_instant_time)
        names = (log.name for log in found.log_files)
        token = write_token(attempt.partition, int(instant_time[-_TIME_OF_DAY_DIGITS:]), attempt.attempt)
        return LogFileName(found.file_id, base_time, next_version(names, base_time), token)


_FIRST_VERSION: Final = 1
_TIME_OF_DAY_DIGITS: Final = 9
"""Digits of an instant from the hour on: a number of a write token must fit into 32 bits."""


def next_version(names: Iterable[LogFileName], base_time: str) -> int:
    """Return the version of the next log file of the slice with this base instant (version 6)."""
    used = (name.version for name in names if name.instant_time == base_time)
    return max(used, default=_FIRST_VERSION - 1) + 1


@dataclass(frozen=True, slots=True, order=True)
class LoggedSlice:
    """A file slice of version 6, to which writes append log files."""

    partition_path: str
    file_id: str
    base_time: str

    def logs_among(self, names: Iterable[str]) -> list[LogFileName]:
        """Return the log files of the slice among the names of files in its partition, oldest first."""
        parsed = (LogFileName.parse(name) for name in names)
        own = (name for name in parsed if name and (name.file_id, name.instant_time) == (self.file_id, self.base_time))
        return sorted(own, key=lambda name: name.sort_key)


def append_rollback_block(
    store: Store, found: LoggedSlice, logs: Sequence[LogFileName], *, target: str, rollback_time: str
) -> tuple[str, int]:
    """Append a block that rolls back the earlier blocks of `target` to a file slice, whose log files are `logs`.

    It becomes a log file of its own, as files are not appended to. Returns its path and its size in bytes. A second
    call for the same rollback finds the file.
    """
    content = rollback_block(rollback_time, target).to_bytes()
    for name in logs[-1:]:
        path = join_path(found.partition_path, name.name)
        if name.write_token == UNKNOWN_WRITE_TOKEN and store.read(path) == content:
            return path, len(content)
    version = next_version(logs, found.base_time)
    name = LogFileName(found.file_id, found.base_time, version, UNKNOWN_WRITE_TOKEN)
    path = join_path(found.partition_path, name.name)
    store.create(path, content)
    return path, len(content)


class LogFileWriter:
    """Writes the blocks of one new log file. Memory: one block. Use as a context manager.

    After an error in it, an unfinished file remains, which is found by its marker.
    """

    def __init__(self, store: Store, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        self.blocks = 0
        self._sink = store.open_output(path)

    def write(self, block: LogBlock) -> None:
        """Append a block."""
        content = block.to_bytes()
        self._sink.write(content)
        self.size_bytes += len(content)
        self.blocks += 1

    def __enter__(self) -> LogFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._sink.close()
        else:
            with contextlib.suppress(Exception):
                self._sink.close()


def delete_blocks(
    deletes: pa.Table,
    in_order: npt.NDArray[np.bool_],
    *,
    partition_path: str,
    ordering_columns: Sequence[str],
    headers: Mapping[HeaderKey, str],
) -> list[LogBlock]:
    """Return the blocks that delete the keys of a table: one block without and one with ordering values.

    A block without keys is omitted. `in_order` marks the rows whose ordering value counts; the other deletes win over
    every record. The blocks store the partition path of the file group, because a row may have the path of another
    partition, to which the record moves.
    """
    keys = deletes[RECORD_KEY].combine_chunks()
    paths = pa.repeat(pa.scalar(partition_path, pa.string()), len(keys))
    records = DeleteRecords(keys, paths, _ordering(deletes, in_order, ordering_columns))
    return [
        LogBlock(block_type=BlockType.DELETE, headers=headers, content=part.to_bytes()) for part in records.unmixed()
    ]


def log_block_format(config: TableConfig, schema: pa.Schema, properties: Mapping[str, str]) -> DataFormat:
    """Return the format of data blocks: the format that the properties set, else Parquet.

    The default is Avro in version 6 (`TableVersion.logs_avro`), and if an ordering field is a string: when JVM Hudi
    1.2.0 merges Parquet blocks with such a field, it keeps the wrong versions.
    """
    by_text = any(
        pa.types.is_string(schema.field(name).type)
        for name in config.ordering_fields
        if schema.get_field_index(name) >= 0
    )
    if (by_text or config.version.logs_avro) and LOG_BLOCK_FORMAT.key not in properties:
        return DataFormat.AVRO
    return DataFormat(LOG_BLOCK_FORMAT.get(properties))


def _ordering(deletes: pa.Table, in_order: npt.NDArray[np.bool_], ordering_columns: Sequence[str]) -> pa.Array:
    """Return ordering values, as structs if there are several columns; null where the ordering value does not count."""
    if not ordering_columns or not in_order.any():
        return pa.nulls(deletes.num_rows, pa.int32())
    columns = [deletes[name].combine_chunks() for name in ordering_columns]
    names = [f"f{number}" for number in range(len(columns))]
    ordering = columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, names)
    return ordering.take(pa.array(np.arange(deletes.num_rows), mask=~in_order))
