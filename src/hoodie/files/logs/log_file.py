"""Write log files: their format, the blocks that one delta commit appends to one file group, and delete blocks.

On-disk format: docs/format/table.md §4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.writes import LOG_BLOCK_FORMAT
from hoodie.format.log.data_block import DataFormat
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.table.table_config import TableConfig
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store


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

    If an ordering field is a string, the default is Avro: when JVM Hudi 1.2.0 merges Parquet blocks with such a field,
    it keeps the wrong versions.
    """
    by_text = any(
        pa.types.is_string(schema.field(name).type)
        for name in config.ordering_fields
        if schema.get_field_index(name) >= 0
    )
    if by_text and LOG_BLOCK_FORMAT.key not in properties:
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
