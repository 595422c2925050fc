"""Read the input files of writes (Parquet, CSV, JSON lines) as one stream of Arrow batches.

What Python objects are refused for, values of files are refused for. Errors name file, row and column.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.cli.csv_rows import CsvRows
from hoodie.cli.json_rows import JsonRows
from hoodie.engine.ahead import reader_of
from hoodie.errors import HoodieError, InvalidConfigError, SchemaMismatchError

STDIN: Final = "-"
"""Name of standard input, which has JSON lines."""
_COMPRESSIONS: Final = frozenset({".gz", ".bz2", ".zst", ".lz4"})
_JSON_NAMES: Final = frozenset({".json", ".jsonl", ".ndjson"})
_MAGIC: Final = (
    (b"PAR1", ".parquet"),
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
    `ignores_others`, the other columns of CSV and JSON files are not read. `null_texts` are the strings that are null
    in CSV. An empty CSV field is null; an empty field in quotes is an empty string.
    """

    types: pa.Schema = field(default_factory=lambda: pa.schema([]))
    required: frozenset[str] = frozenset()
    ignores_others: bool = False
    null_texts: tuple[str, ...] = ()


class _Rows(Protocol):
    """The rows of a file, which can be read once."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


def open_files(paths: Sequence[str], options: InputOptions) -> pa.RecordBatchReader:
    """Open the files as one stream, in order. Memory: a block of one file.

    Raises: InvalidConfigError if a file is missing, has another format or is damaged; SchemaMismatchError if the files'
    columns differ or a value does not fit its column. The stream raises them for errors after the beginning of a file.
    """
    if paths.count(STDIN) > 1:
        raise InvalidConfigError("standard input (-) can be read only once; name it once")
    files = [(path, _open_file(path, options)) for path in paths]
    first, schema = files[0][0], files[0][1].schema
    for path, rows in files:
        if rows.schema != schema:
            raise SchemaMismatchError(
                f"{path}: expected the columns of {first} ({_described(schema)}), found "
                f"{_described(rows.schema)}; write the files one by one"
            )

    def batches() -> Iterator[pa.RecordBatch]:
        for path, rows in files:
            done = 0
            with _named(path):
                for batch in rows:
                    _check_required(batch, options.required, done)
                    yield batch
                    done += batch.num_rows

    return reader_of(schema, batches())


def infers_types(path: str) -> bool:
    """Return whether the types of columns that `InputOptions.types` lacks are inferred: the file declares none."""
    return _kind(path) != ".parquet"


def _kind(name: str) -> str:
    path = Path(name)
    return path.with_suffix("").suffix if path.suffix in _COMPRESSIONS else path.suffix


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "expected a file, found a folder"
    if path.exists():
        return f"expected a file, found a pipe or device; JSON lines are read from standard input: - < {path}"
    return "no such file"


def _open_file(name: str, options: InputOptions) -> _Rows:
    with _named(name):
        if name == STDIN:
            return JsonRows(sys.stdin.buffer, options.types, ignores_others=options.ignores_others)
        path, kind = Path(name), _kind(name)
        if not path.is_file():
            raise InvalidConfigError(_no_file(path))
        if kind not in {".parquet", ".csv", *_JSON_NAMES}:
            raise InvalidConfigError(f"expected .parquet, .csv, or one of {', '.join(sorted(_JSON_NAMES))}")
        _check_beginning(path)
        if kind == ".parquet":
            return _ParquetRows(path)
        if kind == ".csv":
            return CsvRows(
                lambda: pa.input_stream(str(path)),
                options.types,
                null_texts=options.null_texts,
                ignores_others=options.ignores_others,
            )
        lines = io.BufferedReader(pa.input_stream(str(path)))
        return JsonRows(lines, options.types, ignores_others=options.ignores_others)


class _ParquetRows:
    """The rows of a Parquet file."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
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
def _named(name: str) -> Iterator[None]:
    """Raise errors of the body with the name of the file."""
    try:
        yield
    except HoodieError as error:
        raise type(error)(f"{name}: {error}") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        kind = "JSON lines" if name == STDIN else f"a {_kind(name)[1:]} file"
        raise InvalidConfigError(f"{name}: expected {kind}, but it cannot be read ({error})") from error


def _check_beginning(path: Path) -> None:
    """Refuse files whose first bytes are of another format than the ending of their name."""
    with path.open("rb") as file:
        start = file.read(4)
    for magic, ending in _MAGIC:
        if start.startswith(magic) and path.suffix != ending:
            raise InvalidConfigError(f"expected {path.suffix}, found the beginning of a {ending} file; rename it")
    if path.suffix in _COMPRESSIONS:
        with pa.input_stream(str(path)) as unpacked:
            start = unpacked.read(4)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidConfigError("expected UTF-8, found UTF-16; convert the file, with iconv -f utf-16 -t utf-8")


def _check_required(batch: pa.RecordBatch, names: frozenset[str], done: int) -> None:
    for child, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count and (not child.nullable or child.name in names):
            row = done + int(np.argmax(np.asarray(column.is_null()))) + 1
            raise SchemaMismatchError(f"column {child.name!r}, row {row}: the table allows no null here: add the value")


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{child.name} {child.type}" for child in schema)
