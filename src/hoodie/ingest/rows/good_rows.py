"""Find the rows that fit the types of their columns where a whole batch does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from hoodie.errors import SchemaMismatchError

BadLine = Callable[[int, str, str], None]
"""Gets the rows of a file that cannot be used: the number of the row from 1, the reason, and the text of the row."""


def good_rows(
    count: int, fit: Callable[[int, int], pa.Table], bad: Callable[[int, str], None]
) -> Iterator[pa.RecordBatch]:
    """Yield those of the rows `[0, count)` that fit, in order.

    `fit` returns the rows `[start, end)`, or raises SchemaMismatchError; then the halves are tried. `bad` gets the
    place of each row that does not fit, and the error.
    """
    parts = [*_fitting(0, count, fit, bad)]
    if len(parts) == 1:
        yield from parts[0].to_batches()
    elif parts:
        yield from pa.concat_tables(parts).combine_chunks().to_batches()


def _fitting(
    start: int, end: int, fit: Callable[[int, int], pa.Table], bad: Callable[[int, str], None]
) -> Iterator[pa.Table]:
    try:
        found = fit(start, end)
    except SchemaMismatchError as error:
        if end - start <= 1:
            bad(start, str(error))
            return
    else:
        yield found
        return
    middle = (start + end) // 2
    yield from _fitting(start, middle, fit, bad)
    yield from _fitting(middle, end, fit, bad)
