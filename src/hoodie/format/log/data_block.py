"""Content of data blocks: the rows of a log file as Avro, Parquet or HFile (docs/format/table.md §4.3).

Rows are Arrow tables with the types of the block's own SCHEMA header.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.rows import decode_rows, encode_rows
from hoodie.format.avro.safe_schema import parse_schema
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD, avro_record_name, avro_to_arrow, schema_text
from hoodie.format.hfile import HFileReader, hfile_to_bytes
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.schema.arrow_types import bytes_of, offsets_of
from hoodie.format.schema.conform import conform

_FRAME: Final = struct.Struct(">ii")  # version, number of records
_LENGTH: Final = struct.Struct(">I")  # before each record
_VERSION: Final = 3
_VERSIONS: Final = range(4)  # these versions have the same form; no later version is known
_RECORD_KEY: Final = "_hoodie_record_key"
# In HFile blocks, one of these fields may be blank; its value is then the key of the HFile entry. In the metadata table
# the field `key` always is blank.
_KEY_FIELDS: Final = (_RECORD_KEY, "key")
# The columns of a log block whose values repeat. Dictionaries of other columns would cost time without a gain.
_REPEATED: Final = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name"]

# Rows have different keys. A few bytes of Parquet that stand for many more rows than that are no rows of a table.
_ROWS_PER_BYTE_MAX: Final = 20

Int64Array = npt.NDArray[np.int64]


class DataFormat(StrEnum):
    """How the rows of a data block are stored: `hoodie.logfile.data.block.format`."""

    AVRO = "avro"
    PARQUET = "parquet"
    HFILE = "hfile"


_BLOCK_TYPES: Final = {
    DataFormat.AVRO: BlockType.AVRO_DATA,
    DataFormat.PARQUET: BlockType.PARQUET_DATA,
    DataFormat.HFILE: BlockType.HFILE_DATA,
}


def log_schema(table_avro: str, *, table_name: str, columns: Sequence[str] | None = None) -> str:
    """Return the SCHEMA header of data blocks: the five meta fields and then the table's Avro schema.

    With `columns`, only these data columns are kept (partial updates), in the table's order. The record name and the
    namespace are taken from the schema; if one of them is missing, it is derived from `table_name`.

    Raises: SchemaMismatchError if `columns` has a column that the table does not have.
    """
    return _log_schema(table_avro, table_name, None if columns is None else tuple(columns))


@lru_cache(maxsize=64)
def _log_schema(table_avro: str, table_name: str, columns: tuple[str, ...] | None) -> str:
    record = json.loads(table_avro)
    name, namespace = avro_record_name(table_name)
    fields = [field for field in record["fields"] if field["name"] not in (*META_FIELDS, OPERATION_FIELD)]
    if columns is not None:
        known = {field["name"] for field in fields}
        unknown = [column for column in columns if column not in known]
        if unknown:
            raise SchemaMismatchError(f"column {unknown[0]!r} is not in the table's schema")
        chosen = set(columns)
        fields = [field for field in fields if field["name"] in chosen]
    meta = [{"name": field, "type": ["null", "string"], "doc": "", "default": None} for field in META_FIELDS]
    head = {"type": "record", "name": record.get("name", name)}
    if "." not in head["name"]:
        head["namespace"] = record.get("namespace", namespace)
    return schema_text(head | {"fields": meta + fields})


def data_block(
    rows: pa.Table,
    *,
    instant_time: str,
    avro_schema: str,
    data_format: DataFormat,
    is_partial: bool = False,
    extra: Mapping[HeaderKey, str] | None = None,
) -> LogBlock:
    """Build a data block of rows that have the columns of `avro_schema`, meta fields included.

    With HFILE, the rows are sorted by record key, and record keys must not repeat. `extra` adds headers.

    Memory: the encoded rows, and some ten MiB.

    Raises:
        SchemaMismatchError: the rows do not fit the schema.
        InvalidConfigError: HFILE with null or repeated record keys.
    """
    rows = conform(rows, avro_to_arrow(avro_schema))
    headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: avro_schema, **(extra or {})}
    if is_partial:
        headers[HeaderKey.IS_PARTIAL] = "true"
    content: bytes | memoryview
    if data_format is DataFormat.PARQUET:
        content = _parquet_to_bytes(rows)
    elif data_format is DataFormat.AVRO:
        encoded = encode_rows(rows, avro_schema, framed=True)
        content = b"".join((_FRAME.pack(_VERSION, rows.num_rows), *map(bytes_of, encoded)))
    else:
        content = _hfile_to_bytes(rows, avro_schema)
    return LogBlock(block_type=_BLOCK_TYPES[data_format], headers=headers, content=content)


def read_data_block(block: LogBlock, *, path: str, columns: Collection[str] | None = None) -> pa.Table:
    """Read the rows of a data block with the types of its own SCHEMA header, in the block's order.

    The result has the columns of the block that are in `columns`, in schema order; None means all columns. `path` is
    the log file, for error messages.

    Memory: the result, and up to a few times 4 MiB.

    Raises:
        CorruptFileError: the content does not fit the headers.
        UnsupportedError: the block has an unknown version, or its schema has a type that no table has.
    """
    text, schema = _schema_of(block, path)
    wanted = schema if columns is None else pa.schema([field for field in schema if field.name in columns])
    if block.block_type is BlockType.PARQUET_DATA:
        return _read_parquet(block, wanted, path)
    if block.block_type is BlockType.HFILE_DATA:
        return _read_hfile(block, text, wanted, path)
    starts, ends = _record_bounds(memoryview(block.content), path, block.content_offset)
    return decode_rows(block.content, starts, ends, text, columns=wanted.names, path=path, offset=block.content_offset)


def data_records(block: LogBlock, *, path: str) -> Iterator[tuple[bytes, int]]:
    """Yield the bytes of each record of an Avro data block, and where they begin in the block's content.

    Raises: as `read_data_block`.
    """
    content = memoryview(block.content)
    starts, ends = _record_bounds(content, path, block.content_offset)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield bytes(content[start:end]), start


def records_block(records: Iterable[bytes], schema: str) -> LogBlock:
    """Return an Avro data block of encoded records, with no other header than their schema."""
    bodies = list(records)
    framed = b"".join(_LENGTH.pack(len(body)) + body for body in bodies)
    content = _FRAME.pack(_VERSION, len(bodies)) + framed
    return LogBlock(block_type=BlockType.AVRO_DATA, headers={HeaderKey.SCHEMA: schema}, content=content)


def _schema_of(block: LogBlock, path: str) -> tuple[str, pa.Schema]:
    text = block.headers.get(HeaderKey.SCHEMA)
    if text is None or not block.block_type.holds_data:
        raise CorruptFileError("expected a data block with a schema", path=path, offset=block.offset)
    parse_schema(text, path=f"{path} at byte {block.offset}, header SCHEMA")
    return text, avro_to_arrow(text)


def _record_bounds(view: memoryview, path: str, offset: int) -> tuple[Int64Array, Int64Array]:
    """Return where the records of an Avro data block begin and end."""
    if len(view) < _FRAME.size:
        message = f"expected a data block of at least {_FRAME.size} bytes, found {len(view)}"
        raise CorruptFileError(message, path=path, offset=offset)
    version, count = _FRAME.unpack_from(view, 0)
    if version not in _VERSIONS:
        raise UnsupportedError(
            f"{path} at byte {offset}: expected Avro data of version 0 to {_VERSIONS[-1]}, found version {version}; "
            f"compact the table with Hudi"
        )
    if not 0 <= count <= (len(view) - _FRAME.size) // _LENGTH.size:
        raise CorruptFileError(f"{count} records do not fit the block", path=path, offset=offset)
    # Each length follows the previous record, so this loop runs over single records. All other steps work on all rows.
    position, unpack = _FRAME.size, _LENGTH.unpack_from
    found: list[int] = []
    append = found.append
    try:
        for _ in range(count):
            (length,) = unpack(view, position)
            append(length)
            position += 4 + length
    except struct.error as error:
        end = offset + min(position, len(view))
        raise CorruptFileError("a record extends past the block", path=path, offset=end) from error
    if position != len(view):
        end = offset + min(position, len(view))
        raise CorruptFileError("the records do not end where the block does", path=path, offset=end)
    lengths = np.array(found, np.int64)
    ends = _FRAME.size + np.cumsum(lengths + _LENGTH.size)
    return ends - lengths, ends


def _parquet_to_bytes(rows: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        compression_level=1,
        use_dictionary=_REPEATED,
        write_statistics=False,
        store_schema=False,
        write_page_checksum=True,
    )
    return memoryview(sink.getvalue())


def _read_parquet(block: LogBlock, wanted: pa.Schema, path: str) -> pa.Table:
    try:
        with pq.ParquetFile(pa.BufferReader(block.content), page_checksum_verification=True) as file:
            if file.metadata.num_rows > _ROWS_PER_BYTE_MAX * len(block.content):
                raise ValueError(f"{file.metadata.num_rows} rows do not fit {len(block.content)} bytes")
            stored = set(file.schema_arrow.names)
            present = [name for name in wanted.names if name in stored]
            rows = file.read(present, use_threads=False)
        return conform(rows, wanted, stored=True)
    except (pa.ArrowException, OSError, ValueError, SchemaMismatchError) as error:
        raise CorruptFileError(
            f"the content is not Parquet data of the block's schema: {error}", path=path, offset=block.content_offset
        ) from error


def _hfile_to_bytes(rows: pa.Table, avro_schema: str) -> bytes:
    """Encode rows as an HFile. Unlike in the metadata table, the values hold the record key: other readers need it."""
    rows = rows.sort_by(_RECORD_KEY)
    keys = rows.column(_RECORD_KEY).combine_chunks()
    if len(keys) and (keys.null_count or pc.any(pc.equal(keys[1:], keys[:-1])).as_py()):
        raise InvalidConfigError("expected one record key in each row of an HFile block, found null or repeated keys")
    values = pa.chunked_array(encode_rows(rows, avro_schema), pa.large_binary())
    return hfile_to_bytes(keys, values.combine_chunks(), schema_json=avro_schema)


def _read_hfile(block: LogBlock, text: str, wanted: pa.Schema, path: str) -> pa.Table:
    keys, values = HFileReader(block.content, path=path).entries()
    offsets = offsets_of(values)
    chosen = {*wanted.names, *_KEY_FIELDS}
    rows = decode_rows(values.buffers()[2] or b"", offsets[:-1], offsets[1:], text, columns=chosen, path=path)
    for name in _KEY_FIELDS:
        place = rows.schema.get_field_index(name)
        if place >= 0 and pc.all(pc.fill_null(pc.equal(rows.column(place), ""), False)).as_py():
            try:
                rows = rows.set_column(place, rows.schema.field(place), keys.cast(pa.string()))
            except pa.ArrowException as error:
                message = f"the keys are not UTF-8 text: {error}"
                raise CorruptFileError(message, path=path, offset=block.content_offset) from error
            break
    return rows.select(wanted.names)
