"""Read Avro files: fastavro unpacks the blocks and finds the rows, which are decoded one column at a time."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from fastavro.schema import SchemaParseException

from hoodie.errors import CorruptFileError, InvalidConfigError, UnsupportedError
from hoodie.format.avro.rows import decode_rows
from hoodie.format.avro.safe_schema import bare_schema
from hoodie.format.avro.schema import avro_to_arrow

# Errors that fastavro raises on bytes that are no Avro file.
_DECODE_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    SchemaParseException,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


class AvroRows:
    """The rows of an Avro file of records as batches, in order. Memory: a block of the file.

    Raises: InvalidConfigError: the file is damaged, or has a type that no table has; rows count from 1.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        try:
            self._blocks: Any = fastavro.block_reader(file)
            self._text = json.dumps(json.loads(self._blocks.metadata["avro.schema"]))
            bare = bare_schema(self._text, path="the file's schema")
            self.schema = avro_to_arrow(self._text, path="the file's schema")
            self._written = fastavro.parse_schema(bare)
            # A reader without fields skips the values of a row: only its end is of interest.
            self._nothing = fastavro.parse_schema({**bare, "fields": []})
        except (CorruptFileError, UnsupportedError, *_DECODE_ERRORS) as error:
            raise InvalidConfigError(f"expected an Avro file of records ({error})") from error

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, once."""
        done = 0
        try:
            for block in self._blocks:
                content = block.bytes_
                ends = [0]
                for _ in range(block.num_records):
                    fastavro.schemaless_reader(content, self._written, self._nothing)
                    ends.append(content.tell())
                bounds = np.array(ends, np.int64)
                rows = decode_rows(content.getvalue(), bounds[:-1], bounds[1:], self._text, path="a block")
                yield from rows.to_batches()
                done += block.num_records
        except (CorruptFileError, *_DECODE_ERRORS) as error:
            raise InvalidConfigError(f"the rows after row {done} cannot be read ({error})") from error
