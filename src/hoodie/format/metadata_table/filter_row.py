"""Rows of the metadata partition `bloom_filters`: the bloom filter of one base file (docs/format/metadata.md §4.6)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.hashes.bloom import BloomFilter, BloomFilterType
from hoodie.format.metadata_table.metadata_record import (
    NON_PARTITIONED_KEY,
    NULL,
    PRESENT,
    RecordType,
    decode_record,
    hashed_file_name,
    hashed_name,
    row_head,
    string_to_bytes,
)
from hoodie.format.varint import zigzag_to_bytes

FILTER_FIELD: Final = "BloomFilterMetadata"
"""The field of a metadata record with the content of a row. On disk: do not change."""
_HEAD: Final = row_head(RecordType.BLOOM_FILTER) + NULL + PRESENT
"""The head, no list of files, and the union branch of the filter."""
_TAIL: Final = bytes(4)
"""Not deleted; no column statistics, record index entry or secondary index entry."""


@dataclass(frozen=True, slots=True)
class FilterRow:
    """The filter of a base file: the Base64 `text` of its footer, with the type code of the footer or of the writer."""

    type_code: str
    instant_time: str
    text: bytes

    def to_bytes(self) -> bytes:
        """Encode with the schema `metadata_schema()`."""
        size = zigzag_to_bytes(len(self.text))
        return b"".join(
            (_HEAD, string_to_bytes(self.type_code), string_to_bytes(self.instant_time), size, self.text, _TAIL)
        )

    @classmethod
    def parse(cls, value: bytes, *, schema_json: str, path: str) -> FilterRow | None:
        """Decode a value with the schema that its file contains; None if the filter was deleted.

        Raises: CorruptFileError if the value is not a row of `bloom_filters`.
        """
        found: Any = decode_record(value, schema_json=schema_json, path=path).get(FILTER_FIELD)
        try:
            return None if found["isDeleted"] else cls(found["type"], found["timestamp"], bytes(found["bloomFilter"]))
        except (TypeError, KeyError) as error:
            raise CorruptFileError(f"a metadata record contains no bloom filter: {error!r}", path=path) from error

    def filter(self, *, path: str) -> BloomFilter:
        """Return the filter. A JVM writer stores the type that its options name, whatever type the file has.

        Raises: CorruptFileError if the text is a filter of no known type.
        """
        *first, last = (self.type_code, *(kind for kind in BloomFilterType if kind.value != self.type_code.upper()))
        for kind in first:
            with suppress(CorruptFileError):
                return BloomFilter.parse(self.text, kind, path=path)
        return BloomFilter.parse(self.text, last, path=path)


def bloom_filter_key(partition_path: str, file_name: str) -> str:
    """Return the key of a base file in `bloom_filters`: 36 characters."""
    return hashed_name(partition_path or NON_PARTITIONED_KEY) + hashed_file_name(file_name)
