"""Content of data blocks: the rows of a log file as Avro, Parquet or HFile (docs/format/table.md §4.3).

Rows are Arrow tables in the types of the block's own SCHEMA header.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro_schema import META_FIELDS, avro_record_name, avro_to_arrow
from hoodie.format.conform import conform
from hoodie.format.hfile import HFileReader, hfile_to_bytes
from hoodie.format.log_block import BlockType, HeaderKey, LogBlock

_FRAME = struct.Struct(">ii")  # version, number of records
_VERSION = 3
_RECORD_KEY = "_hoodie_record_key"


class DataFormat(StrEnum):
    """How the rows of a data block are stored: `hoodie.logfile.data.block.format`."""

    AVRO = "avro"
    PARQUET = "parquet"
    HFILE = "hfile"


_BLOCK_TYPES = {
    DataFormat.AVRO: BlockType.AVRO_DATA,
    DataFormat.PARQUET: BlockType.PARQUET_DATA,
    DataFormat.HFILE: BlockType.HFILE_DATA,
}


def log_schema(table_avro: str, *, table_name: str, columns: Sequence[str] | None = None) -> str:
    """Return the SCHEMA header of data blocks: the table's Avro schema with the five meta fields in front.

    `columns` keeps only those data columns (partial updates), in the table's order.

    Raises:
        SchemaMismatchError: `columns` names one that the table does not have.
    """
    return _log_schema(table_avro, table_name, None if columns is None else tuple(columns))


@lru_cache(maxsize=64)
def _log_schema(table_avro: str, table_name: str, columns: tuple[str, ...] | None) -> str:
    record = json.loads(table_avro)
    name, namespace = avro_record_name(table_name)
    fields = [field for field in record["fields"] if field["name"] not in META_FIELDS]
    if columns is not None:
        unknown = [column for column in columns if column not in {field["name"] for field in fields}]
        if unknown:
            raise SchemaMismatchError(f"column {unknown[0]!r} is not in the table's schema")
        fields = [field for field in fields if field["name"] in columns]
    meta = [{"name": field, "type": ["null", "string"], "doc": "", "default": None} for field in META_FIELDS]
    head = {"type": "record", "name": record.get("name", name)}
    if "." not in head["name"]:
        head["namespace"] = record.get("namespace", namespace)
    return json.dumps(head | {"fields": meta + fields}, ensure_ascii=False, separators=(",", ":"))


def data_block(
    rows: pa.Table,
    *,
    instant_time: str,
    avro_schema: str,
    data_format: DataFormat,
    is_partial: bool = False,
    extra: Mapping[HeaderKey, str] | None = None,
) -> LogBlock:
    """Make a data block of rows that have the columns of `avro_schema`, in its order, meta fields included.

    With HFILE the rows are sorted by record key, which may not repeat.

    Raises:
        SchemaMismatchError: the rows do not fit the schema.
        InvalidConfigError: HFILE with repeated record keys.
    """
    rows = conform(rows, _arrow_schema(avro_schema))
    headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: avro_schema, **(extra or {})}
    if is_partial:
        headers[HeaderKey.IS_PARTIAL] = "true"
    if data_format is DataFormat.PARQUET:
        content = _parquet_to_bytes(rows)
    elif data_format is DataFormat.AVRO:
        encoded = _encode(rows, avro_schema)
        parts = [_FRAME.pack(_VERSION, len(encoded))]
        for value in encoded:
            parts += (struct.pack(">i", len(value)), value)
        content = b"".join(parts)
    else:
        content = _hfile_to_bytes(rows, avro_schema)
    return LogBlock(block_type=_BLOCK_TYPES[data_format], headers=headers, content=content)


def read_data_block(block: LogBlock, *, path: str, columns: Collection[str] | None = None) -> pa.Table:
    """Read the rows of a data block in the types of its own SCHEMA header, in the block's order.

    Only those of `columns` that the block has, in schema order; None means all.

    Raises:
        CorruptFileError: the content does not hold what the headers say.
        UnsupportedError: the block is of an ancient version, or its schema has a type that no table has.
    """
    text = block.headers.get(HeaderKey.SCHEMA)
    if text is None or not block.block_type.holds_data:
        raise CorruptFileError("expected a data block with a schema", path=path, offset=block.offset)
    try:
        schema = _arrow_schema(text)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            f"the SCHEMA header is no Avro schema ({error!r})", path=path, offset=block.offset
        ) from error
    wanted = schema if columns is None else pa.schema([field for field in schema if field.name in columns])
    if block.block_type is BlockType.PARQUET_DATA:
        return _read_parquet(block, wanted, path)
    if block.block_type is BlockType.HFILE_DATA:
        keys, values = HFileReader(block.content, path=path).entries()
        rows = _decode(values.to_pylist(), text, schema, path, block.content_offset)
        for name in ("key", _RECORD_KEY):
            if name in rows.column_names and pc.all(pc.equal(rows[name], "")).as_py():
                place = rows.schema.get_field_index(name)
                rows = rows.set_column(place, schema.field(name), keys.cast(pa.string()))
                break
        return rows.select(wanted.names)
    return _decode(_records(block, path), text, schema, path, block.content_offset).select(wanted.names)


@lru_cache(maxsize=64)
def _arrow_schema(avro_schema: str) -> pa.Schema:
    return avro_to_arrow(avro_schema)


def _parquet_to_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", compression_level=1, store_schema=False)
    return bytes(sink.getvalue())


def _read_parquet(block: LogBlock, wanted: pa.Schema, path: str) -> pa.Table:
    try:
        with pq.ParquetFile(pa.BufferReader(block.content)) as file:
            present = [name for name in wanted.names if name in file.schema_arrow.names]
            rows = file.read(present, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(f"no Parquet data ({error})", path=path, offset=block.content_offset) from error
    return conform(rows, wanted, stored=True)


def _hfile_to_bytes(rows: pa.Table, avro_schema: str) -> bytes:
    rows = rows.sort_by(_RECORD_KEY)
    keys = rows[_RECORD_KEY].combine_chunks()
    if len(keys) and (keys.null_count or pc.count_distinct(keys).as_py() < len(keys)):
        raise InvalidConfigError("an HFile block needs distinct record keys")
    place = rows.schema.get_field_index(_RECORD_KEY)
    blank = rows.set_column(place, rows.schema.field(place), pa.repeat("", len(keys)))
    return hfile_to_bytes(keys, pa.array(_encode(blank, avro_schema), pa.binary()), schema_json=avro_schema)


def _records(block: LogBlock, path: str) -> list[bytes]:
    """The records of an Avro data block, still encoded."""
    view, end = memoryview(block.content), len(block.content)
    if end < _FRAME.size:
        raise CorruptFileError("no room for a data block", path=path, offset=block.content_offset)
    version, count = _FRAME.unpack_from(view, 0)
    if version != _VERSION:
        raise UnsupportedError(f"{path} at byte {block.content_offset}: Avro data of version {version}; compact first")
    records = []
    position = _FRAME.size
    for _ in range(count):
        length = int.from_bytes(view[position : position + 4], "big", signed=True)
        position += 4
        if not 0 <= length <= end - position:
            raise CorruptFileError("a record runs past the block", path=path, offset=block.content_offset + position)
        records.append(bytes(view[position : position + length]))
        position += length
    return records


def _decode(values: list[bytes], text: str, schema: pa.Schema, path: str, offset: int) -> pa.Table:
    parsed: Any = fastavro.parse_schema(json.loads(text))
    try:
        rows = [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values]
        return pa.Table.from_pylist(rows, schema)
    except (EOFError, IndexError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptFileError(f"a record does not decode: {error!r}", path=path, offset=offset) from error


def _encode(rows: pa.Table, avro_schema: str) -> list[bytes]:
    parsed: Any = fastavro.parse_schema(json.loads(avro_schema))
    out = []
    for row in rows.to_pylist(maps_as_pydicts="strict"):
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, parsed, row)
        out.append(sink.getvalue())
    return out
