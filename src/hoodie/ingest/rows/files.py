"""Read one file of rows (Parquet, CSV, JSON lines, Avro) as Arrow batches.

The caller opens the bytes: a local file, standard input, or a file of a store. Errors name file, row and column.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from posixpath import splitext
from typing import BinaryIO, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError
from hoodie.ingest.rows.avro_rows import AvroRows
from hoodie.ingest.rows.csv_rows import CsvRows
from hoodie.ingest.rows.good_rows import BadLine
from hoodie.ingest.rows.json_rows import JsonRows

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
class InputOptions:
    """Rules for the conversion of text to values.

    `types` has types by column name; the types of other columns are inferred. `required` are columns without null. With
    `ignores_others`, the other columns of CSV and JSON files are not read. With `omits_missing`, the rows of JSON files
    lack the columns that the first lines lack. `null_texts` are the strings that are null in CSV. An empty CSV field is
    null; an empty field in quotes is an empty string.
    """

    types: pa.Schema = field(default_factory=lambda: pa.schema([]))
    required: frozenset[str] = frozenset()
    ignores_others: bool = False
    omits_missing: bool = False
    null_texts: tuple[str, ...] = ()


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


class Rows(Protocol):
    """The rows of a file, which can be read once."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


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
        return _ParquetRows(file.open())
    if file.kind == ".avro":
        return AvroRows(file.open())
    if file.kind == ".csv":
        return CsvRows(
            file.unpacked,
            options.types,
            null_texts=options.null_texts,
            ignores_others=options.ignores_others,
            bad=bad,
        )
    lines = io.BufferedReader(file.unpacked())
    return json_rows(lines, options, bad)


def json_rows(lines: BinaryIO, options: InputOptions, bad: BadLine | None = None) -> JsonRows:
    """Return the rows of JSON lines. Raises: as `read_rows`."""
    return JsonRows(
        lines, options.types, ignores_others=options.ignores_others, omits_missing=options.omits_missing, bad=bad
    )


class _ParquetRows:
    """The rows of a Parquet file."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = pq.ParquetFile(file)
        self.schema = self._file.schema_arrow

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        done = 0
        try:
            for batch in self._file.iter_batches():
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise InvalidConfigError(f"the rows after row {done} cannot be read ({error})") from error


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
