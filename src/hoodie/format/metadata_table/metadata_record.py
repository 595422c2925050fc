"""Values of the metadata table: HoodieMetadataRecord of types 1 (list of partitions) and 2 (files of a partition).

docs/format/metadata.md §4.1, §4.3. The key of a record is the key of its HFile entry; the value contains an empty key.
"""

from __future__ import annotations

import hashlib
import io
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib import resources
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.avro.safe_schema import bare_schema
from hoodie.format.hashes.xxhash import hash_id
from hoodie.format.varint import zigzag_to_bytes

ALL_PARTITIONS_KEY = "__all_partitions__"
NON_PARTITIONED_KEY = "."
META_FIELDS = 5
NULL = b"\0"
PRESENT = b"\x02"


class RecordType(IntEnum):
    """Type of a metadata record. On disk: do not change."""

    PARTITION_LIST = 1
    FILE_LIST = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


@dataclass(frozen=True, slots=True)
class FileListRecord:
    """A row of the metadata partition `files`.

    `files` maps file names (or, in the list of partitions, partition paths) to sizes in bytes; None means deleted.
    """

    record_type: RecordType
    files: Mapping[str, int | None]

    def to_bytes(self, *, file_name: str | None = None) -> bytes:
        """Encode with the schema `metadata_schema()`; `file_name` is the base file that a compaction writes."""
        parts = [_meta_fields(file_name), string_to_bytes(""), zigzag_to_bytes(self.record_type), PRESENT]
        if self.files:
            parts.append(zigzag_to_bytes(len(self.files)))
            for entry, size_bytes in self.files.items():
                parts.append(string_to_bytes(entry))
                parts.append(b"\0\1" if size_bytes is None else zigzag_to_bytes(size_bytes) + b"\0")
        # End of the map, then no bloom filter, column statistics, record index entry or secondary index entry.
        parts.append(NULL * 5)
        return b"".join(parts)

    @classmethod
    def parse(cls, value: bytes, *, schema_json: str, path: str) -> FileListRecord:
        """Decode a value that was written with `schema_json`, which each file contains.

        Raises: CorruptFileError if the value does not decode, or is not a row of the metadata partition `files`.
        """
        record = decode_record(value, schema_json=schema_json, path=path)
        record_type, entries = record.get("type"), record.get("filesystemMetadata")
        if record_type not in (RecordType.PARTITION_LIST, RecordType.FILE_LIST):
            raise CorruptFileError(f"expected a list of partitions or files, found type {record_type}", path=path)
        files = {name: None if info["isDeleted"] else info["size"] for name, info in (entries or {}).items()}
        return cls(RecordType(record_type), files)


def with_file_name(values: pa.BinaryArray, old_name: str, file_name: str) -> pa.BinaryArray | None:
    """Return rows of a base file as rows of another one: only the name of the file in their meta fields changes.

    The rows are not decoded. None unless all of them have the form of `FileListRecord.to_bytes`, with `old_name` or
    without a file name.
    """
    longest = pc.max(pc.binary_length(values)).as_py() or 0
    for old in (_meta_fields(old_name), _meta_fields(None)):
        # An empty key, the type, and a map that is there.
        heads = [old + string_to_bytes("") + zigzag_to_bytes(kind) + PRESENT for kind in (1, 2)]
        starts = [pc.equal(pc.binary_slice(values, 0, len(head)), pa.scalar(head, values.type)) for head in heads]
        if pc.all(pc.or_(*starts)).as_py() is not False:
            new = pa.scalar(_meta_fields(file_name), values.type)
            # Without its end, Arrow's function computes a negative size.
            rest = pc.binary_slice(values, len(old), max(longest, len(old)))
            return pc.binary_join_element_wise(new, rest, pa.scalar(b"", values.type))
    return None


def _meta_fields(file_name: str | None) -> bytes:
    """Encode the meta fields: rows have at most the name of the file."""
    return NULL * (META_FIELDS - 1) + (NULL if file_name is None else PRESENT + string_to_bytes(file_name))


def row_head(record_type: RecordType) -> bytes:
    """Encode the beginning of a row without a file name: null meta fields, the empty key, and the type."""
    return _meta_fields(None) + string_to_bytes("") + zigzag_to_bytes(record_type)


def string_to_bytes(text: str) -> bytes:
    """Encode an Avro string."""
    encoded = text.encode()
    return zigzag_to_bytes(len(encoded)) + encoded


def decode_record(value: bytes, *, schema_json: str, path: str) -> dict[str, Any]:
    """Decode one metadata record of any type into plain values.

    Raises:
        CorruptFileError: the value does not fit the schema, or the schema is not an Avro schema.
        UnsupportedError: the schema exceeds the limits of `safe_schema`.
    """
    stream = io.BytesIO(value)
    bare_schema(schema_json, path=path)
    try:
        record = fastavro.schemaless_reader(stream, _parsed(schema_json), None)
    except (EOFError, IndexError, KeyError, ValueError, OverflowError, TypeError) as error:
        raise CorruptFileError(f"a metadata record cannot be decoded: {error!r}", path=path) from error
    if not isinstance(record, dict) or stream.tell() != len(value):
        raise CorruptFileError("a metadata record is longer than its schema allows", path=path)
    return record


def zero_bytes_to_add(schema_json: str, content: str, *, path: str) -> int:
    """Return how many zero bytes make a row of an older schema one of `metadata_schema()`: the fields that it lacks.

    `content` is the field that holds the row's content, such as `ColumnStatsMetadata`. Each release added fields at the
    end of a record, whose default is null or false: one zero byte. The fields behind `content` are null in the row.

    Raises: CorruptFileError if the schema has other fields than the first ones of `metadata_schema()`.
    """
    missing = 0 if schema_json in ("", metadata_schema()) else _fields_to_add(schema_json, content)
    if missing is None:
        raise CorruptFileError(f"the schema of its rows is not one of the known schemas of {content}", path=path)
    return missing


@lru_cache(maxsize=16)
def _fields_to_add(schema_json: str, content: str) -> int | None:
    missing = 0
    for known, found in zip(_field_names(metadata_schema(), content), _field_names(schema_json, content), strict=True):
        if not found or known[: len(found)] != found:
            return None
        missing += len(known) - len(found)
    return missing


def _field_names(schema_json: str, content: str) -> tuple[list[str], list[str]]:
    """Return the names of the fields of a record, and of its field `content`, which is nullable."""
    try:
        fields = json.loads(schema_json)["fields"]
        inner = next(field["type"][1]["fields"] for field in fields if field["name"] == content)
        return [field["name"] for field in fields], [field["name"] for field in inner]
    except (ValueError, KeyError, IndexError, TypeError, StopIteration):
        return [], []


@lru_cache(maxsize=16)
def _parsed(schema_json: str) -> Any:
    try:
        return fastavro.parse_schema(bare_schema(schema_json, path="<schema of a metadata file>"))
    except fastavro.schema.SchemaParseException as error:
        raise ValueError(str(error)) from error


@lru_cache(maxsize=1)
def metadata_schema() -> str:
    """Return the Avro schema of HFiles and log blocks of the metadata table, with exactly the bytes of Hudi 1.2.0."""
    return resources.files("hoodie.format").joinpath("schemas", "metadata_record.avsc").read_text("utf-8")


@lru_cache(maxsize=1)
def commit_schema() -> str:
    """Return `metadata_schema` without the five meta fields: `schema` in the metadata table's commit metadata."""
    schema = json.loads(metadata_schema())
    schema["fields"] = schema["fields"][META_FIELDS:]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=4096)
def hashed_name(name: str) -> str:
    """Return the part of a key for a column's name or a partition path: 12 characters."""
    return b64encode(hash_id(name).to_bytes(8, "big")).decode()


def hashed_file_name(file_name: str) -> str:
    """Return the last part of the keys of all rows of a file: 24 characters."""
    return b64encode(hashlib.md5(file_name.encode(), usedforsecurity=False).digest()).decode()
