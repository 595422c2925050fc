"""Find the rows that fit the types of their columns where a whole batch does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from hoodie.errors import SchemaMismatchError

BadLine = Callable[[int, str, str], None]
"""Gets the rows of a file that cannot be used: the number of the row from 1, the reason, and the text of the row."""


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
