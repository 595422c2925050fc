"""Values of the record index: locations of records (docs/format/metadata.md §4.7).

Many keys have the same value, so a column of values is stored as a few locations and, for each key, the number of its
location.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.metadata_table.metadata_record import (
    NULL,
    PRESENT,
    RecordType,
    decode_record,
    row_head,
    string_to_bytes,
)
from hoodie.format.varint import zigzag_to_bytes

LOCATION_FIELD: Final = "recordIndexMetadata"
"""The field of a metadata record with the content of a row. On disk: do not change."""
_UUID_ENCODING = 0
_TEXT_ENCODING = 1
_UUID_FILE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(\d+))?")
_HEAD = row_head(RecordType.RECORD_INDEX) + 3 * NULL + PRESENT
"""The head, three null unions, and the union branch of the location."""


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Partition path and file group of a record.

    `instant_ms` (epoch milliseconds) is the time of the record's insert; informational only.
    """

    partition_path: str
    file_id: str
    instant_ms: int

    def to_bytes(self) -> bytes:
        """Encode the value; a file id with a UUID is stored in the short form, as the JVM does."""
        match = _UUID_FILE_ID.fullmatch(self.file_id)
        if match is None:
            high = low = index = -1
            text, encoding = self.file_id, _TEXT_ENCODING
        else:
            # Java stores the two halves as signed 64-bit integers.
            number = UUID(match[1]).int
            high, low = _signed(number >> 64), _signed(number & ((1 << 64) - 1))
            index = -1 if match[2] is None else int(match[2])
            text, encoding = "", _UUID_ENCODING
        fields = [string_to_bytes(self.partition_path), *map(zigzag_to_bytes, (high, low, index))]
        fields += [string_to_bytes(text), zigzag_to_bytes(self.instant_ms)]
        return _HEAD + b"".join(PRESENT + field for field in fields) + zigzag_to_bytes(encoding) + b"\0\0"

    @classmethod
    def parse(cls, value: bytes, *, schema_json: str, path: str) -> RecordLocation:
        """Decode a value with the schema that its file contains.

        Raises: CorruptFileError if the bytes are not a location.
        """
        info: Any = decode_record(value, schema_json=schema_json, path=path).get(LOCATION_FIELD)
        try:
            return cls(info["partitionName"], _file_id(info), int(info["instantTime"]))
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptFileError(f"a metadata record contains no record location: {error!r}", path=path) from error


@dataclass(frozen=True, slots=True)
class LocationColumn:
    """The locations of a column of keys: `codes[i]` is the position of key i's location in `locations`, -1 for none."""

    locations: tuple[RecordLocation, ...]
    codes: npt.NDArray[np.int64]

    @classmethod
    def parse(cls, values: pa.BinaryArray, *, schema_json: str, path: str) -> LocationColumn:
        """Decode values; each distinct value is decoded once. Null values have no location."""
        encoded = values.dictionary_encode()
        parsed = tuple(
            RecordLocation.parse(value, schema_json=schema_json, path=path) for value in encoded.dictionary.to_pylist()
        )
        return cls(parsed, np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64))


def location_values(locations: Sequence[RecordLocation], codes: npt.NDArray[np.int64]) -> pa.BinaryArray:
    """Encode a column of values: the value of key i is the location at position `codes[i]`."""
    encoded = pa.array([location.to_bytes() for location in locations], pa.binary())
    return encoded.take(pa.array(codes))


def _signed(half: int) -> int:
    return half - (1 << 64) if half >= 1 << 63 else half


def _file_id(info: Mapping[str, Any]) -> str:
    if info["fileIdEncoding"] == _TEXT_ENCODING:
        return str(info["fileId"])
    high, low, index = info["fileIdHighBits"], info["fileIdLowBits"], info["fileIndex"]
    mask = (1 << 64) - 1
    unique = UUID(int=(high & mask) << 64 | (low & mask))
    return str(unique) if index == -1 else f"{unique}-{index}"
