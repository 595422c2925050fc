"""Read CSV files: pyarrow finds the fields, and `fit_text` converts their texts to the types of the columns."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.schema.fit import RowOf, first_misfit, shortened
from hoodie.format.schema.fit_text import fit_texts, type_of_texts
from hoodie.ingest.rows.rules import BadLine, InputOptions, good_rows

_BLOCK_BYTES = 1 << 22
_BLOCK_BYTES_MAX = 1 << 30
_GROWTH = 8
_TAIL_BYTES = 100
_TOO_LONG = "straddling object"
"""Part of pyarrow's error if a row is longer than a block."""
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
"""pyarrow's error if a row has another number of fields than the header."""


class CsvRows:
    """The rows of a CSV file as batches, in order. An empty field is null; `""` is an empty text.

    Types of columns that `options.types` lacks are inferred from the first block of the file. `bad` gets rows with
    another number of fields than the header, and rows with a text that does not fit; else they are errors. Memory: a
    block, which has at least one row.

    Raises: InvalidConfigError, SchemaMismatchError: the file is no CSV, or a text does not fit; rows count from 1
        without the header.
    """

    def __init__(
        self, open_file: Callable[[], pa.NativeFile], options: InputOptions, bad: BadLine | None = None
    ) -> None:
        self._open_file = open_file
        self._bad = bad
        self._ragged: list[int] = []
        """Numbers of the rows that pyarrow left out, ascending."""
        self._null_texts = options.null_texts
        self._names: list[str] = []
        self._texts = self._read()
        self._first = next(self._texts, None)
        types, known = options.types, set(options.types.names)
        # A batch without columns would have no rows. The columns are listed where the known columns are missed.
        ignores_others = options.ignores_others and not known.isdisjoint(self._names)
        self.schema = pa.schema(
            [
                types.field(name) if name in known else pa.field(name, self._inferred(place))
                for place, name in enumerate(self._names)
                if name in known or not ignores_others
            ]
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        done, batch = 0, self._first
        while batch is not None:
            yield from self._fit(batch, done)
            done += batch.num_rows
            last, batch = batch, next(self._texts, None)
            if batch is None:
                self._check_end(last.columns[-1][-1].as_py(), self._number(done - 1))

    def use_types(self, types: pa.Schema) -> None:
        """Let the columns have these types, before the first row is read; `types` has all columns of the file."""
        self.schema = pa.schema([types.field(name) for name in self.schema.names])

    def _fit(self, batch: pa.RecordBatch, done: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the types of the columns; `done` rows are before them."""

        def fit(start: int, end: int) -> pa.Table:
            part = batch.slice(start, end - start)

            def row_of(place: int) -> int:
                return self._number(done + start + place)

            columns = [
                fit_texts(_utf8(part[child.name], child.name, row_of), child.type, child.name, row_of)
                for child in self.schema
            ]
            return pa.Table.from_arrays(columns, schema=self.schema)

        def line_of(place: int) -> tuple[int, str]:
            return self._number(done + place), _line(batch, place)

        yield from good_rows(batch.num_rows, fit, self._bad, line_of)

    def _number(self, place: int) -> int:
        """Return the number of a row from 1, with the rows that pyarrow left out."""
        number = place + 1
        for ragged in self._ragged:
            if ragged > number:
                break
            number += 1
        return number

    def _leave_out(self, row: Any) -> str:
        """Report a row with another number of fields than the header, once; pyarrow goes on without it."""
        number, reason = _ragged(row.number, row.expected_columns, row.actual_columns)
        if self._bad is not None and (not self._ragged or number > self._ragged[-1]):
            self._ragged.append(number)
            self._bad(number, reason, row.text)
        return "skip"

    def _inferred(self, place: int) -> pa.DataType:
        if self._first is None:
            return pa.null()
        return type_of_texts(_utf8(self._first.column(place), self._names[place], self._number))

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of binary columns; if a row is longer than a block, go on with longer blocks."""
        done, block_bytes = 0, _BLOCK_BYTES
        while True:
            seen = 0
            try:
                for batch in self._batches(block_bytes):
                    seen += batch.num_rows
                    if seen > done:
                        yield batch.slice(batch.num_rows - (seen - done))
                        done = seen
                return
            except pa.ArrowInvalid as error:
                if ragged := _RAGGED.search(str(error)):
                    _, reason = _ragged(*map(int, ragged.groups()[:3]))
                    raise InvalidConfigError(f"{reason}: {shortened(ragged[4])}") from error
                if _TOO_LONG not in str(error) or block_bytes >= _BLOCK_BYTES_MAX:
                    raise
                block_bytes *= _GROWTH

    def _batches(self, block_bytes: int) -> Iterator[pa.RecordBatch]:
        # Several threads do not count rows.
        read = pa_csv.ReadOptions(block_size=block_bytes, use_threads=False)
        is_strict = self._bad is None
        parse = pa_csv.ParseOptions(
            newlines_in_values=True, invalid_row_handler=None if is_strict else lambda _row: "skip"
        )
        with pa_csv.open_csv(self._open_file(), read_options=read, parse_options=parse) as header:
            self._names = _names(header)
        if not is_strict:
            parse.invalid_row_handler = self._leave_out
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(self._names, pa.binary()),
            null_values=["", *self._null_texts],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        yield from pa_csv.open_csv(self._open_file(), read_options=read, parse_options=parse, convert_options=convert)

    def _check_end(self, last: bytes | None, row: int) -> None:
        """Refuse a quote that is not closed: all rows after it would be the text of one field."""
        if last is None or not {*b"\r\n"} & {*last}:
            return
        end = b""
        with self._open_file() as file:
            while chunk := file.read(_BLOCK_BYTES):
                end = (end + chunk)[-_TAIL_BYTES:]
        if not end.rstrip().endswith(b'"'):
            raise InvalidConfigError(f"row {row}: a quote is not closed, so that the row has the rest of the file")


def _ragged(number: int, expected: int, found: int) -> tuple[int, str]:
    """Return the number of a row without the header, which pyarrow counts, and why the row cannot be used."""
    return number - 1, f"row {number - 1}: expected {expected} fields, as in the header, found {found}"


def _names(reader: pa_csv.CSVStreamingReader) -> list[str]:
    try:
        names: list[str] = reader.schema.names
    except UnicodeDecodeError as error:
        raise InvalidConfigError(f"the header is not UTF-8: {shortened(error.object)}; convert the file") from error
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SchemaMismatchError(f"the header has {', '.join(map(repr, twice))} more than once; rename the columns")
    if any("\0" in name for name in names):
        raise InvalidConfigError("the header has a zero byte: expected text in UTF-8")
    return names


def _line(batch: pa.RecordBatch, place: int) -> str:
    """Return the fields of a row as a line of CSV."""
    fields = [column[place].as_py() for column in batch.columns]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([field and field.decode(errors="replace") for field in fields])
    return line.getvalue()


def _utf8(column: pa.Array, name: str, row_of: RowOf) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid as error:
        place = first_misfit(column, lambda part: part.cast(pa.string()))
        raise SchemaMismatchError(
            f"column {name!r}, row {row_of(place)}: {shortened(column[place].as_py())} is not UTF-8; convert the "
            "file, for example with iconv -f latin1 -t utf-8"
        ) from error
