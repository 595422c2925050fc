"""Avro object container files with exactly one record, the form of nearly every instant file.

The codec is null. The header holds only the schema, as the JVM writes it.
On-disk format: docs/format/table.md §2.3.
"""

from __future__ import annotations

import contextlib
import io
import json
import secrets
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.avro.safe_schema import bare_schema
from hoodie.format.varint import zigzag_at, zigzag_to_bytes

MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
DECODE_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    SchemaParseException,
    TypeError,
    ValueError,
    struct.error,
)
"""Errors that fastavro raises on bytes that do not fit the schema."""


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """A record schema: the exact text for the file header, and fastavro's parsed form of it."""

    text: str
    parsed: Any = field(repr=False, compare=False)

    @classmethod
    @lru_cache(maxsize=128)
    def _of_checked(cls, text: str) -> RecordSchema:
        return cls(text, fastavro.parse_schema(bare_schema(text, path="<memory>")))

    @classmethod
    def of(cls, text: str, *, path: str = "<memory>") -> RecordSchema:
        """Check and parse the schema of a file; the same text is parsed once per process.

        Raises:
            CorruptFileError: the text is not the JSON of a record's Avro schema.
            UnsupportedError: the schema exceeds the limits of `safe_schema`.
        """
        bare_schema(text, path=path)
        try:
            found = cls._of_checked(text)
        except SchemaParseException as error:
            raise CorruptFileError(f"not an Avro schema: {error}", path=path) from error
        if not isinstance(found.parsed, dict) or found.parsed.get("type") not in ("record", "error"):
            raise CorruptFileError(f"the Avro schema of a record expected, found {text[:100]!r}", path=path)
        return found

    @classmethod
    @lru_cache(maxsize=128)
    def load(cls, name: str) -> RecordSchema:
        """Load the schema of a record of the format, by its name, from the package's data."""
        file = resources.files("hoodie.format.schemas").joinpath(f"{name}.avsc")
        text = file.read_text(encoding="utf-8").strip()
        return cls(text, fastavro.parse_schema(json.loads(text)))

    @property
    def name(self) -> str:
        """Name of the record, without its namespace."""
        return str(self.parsed["name"]).rpartition(".")[2]


def is_avro_file(data: bytes) -> bool:
    """Return whether the bytes begin with the magic of an Avro object container."""
    return data.startswith(MAGIC)


def parse_record(data: bytes, *, path: str = "<memory>") -> tuple[RecordSchema, dict[str, Any]]:
    """Return the writer's schema and the only record of a container; the fields have the names of that schema.

    Raises: as `only_record`; CorruptFileError for a record that does not fit the schema.
    """
    schema, block, offset = only_record(data, path=path)
    return schema, decode_record(schema, block, path=path, offset=offset)


def only_record(data: bytes, *, path: str = "<memory>") -> tuple[RecordSchema, bytes, int]:
    """Return the writer's schema, the bytes of the only record of a container, and where they begin in the file.

    Raises:
        CorruptFileError: the bytes are truncated, are not a container, or hold more or fewer records than one.
        UnsupportedError: the container is compressed, and Hudi never writes such containers to its timeline; or its
            schema exceeds the limits of `safe_schema`.
    """
    if not is_avro_file(data):
        raise CorruptFileError(f"an Avro container ({MAGIC!r}) expected, found {data[:4]!r}", path=path, offset=0)
    cursor = _Cursor(data, len(MAGIC), path)
    header = cursor.read_map()
    codec = header.get("avro.codec", b"null")
    if codec != b"null":
        raise UnsupportedError(f"{path}: an uncompressed Avro container expected, found codec {codec!r}")
    sync = cursor.read_bytes(_SYNC_SIZE)
    count_offset = cursor.offset
    count = cursor.read_long()
    if count != 1:
        raise CorruptFileError(f"a block of 1 record expected, found {count}", path=path, offset=count_offset)
    block_offset = cursor.offset
    block = cursor.read_bytes(cursor.read_long())
    trailer_offset = cursor.offset
    if cursor.read_bytes(_SYNC_SIZE) != sync:
        message = "the sync marker of the header expected after the block, found other bytes"
        raise CorruptFileError(message, path=path, offset=trailer_offset)
    if cursor.offset != len(data):
        found = f"end of file expected, found {len(data) - cursor.offset} more bytes"
        raise CorruptFileError(found, path=path, offset=cursor.offset)
    try:
        text = header.get("avro.schema", b"").decode()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"a schema in UTF-8 expected: {error}", path=path) from error
    return RecordSchema.of(text, path=path), block, block_offset


def record_to_bytes(schema: RecordSchema, record: Mapping[str, Any], *, sync_marker: bytes | None = None) -> bytes:
    """Encode a container with one record; `sync_marker` has 16 bytes and is random unless given.

    Raises: ValueError if the record does not fit the schema, or the marker does not have 16 bytes.
    """
    sync = secrets.token_bytes(_SYNC_SIZE) if sync_marker is None else sync_marker
    if len(sync) != _SYNC_SIZE:
        raise ValueError(f"a sync marker of {_SYNC_SIZE} bytes expected, found {len(sync)}")
    block = record_body(schema, record)
    text = schema.text.encode()
    key = b"avro.schema"
    header = [zigzag_to_bytes(1), zigzag_to_bytes(len(key)), key, zigzag_to_bytes(len(text)), text, zigzag_to_bytes(0)]
    return b"".join([MAGIC, *header, sync, zigzag_to_bytes(1), zigzag_to_bytes(len(block)), block, sync])


def record_body(schema: RecordSchema, record: Mapping[str, Any]) -> bytes:
    """Encode a record without a container. Raises: ValueError if it does not fit the schema."""
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, schema.parsed, record)
    except (TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ValueError(f"the record does not fit {schema.name}: {error!r}") from error
    return body.getvalue()


def decode_record(
    schema: RecordSchema, data: bytes, *, path: str, offset: int = 0, without: str | None = None
) -> dict[str, Any]:
    """Decode one record, which must have all the bytes; `offset` is where they begin in the file.

    `without` is a field that the result may lack: no value is made of its bytes.

    Raises: CorruptFileError if the bytes do not fit the schema.
    """
    stream = io.BytesIO(data)
    try:
        wanted = None if without is None else _without(schema.text, without)
        record = fastavro.schemaless_reader(stream, schema.parsed, wanted)
    except DECODE_ERRORS as error:
        message = f"the record does not fit the file's schema: {error!r}"
        raise CorruptFileError(message, path=path, offset=offset) from error
    if not isinstance(record, dict) or stream.tell() != len(data):
        found = f"one record of {len(data)} bytes expected, found a value of {stream.tell()} bytes"
        raise CorruptFileError(found, path=path, offset=offset)
    return record


def first_items(
    schema: RecordSchema, data: bytes, name: str, *, path: str, offset: int = 0
) -> Iterator[dict[str, Any]] | None:
    """Yield the items of a record's first field, a map of arrays of records, one by one; later bytes are not read.

    None if the first field has another name or another type.

    Raises: CorruptFileError if the bytes do not fit the schema.
    """
    kind, is_optional = None, False
    for field_of in schema.parsed["fields"][:1]:
        kind = field_of["type"] if field_of["name"] == name else None
    if isinstance(kind, list):
        is_optional = len(kind) == 2 and kind[0] == "null"
        kind = kind[1] if is_optional else None
    for outer, inner in (("map", "values"), ("array", "items")):
        if not isinstance(kind, dict) or kind.get("type") != outer:
            return None
        kind = kind[inner]
        if isinstance(kind, list) and len(kind) == 1:
            kind = kind[0]
    if not isinstance(kind, dict) or kind.get("type") != "record":
        return None
    cursor = _Cursor(data, 0, path)
    if is_optional and cursor.read_long() == 0:
        return iter(())
    return _items(cursor, kind, offset)


def _items(cursor: _Cursor, item: Any, offset: int) -> Iterator[dict[str, Any]]:
    stream = io.BytesIO(cursor.data)
    for _ in cursor.read_blocks():
        cursor.read_bytes(cursor.read_long())
        for _ in cursor.read_blocks():
            stream.seek(cursor.offset)
            try:
                found = fastavro.schemaless_reader(stream, item, None)
            except DECODE_ERRORS as error:
                message = f"the record does not fit the file's schema: {error!r}"
                raise CorruptFileError(message, path=cursor.path, offset=offset + cursor.offset) from error
            cursor.offset = stream.tell()
            assert isinstance(found, dict)
            yield found


@lru_cache(maxsize=32)
def _without(text: str, name: str) -> Any:
    """Return the parsed schema without a field of the record; None if that field defines types of other fields."""
    schema = bare_schema(text, path="<memory>")
    with contextlib.suppress(SchemaParseException):
        return fastavro.parse_schema({**schema, "fields": [one for one in schema["fields"] if one["name"] != name]})
    return None


@dataclass(slots=True)
class _Cursor:
    """A bounded read position in the frame of an Avro container."""

    data: bytes
    offset: int
    path: str

    def read_bytes(self, length: int) -> bytes:
        end = self.offset + length
        if length < 0 or end > len(self.data):
            left = len(self.data) - self.offset
            raise CorruptFileError(f"{length} bytes expected, found {left}", path=self.path, offset=self.offset)
        chunk = self.data[self.offset : end]
        self.offset = end
        return chunk

    def read_long(self) -> int:
        """Read a zigzag varint of at most ten bytes."""
        try:
            value, self.offset = zigzag_at(self.data, self.offset)
        except ValueError as error:
            message = f"a number of at most ten bytes expected: {error}"
            raise CorruptFileError(message, path=self.path, offset=self.offset) from error
        return value

    def read_blocks(self) -> Iterator[None]:
        """Yield once for each entry of a map or array that begins here; the caller reads the entry."""
        while (count := self.read_long()) != 0:
            if count < 0:  # this form also stores the size in bytes, which only a reader that skips the block needs
                count = -count
                self.read_long()
            for _ in range(count):
                yield

    def read_map(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for _ in self.read_blocks():
            key = self.read_bytes(self.read_long())
            found[key.decode("utf-8", "replace")] = self.read_bytes(self.read_long())
        return found
