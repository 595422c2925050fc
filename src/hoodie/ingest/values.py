"""Decode raw values, such as the messages of a queue: JSON, text and Avro in blocks of Arrow arrays.

A block is parsed at once by a parser in C++. If the parser refuses the block, the block is divided until each bad value
stands alone; a bad value becomes a row with a reason, never a null. Both engines run this code: this process over an
Arrow table, Spark in its workers. So they decode alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.ingest.bad_rows import POSITION, REASON, VALUE, divided
from hoodie.ingest.json_on_spark import parsed, reads_alike
from hoodie.ingest.json_types import JsonParser, dotted
from hoodie.ingest.source import Decoded
from hoodie.table.sessions import is_spark, spark_room

TEXT_COLUMN: Final = "value"
"""The column of rows in the format `text`."""
_BLOCK_BYTES: Final = 8 * 1024 * 1024
_PARTS: Final = 16
"""Into so many parts a refused block is divided: more would parse good values less often, and single bad ones more."""
_FEW: Final = 1024
_ROW: Final = re.compile(r" in row (\d+)$")
_TEXT: Final = "_hoodie_text"
_BAD: Final = pa.schema([(VALUE, pa.binary()), (POSITION, pa.string()), (_TEXT, pa.string())])
"""Columns of messages that are decoded again for their reasons."""
_NULL: Final = "the message has no value (null)"
_NO_OBJECT: Final = "expected a JSON object, found null"


@dataclass(frozen=True, slots=True)
class Parsed:
    """Values of one block as rows.

    `rows`: one row each, null where `reason` has a text. `is_kept`: false for values that are no rows of the source.
    """

    rows: pa.StructArray
    reason: pa.Array
    is_kept: pa.Array


class Form(Protocol):
    """How values are encoded, such as a `JsonParser`. Objects are sent to Spark's workers, so they can be pickled."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        ...

    def parse(self, values: pa.Array) -> pa.StructArray | Parsed:
        """Return a row for each binary value; `Parsed` from a form that judges its rows.

        A null row makes its value bad. The row of a null value may be any row, because `DecodedWith` judges the value.

        Raises: ValueError, CorruptFileError if one of them is bad and the parser stops there.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextForm:
    """UTF-8 text in each value: rows with the one column `value`."""

    schema: pa.Schema = field(default=pa.schema([(TEXT_COLUMN, pa.string())]), init=False)

    def parse(self, values: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays([values.cast(pa.string())], fields=list(self.schema))


@dataclass(frozen=True, slots=True)
class DecodedWith:
    """The work of one step over messages: a table with `VALUE` (binary), `POSITION` and others becomes rows.

    `skips_null`: whether a null value is left out; otherwise it is a bad row. The rows have the columns of the form,
    the other columns of the table, and `REASON`, `POSITION` and `VALUE` (text, for bad rows only).
    """

    form: Form
    skips_null: bool = False

    def __call__(self, messages: pa.Table) -> pa.Table:
        """Return the rows of the messages. Memory: the result, and a few times a block of 8 MB (or one value)."""
        pieces = [self._rows_of(block) for block in _blocks(messages)]
        schema = self.schema_for(messages.schema)
        return pa.concat_tables(pieces).cast(schema) if pieces else schema.empty_table()

    def schema_for(self, messages: pa.Schema) -> pa.Schema:
        """Return the schema of the rows of messages with this schema."""
        others = [field for field in messages if field.name not in (VALUE, POSITION)]
        marks = [pa.field(name, pa.string()) for name in (REASON, POSITION, VALUE)]
        return pa.schema([*self.form.schema, *others, *marks])

    def _rows_of(self, block: pa.Table) -> pa.Table:
        values = block[VALUE].combine_chunks()
        parts = list(self._parsed(values))
        rows = pa.chunked_array([part.rows for part in parts])
        reason = pa.chunked_array([part.reason for part in parts]).combine_chunks()
        columns = dict(zip(self.form.schema.names, rows.flatten(), strict=True))
        columns |= {name: block[name] for name in block.column_names if name not in (VALUE, POSITION)}
        columns |= {REASON: reason, POSITION: block[POSITION], VALUE: _texts_of_bad(values, reason)}
        kept = pa.chunked_array([part.is_kept for part in parts])
        table = pa.table(columns)
        return table if pc.all(kept).as_py() else table.filter(kept)

    def _parsed(self, values: pa.Array) -> Iterator[Parsed]:
        """Yield the rows of the values in their order; divides values that the form refuses until one is left."""
        left = [values]
        while left:
            part = left.pop()
            try:
                found = self.form.parse(part)
            except (ValueError, CorruptFileError) as error:
                if len(part) > 1:
                    left += reversed(_divided(part, str(error)))
                    continue
                rows = pa.nulls(1, pa.struct(list(self.form.schema)))
                found = Parsed(rows, pa.array([reason_of(error)]), pa.array([True]))
            yield found if isinstance(found, Parsed) else self._judged(found, part)

    def _judged(self, rows: pa.StructArray, values: pa.Array) -> Parsed:
        """Return the rows of values, with reasons where a value or its row is null."""
        is_null = pc.is_null(values)
        no_row = pc.if_else(pc.is_null(rows), _NO_OBJECT, pa.scalar(None, pa.string()))
        is_kept = pc.invert(is_null) if self.skips_null else pa.repeat(True, len(rows))
        return Parsed(rows, pc.if_else(is_null, _NULL, no_row), is_kept)


def decoded(messages: Any, work: DecodedWith, schema: pa.Schema, order: tuple[str, ...]) -> Decoded:
    """Return the rows of messages, good and bad.

    `messages`: an Arrow table or Spark DataFrame of this schema, with the columns `VALUE` (binary) and `POSITION`.
    """
    if not is_spark(messages):
        return divided(work(messages), order)
    form = work.form
    if isinstance(form, JsonParser) and form.is_plain and reads_alike(form.schema, messages.sparkSession.version):
        rows = parsed(messages, form.schema, skips_null=work.skips_null)
        return divided(rows, order, lambda bad: _explained(bad, work))
    return divided(spark_room().mapped(messages, work, work.schema_for(schema)), order)


def _explained(bad: Any, work: DecodedWith) -> Any:
    """Return messages that Spark cannot read with the reasons that the parser of this process has."""
    texts = bad.selectExpr(VALUE, POSITION, f"try_validate_utf8(CAST({VALUE} AS string)) AS {_TEXT}")
    found = spark_room().mapped(texts, work, work.schema_for(_BAD))
    return found.selectExpr(
        f"coalesce({REASON}, 'Spark cannot read the value') AS {REASON}",
        POSITION,
        f"coalesce({VALUE}, {_TEXT}) AS {VALUE}",
    )


def _blocks(messages: pa.Table) -> Iterator[pa.Table]:
    """Yield slices of the table whose values have about `_BLOCK_BYTES`; a slice has at least one row."""
    for batch in messages.to_batches():
        if not batch.num_rows:
            continue
        sizes = pc.cumulative_sum(pc.fill_null(pc.binary_length(batch[VALUE]), 0).cast(pa.int64()))
        number = pc.divide(sizes, _BLOCK_BYTES).to_numpy()
        first = 0
        while first < batch.num_rows:
            stop = max(int(number.searchsorted(number[first], side="right")), first + 1)
            yield pa.Table.from_batches([batch.slice(first, stop - first)])
            first = stop


def _texts_of_bad(values: pa.Array, reason: pa.Array) -> pa.Array:
    """Return the values of bad rows as text, and null for good rows. Bytes that are no UTF-8 become `\\xff`."""
    is_bad = pc.is_valid(reason)
    bad = [None if raw is None else raw.decode(errors="backslashreplace") for raw in values.filter(is_bad).to_pylist()]
    return pc.replace_with_mask(pa.nulls(len(values), pa.string()), is_bad, pa.array(bad, pa.string()))


def _divided(values: pa.Array, error: str) -> list[pa.Array]:
    """Return refused values in parts; few values are cut around the row that the error names."""
    row = _ROW.search(error)
    if row is None or len(values) > _FEW or int(row[1]) >= len(values):
        size = -(-len(values) // _PARTS)
        return [values.slice(first, size) for first in range(0, len(values), size)]
    number = int(row[1])
    parts = [values.slice(0, number), values.slice(number, 1), values.slice(number + 1)]
    return [part for part in parts if len(part)]


def reason_of(error: Exception) -> str:
    """Return why one value is bad, as a short text without the row of the block.

    >>> reason_of(ValueError("JSON parse error: Column(/v/[]/a/b) changed from number to string in row 0"))
    'column a.b: expected a number, found a string'
    """
    text = str(error).removeprefix("JSON parse error: ")
    found = re.search(r"Column\(/v/\[\](.*?)\) changed from (\w+) to (\w+)", text)
    if found:
        path = dotted(found[1])
        return f"{f'column {path}' if path else 'value'}: expected {_an(found[2])}, found {_an(found[3])}"
    if "UTF8" in text:
        return "the value is not UTF-8 text"
    prefix = "the value does not parse: " if isinstance(error, pa.ArrowInvalid) else ""
    return prefix + _ROW.sub("", text.splitlines()[0]).rstrip(".")[:300]


def _an(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeio' else 'a'} {kind}"
