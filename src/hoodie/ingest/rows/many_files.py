"""Read many files of one format as one stream of Arrow batches; rows that cannot be used are gathered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from hoodie.engine.ahead import reader_of
from hoodie.errors import InvalidConfigError, SchemaMismatchError, SourceError
from hoodie.format.schema.plain_types import plain_array, plain_schema
from hoodie.ingest.rows.csv_rows import CsvRows
from hoodie.ingest.rows.files import RowFile, Rows, named, read_rows
from hoodie.ingest.rows.json_rows import JsonRows
from hoodie.ingest.rows.rules import InputOptions
from hoodie.ingest.source import Decoded

_KEPT_BYTES_MAX: Final = 8 << 20
"""Beginnings of files that are kept, so that small files are read once: all columns are known after the last file."""
_KEPT_FILES_MAX: Final = 100
"""Open files."""
_BEGINNING_BYTES: Final = 4 << 20
_BAD_SCHEMA: Final = pa.schema([("reason", pa.string()), ("position", pa.string()), ("value", pa.string())])


@dataclass(frozen=True, slots=True)
class GatheredBadRows:
    """Bad rows that are gathered while the good rows are read; all are known once that read is over.

    Memory: the texts of the bad rows.
    """

    found: list[tuple[str, str, str]] = field(default_factory=list)

    def count(self) -> int:
        return len(self.found)

    def rows(self, limit: int | None = None) -> pa.Table:
        rows = [dict(zip(_BAD_SCHEMA.names, row, strict=True)) for row in self.found[:limit]]
        return pa.Table.from_pylist(rows, schema=_BAD_SCHEMA)


def read_files(files: Sequence[RowFile], options: InputOptions) -> Decoded:
    """Return the rows of files of one format as a stream, in the order of the files.

    The stream has the columns of all files; a column that a file lacks is null in its rows. JSON lines have all columns
    of `options.types`, because JSON may omit nulls. Texts of CSV and JSON become the type of their column there; other
    types are inferred from the beginnings of the files, or, with `ignores_others`, those columns are not read.
    Different numeric types of a column become the wider one, if each value stays exact. Lines that cannot be used are
    bad rows, with the position `file:row`. Memory: a block of one file and 8 MiB of beginnings, and the bad rows.

    Raises: SourceError if a file is damaged, or two files have conflicting types; names the file, and both files. The
        stream raises it for errors after the beginning of a file.
    """
    reading = _Reading(files, options)
    with _as_source_error():
        schema = reading.begin()
    return Decoded(rows=reader_of(schema, reading.batches(schema)), bad=reading.bad)


def columns_of(files: Sequence[RowFile], options: InputOptions) -> pa.Schema:
    """Return the columns of all files, from their beginnings. Raises: as `read_files`."""
    with _as_source_error():
        return _Reading(files, options, keeps=False).begin()


@dataclass(slots=True)
class _Reading:
    files: Sequence[RowFile]
    options: InputOptions
    keeps: bool = True
    bad: GatheredBadRows = field(default_factory=GatheredBadRows)
    kept: dict[int, Rows] = field(default_factory=dict)

    def begin(self) -> pa.Schema:
        """Read the beginning of each file, keep some of them, and return the columns of all files."""
        found: dict[str, tuple[pa.Field, str]] = {}
        """The columns by name, each with a file that has its type."""
        kept_bytes = 0
        for number, file in enumerate(self.files):
            kept_bytes += min(file.size_bytes, _BEGINNING_BYTES)
            is_small = kept_bytes <= _KEPT_BYTES_MAX and number < _KEPT_FILES_MAX
            is_kept = self.keeps and (is_small or len(self.files) == 1)
            rows = self._open(file, self.options.types, reports=is_kept)
            if is_kept:
                self.kept[number] = rows
            for child in plain_schema(rows.schema):
                known = found.get(child.name)
                merged = child if known is None else _merged(known, child, file.name)
                is_from = file.name if known is None or merged.type != known[0].type else known[1]
                found[child.name] = (merged, is_from)
        own = [name for name in self.options.types.names if name in found]
        return pa.schema([pa.field(name, found[name][0].type) for name in dict.fromkeys((*own, *found))])

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _as_source_error():
            for number, file in enumerate(self.files):
                rows = self.kept.pop(number, None)
                if rows is None:
                    rows = self._open(file, schema, reports=True)
                elif isinstance(rows, CsvRows | JsonRows):
                    rows.use_types(schema)
                with _named(file):
                    for batch in rows:
                        yield _aligned(batch, schema)

    def _open(self, file: RowFile, types: pa.Schema, *, reports: bool) -> Rows:
        def report(row: int, reason: str, value: str) -> None:
            if reports:
                self.bad.found.append((reason, f"{file.name}:{row}", value))

        with _named(file):
            return read_rows(file, replace(self.options, types=types), report)


def _merged(known: tuple[pa.Field, str], child: pa.Field, name: str) -> pa.Field:
    before, first = known
    try:
        return pa.unify_schemas([pa.schema([before]), pa.schema([child])], promote_options="permissive").field(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SourceError(
            f"column {child.name!r} has the type {before.type} in {first}, but {child.type} in {name}: expected one "
            "type in all files of a batch; give the flow a schema for CSV and JSON, or read the files by two flows, "
            "with a pattern each"
        ) from error


def _aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with all columns of the schema. Raises: SchemaMismatchError if a value does not fit exactly."""
    if batch.schema == schema:
        return batch
    columns = []
    for child in schema:
        place = batch.schema.get_field_index(child.name)
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, child.type))
            continue
        column = plain_array(batch.column(place))
        try:
            columns.append(column if column.type == child.type else column.cast(child.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(
                f"column {child.name!r} has the type {column.type}, and another file of the batch {child.type}: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _named(file: RowFile) -> AbstractContextManager[None]:
    return named(file.name, f"a {file.kind[1:]} file")


@contextmanager
def _as_source_error() -> Iterator[None]:
    try:
        yield
    except (InvalidConfigError, SchemaMismatchError) as error:
        raise SourceError(str(error)) from error
