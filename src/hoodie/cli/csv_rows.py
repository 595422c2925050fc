"""Read CSV files: pyarrow finds the fields, and `fit_text` converts their texts to the types of the columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.csv as pa_csv

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.schema.fit import first_misfit, shortened
from hoodie.format.schema.fit_text import fit_texts, type_of_texts

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

    `types`: types of columns by name; types of other columns are inferred from the first block of the file. With
    `ignores_others` they are dropped. Memory: a block, which has at least one row.

    Raises: InvalidConfigError, SchemaMismatchError: the file is no CSV, or a text does not fit; rows count from 1
        without the header.
    """

    def __init__(
        self,
        open_file: Callable[[], pa.NativeFile],
        types: pa.Schema,
        *,
        null_texts: tuple[str, ...],
        ignores_others: bool,
    ) -> None:
        self._open_file = open_file
        self._null_texts = null_texts
        self._names: list[str] = []
        self._texts = self._read()
        self._first = next(self._texts, None)
        known = set(types.names)
        # A batch without columns would have no rows. The columns are listed where the known columns are missed.
        ignores_others = ignores_others and not known.isdisjoint(self._names)
        self.schema = pa.schema(
            [
                types.field(name) if name in known else pa.field(name, self._inferred(place))
                for place, name in enumerate(self._names)
                if name in known or not ignores_others
            ]
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, once."""
        done, batch = 0, self._first
        while batch is not None:
            columns = [_fitted(batch[child.name], child, done) for child in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
            done += batch.num_rows
            last, batch = batch, next(self._texts, None)
            if batch is None:
                self._check_end(last.columns[-1][-1].as_py(), done)

    def _inferred(self, place: int) -> pa.DataType:
        if self._first is None:
            return pa.null()
        return type_of_texts(_utf8(self._first.column(place), self._names[place], 0))

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
                ragged = _RAGGED.search(str(error))
                if ragged is not None:
                    row, expected, fields, text = ragged.groups()
                    # pyarrow counts the header.
                    where = f"row {int(row) - 1}: expected {expected} fields, as in the header, found {fields}"
                    raise InvalidConfigError(f"{where}: {shortened(text)}") from error
                if _TOO_LONG not in str(error) or block_bytes >= _BLOCK_BYTES_MAX:
                    raise
                block_bytes *= _GROWTH

    def _batches(self, block_bytes: int) -> Iterator[pa.RecordBatch]:
        # Several threads do not count rows.
        read = pa_csv.ReadOptions(block_size=block_bytes, use_threads=False)
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        with pa_csv.open_csv(self._open_file(), read_options=read, parse_options=parse) as header:
            self._names = _names(header)
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


def _fitted(column: pa.Array, child: pa.Field, done: int) -> pa.Array:
    return fit_texts(_utf8(column, child.name, done), child.type, child.name, lambda place: done + place + 1)


def _utf8(column: pa.Array, name: str, done: int) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid as error:
        place = first_misfit(column, lambda part: part.cast(pa.string()))
        raise SchemaMismatchError(
            f"column {name!r}, row {done + place + 1}: {shortened(column[place].as_py())} is not UTF-8; convert the "
            "file, for example with iconv -f latin1 -t utf-8"
        ) from error
