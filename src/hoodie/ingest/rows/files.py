"""Read one file of rows (Parquet, CSV, JSON lines, Avro) as Arrow batches.

The caller opens the bytes: a local file, standard input, or a file of a store. Errors name file, row and column.
"""

from __future__ import annotations

import codecs
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from posixpath import splitext
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, HoodieError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.file import DECODE_ERRORS
from hoodie.format.avro.rows import decode_rows
from hoodie.format.avro.safe_schema import bare_schema
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.ingest.rows.csv_rows import CsvRows
from hoodie.ingest.rows.json_rows import JsonRows
from hoodie.ingest.rows.rules import BadLine, InputOptions

_AVRO_ERRORS: Final = (CorruptFileError, OSError, zlib.error, *DECODE_ERRORS)
JSON_NAMES: Final = frozenset({".json", ".jsonl", ".ndjson"})
_COMPRESSIONS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_MAGIC: Final = (
    (b"PAR1", ".parquet"),
    (b"Obj\x01", ".avro"),
    (b"\x1f\x8b", ".gz"),
    (b"BZh", ".bz2"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
    (b"\x04\x22\x4d\x18", ".lz4"),
)
"""First bytes of files, and the ending that their names must have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """A file of rows. `name`: for messages. `kind`: the ending of its format, such as `.csv`. `ending`: of its name.

    `open` opens the bytes as they are stored, and may be called several times. `size_bytes`: 0 if it is not known.
    """

    name: str
    kind: str
    ending: str
    open: Callable[[], pa.NativeFile]
    size_bytes: int = 0

    def unpacked(self) -> pa.NativeFile:
        """Open the bytes of the content, which are compressed if the name ends so."""
        codec = _COMPRESSIONS.get(self.ending)
        return self.open() if codec is None else pa.CompressedInputStream(self.open(), codec)


def endings(name: str) -> tuple[str, str]:
    """Return the ending of a name without the ending of a compression, and the ending of the whole name.

    >>> endings("in/a.csv.gz"), endings("a.json"), endings(".json")
    (('.csv', '.gz'), ('.json', '.json'), ('', ''))
    """
    last = _ending(name)
    return (_ending(name.removesuffix(last)) if last in _COMPRESSIONS else last), last


def _ending(name: str) -> str:
    ending = splitext(name)[1]
    return "" if ending == "." else ending


def read_rows(file: RowFile, options: InputOptions, bad: BadLine | None = None) -> Rows:
    """Open the rows of a file of a known kind. Memory: a block of the file.

    `bad` gets the rows of CSV and JSON lines that cannot be used, instead of an error.

    Raises: InvalidConfigError, SchemaMismatchError, without the name of the file (see `named`).
    """
    _check_beginning(file)
    if file.kind == ".parquet":
        return _parquet_rows(file.open())
    if file.kind == ".avro":
        return _avro_rows(file.open())
    if file.kind == ".csv":
        return CsvRows(file.unpacked, options, bad)
    return JsonRows(io.BufferedReader(file.unpacked()), options, bad)


@dataclass(frozen=True, slots=True)
class _StoredRows:
    """The rows of a file that declares its columns; `errors`: of the library that reads them."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    errors: tuple[type[Exception], ...]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        done = 0
        try:
            for batch in self.batches:
                yield batch
                done += batch.num_rows
        except self.errors as error:
            raise InvalidConfigError(f"the rows after row {done} cannot be read ({error})") from error


Rows = _StoredRows | CsvRows | JsonRows
"""The rows of a file, which can be read once."""


def _parquet_rows(file: pa.NativeFile) -> _StoredRows:
    found = pq.ParquetFile(file)
    return _StoredRows(found.schema_arrow, found.iter_batches(), (pa.ArrowException, OSError))


def _avro_rows(file: pa.NativeFile) -> _StoredRows:
    """Return the rows of an Avro file: fastavro unpacks the blocks and finds the rows, which are decoded by column."""
    try:
        blocks: Any = fastavro.block_reader(file)
        text = json.dumps(json.loads(blocks.metadata["avro.schema"]))
        bare = bare_schema(text, path="the file's schema")
        schema = avro_to_arrow(text, path="the file's schema")
        written = fastavro.parse_schema(bare)
        # A reader without fields skips the values of a row: only its end is of interest.
        nothing = fastavro.parse_schema({**bare, "fields": []})
    except (UnsupportedError, *_AVRO_ERRORS) as error:
        raise InvalidConfigError(f"expected an Avro file of records ({error})") from error

    def batches() -> Iterator[pa.RecordBatch]:
        for block in blocks:
            content = block.bytes_
            ends = [0]
            for _ in range(block.num_records):
                fastavro.schemaless_reader(content, written, nothing)
                ends.append(content.tell())
            bounds = np.array(ends, np.int64)
            rows = decode_rows(content.getvalue(), bounds[:-1], bounds[1:], text, path="a block")
            yield from rows.to_batches()

    return _StoredRows(schema, batches(), _AVRO_ERRORS)


@contextmanager
def named(name: str, kind: str) -> Iterator[None]:
    """Raise errors of the body with the name of the file; `kind` is what was expected, such as `a csv file`."""
    try:
        yield
    except (InvalidConfigError, SchemaMismatchError) as error:
        raise type(error)(f"{name}: {error}") from error
    except HoodieError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        raise InvalidConfigError(f"{name}: expected {kind}, but it cannot be read ({error})") from error


def _check_beginning(file: RowFile) -> None:
    """Refuse files whose first bytes are of another format than the ending of their name."""
    with file.open() as stored:
        start = stored.read(4)
    expected = file.ending if file.ending in _COMPRESSIONS else file.kind
    for magic, ending in _MAGIC:
        if start.startswith(magic) and ending != expected:
            raise InvalidConfigError(f"expected {expected}, found the beginning of a {ending} file; rename it")
    if expected in _COMPRESSIONS:
        with file.unpacked() as content:
            start = content.read(4)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidConfigError("expected UTF-8, found UTF-16; convert the file, with iconv -f utf-16 -t utf-8")
