"""How texts of files become values, and what happens to rows that do not fit the types of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.errors import SchemaMismatchError

BadLine = Callable[[int, str, str], None]
"""Gets the rows of a file that cannot be used: the number of the row from 1, the reason, and the text of the row."""


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


def good_rows(
    count: int,
    fit: Callable[[int, int], pa.Table],
    bad: BadLine | None,
    line_of: Callable[[int], tuple[int, str]],
) -> Iterator[pa.RecordBatch]:
    """Yield those of the rows `[0, count)` that fit, in order.

    `fit` returns the rows `[start, end)`, or raises SchemaMismatchError; then the halves are tried. `bad` gets each row
    that does not fit, with its number and text, which `line_of` returns; None: the error is raised.
    """
    parts: list[pa.Table] = []
    left = [(0, count)]
    while left:
        start, end = left.pop()
        try:
            parts.append(fit(start, end))
        except SchemaMismatchError as error:
            if bad is None:
                raise
            middle = (start + end) // 2
            if end - start > 1:
                left += [(middle, end), (start, middle)]
            else:
                number, text = line_of(start)
                bad(number, str(error), text)
    if parts:
        yield from pa.concat_tables(parts).combine_chunks().to_batches()
