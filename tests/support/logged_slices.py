"""File slices for tests: a base file and log files, written without a table around them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.slices import BaseFile, FileSlice, LogFile
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD, arrow_to_avro
from hoodie.format.filenames import BaseFileName, LogFileName
from hoodie.format.log.data_block import DataFormat, data_block, log_schema
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.storage import Store

PARTITION = "p"
Row = Mapping[str, Any]


def _with_meta_fields(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *schema])


def _block_schema(schema: pa.Schema, columns: Sequence[str] | None) -> str:
    """SCHEMA header of a data block, `_hoodie_operation` among the fields if the table's schema has that."""
    record = json.loads(log_schema(arrow_to_avro(schema, table_name="t"), table_name="t", columns=columns))
    if OPERATION_FIELD in schema.names:
        record["fields"].append({"name": OPERATION_FIELD, "type": ["null", "string"], "default": None})
    return json.dumps(record)


@dataclass
class SliceBuilder:
    """Writes the files of one slice, one commit after the other; instants count 100, 101, ….

    Rows are dictionaries of data columns; their record key is the text of `id`.
    """

    store: Store
    schema: pa.Schema
    row_group_rows: int = 1000
    base_file: BaseFile | None = None
    logs: list[LogFile] = field(default_factory=list)
    commits: int = 0

    @property
    def full_schema(self) -> pa.Schema:
        """The table's schema with meta columns."""
        return _with_meta_fields(self.schema)

    @property
    def file_slice(self) -> FileSlice:
        """The slice as it is by now."""
        return FileSlice(PARTITION, "f", "100", self.base_file, tuple(self.logs))

    def base(self, rows: Sequence[Row], schema: pa.Schema | None = None) -> None:
        """Write the base file; `schema` is what the table had at that time, if it was another."""
        instant_time = self._next()
        name = BaseFileName("f", "0-0-0", instant_time).name
        stored = _with_meta_fields(schema or self.schema)
        path = f"{PARTITION}/{name}"
        with BaseFileWriter(self.store, path, stored, ParquetOptions()) as writer:
            for start in range(0, len(rows), self.row_group_rows):
                writer.write(self._rows(rows[start : start + self.row_group_rows], instant_time, stored))
                writer.flush()
        self.base_file = BaseFile(PARTITION, name, "f", instant_time, writer.size_bytes)

    def log(
        self,
        rows: Sequence[Row] = (),
        *,
        deletes: Sequence[str] = (),
        orderings: pa.Array | None = None,
        columns: Sequence[str] | None = None,
        schema: pa.Schema | None = None,
        data_format: DataFormat = DataFormat.AVRO,
    ) -> None:
        """Write a log file: rows (with `columns` alone, as a partial block), then deletes by record key."""
        instant_time = self._next()
        table_schema = schema or self.schema
        avro = _block_schema(table_schema, columns)
        blocks = []
        if rows:
            kept = table_schema if columns is None else pa.schema([f for f in table_schema if f.name in columns])
            table = self._rows(rows, instant_time, _with_meta_fields(kept))
            is_partial = columns is not None
            block = data_block(
                table, instant_time=instant_time, avro_schema=avro, data_format=data_format, is_partial=is_partial
            )
            blocks.append(block)
        if deletes:
            keys = pa.array(deletes, pa.string())
            records = DeleteRecords.without_ordering(keys, PARTITION)
            if orderings is not None:
                records = DeleteRecords(keys, records.partition_paths, orderings)
            headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: avro}
            blocks.append(LogBlock(block_type=BlockType.DELETE, headers=headers, content=records.to_bytes()))
        self.add(instant_time, *blocks)

    def add(self, instant_time: str, *blocks: LogBlock) -> None:
        """Write a log file of these blocks."""
        data = b"".join(block.to_bytes() for block in blocks)
        log = LogFile(PARTITION, LogFileName("f", instant_time, 1, "0-0-0"), len(data))
        self.store.create(log.path, data)
        self.logs.append(log)

    def _next(self) -> str:
        self.commits += 1
        return str(99 + self.commits)

    def _rows(self, rows: Sequence[Row], instant_time: str, schema: pa.Schema) -> pa.Table:
        count = len(rows)
        meta = [[instant_time] * count, [f"{instant_time}_0_{n}" for n in range(count)]]
        meta += [[str(row["id"]) for row in rows], [PARTITION] * count, ["f"] * count]
        data = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema][len(META_FIELDS) :]
        return pa.Table.from_arrays([*(pa.array(column, pa.string()) for column in meta), *data], schema=schema)
