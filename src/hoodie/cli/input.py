"""Open the input files of writes (Parquet, CSV, JSON lines), and standard input, as one stream of Arrow batches.

What Python objects are refused for, values of files are refused for. Errors name file, row and column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.engine.ahead import reader_of
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.ingest.rows.files import JSON_NAMES, RowFile, Rows, endings, named, read_rows
from hoodie.ingest.rows.json_rows import JsonRows
from hoodie.ingest.rows.rules import InputOptions

STDIN: Final = "-"
"""Name of standard input, which has JSON lines."""


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
    return endings(path)[0] != ".parquet"


def _named(path: str) -> AbstractContextManager[None]:
    return named(path, "JSON lines" if path == STDIN else f"a {endings(path)[0][1:]} file")


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "expected a file, found a folder"
    if path.exists():
        return f"expected a file, found a pipe or device; JSON lines are read from standard input: - < {path}"
    return "no such file"


def _open_file(name: str, options: InputOptions) -> Rows:
    with _named(name):
        if name == STDIN:
            return JsonRows(sys.stdin.buffer, options)
        path, (kind, ending) = Path(name), endings(name)
        if not path.is_file():
            raise InvalidConfigError(_no_file(path))
        if kind not in {".parquet", ".csv", *JSON_NAMES}:
            raise InvalidConfigError(f"expected .parquet, .csv, or one of {', '.join(sorted(JSON_NAMES))}")
        return read_rows(RowFile(name=name, kind=kind, ending=ending, open=lambda: pa.OSFile(str(path))), options)


def _check_required(batch: pa.RecordBatch, names: frozenset[str], done: int) -> None:
    for child, column in zip(batch.schema, batch.columns, strict=True):
        if column.null_count and (not child.nullable or child.name in names):
            row = done + int(np.argmax(np.asarray(column.is_null()))) + 1
            raise SchemaMismatchError(f"column {child.name!r}, row {row}: the table allows no null here: add the value")


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{child.name} {child.type}" for child in schema)
