"""Skip Avro values: columns that are not read, and items of arrays and maps, to find where each item begins."""

from __future__ import annotations

import numpy as np

from hoodie.format.avro.rows.cursor import Cursor, Int64Array
from hoodie.format.avro.rows.layout import Kind, Layout


def skip_value(layout: Layout, cursor: Cursor) -> None:
    """Move the cursor to the end of one value of each row.

    Skipped bytes are checked only if the length of the value depends on them.

    Raises:
        CorruptFileError: a length, a count or a union's branch is impossible.
    """
    if layout.size_bytes is not None:
        cursor.skip(layout.size_bytes)
    elif layout.kind in (Kind.BYTES, Kind.DECIMAL_BYTES):
        cursor.skip_piece()
    elif layout.kind is Kind.RECORD:
        for child in layout.children:
            skip_value(child, cursor)
    elif layout.kind is Kind.UNION:
        _skip_union(layout, cursor)
    elif layout.kind in (Kind.ARRAY, Kind.MAP):
        item_places(layout.children[0], cursor)
    else:
        cursor.read_varints()


def _skip_union(layout: Layout, cursor: Cursor) -> None:
    tags = cursor.read_bytes()
    known = tags == 2 * layout.null_number if layout.null_number >= 0 else np.zeros(len(tags), np.bool_)
    for number, child in zip(layout.numbers, layout.children, strict=True):
        is_here = tags == 2 * number
        if is_here.all():
            skip_value(child, cursor)
            return
        if is_here.any():
            rows = np.flatnonzero(is_here)
            part = cursor.take(rows)
            skip_value(child, part)
            cursor.put(rows, part)
            known |= is_here
    if not known.all():
        cursor.fail("a union has no branch with this number", ~known)


def item_places(item: Layout, cursor: Cursor) -> tuple[Int64Array, Int64Array]:
    """Return the number of items in each row's list, and where each item begins, row by row.

    The cursor moves to the end of the lists. Items are skipped in rounds: round n skips the n-th item of all lists at
    once. Items of one size need no rounds.
    """
    counts = np.zeros(len(cursor), np.int64)
    left = np.zeros(len(cursor), np.int64)
    rounds: list[Int64Array] = []
    active = np.arange(len(cursor))
    while len(active):
        opening = active[left[active] == 0]
        if len(opening):
            left[opening] = _open_block(cursor, opening)
            counts[opening] += left[opening]
            active = active[left[active] > 0]
        if not len(active):
            break
        part = cursor.take(active)
        if item.size_bytes is None:
            rounds.append(part.position.copy())
            skip_value(item, part)
            left[active] -= 1
        else:
            rounds.append(_places_of_one_size(part, left[active], item.size_bytes))
            left[active] = 0
        cursor.put(active, part)
    # Rows ascend in the buffer, and items ascend in their row.
    places = np.sort(np.concatenate(rounds)) if rounds else np.zeros(0, np.int64)
    return counts, places


def _open_block(cursor: Cursor, rows: Int64Array) -> Int64Array:
    """Read the item count of each row's block; after a negative count, skip the size of the block in bytes."""
    part = cursor.take(rows)
    counts = part.read_varints()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        inner = part.take(sized)
        inner.read_varints()
        part.put(sized, inner)
        counts = np.abs(counts)
    # Every item has at least one byte. A greater count is damage, and would allocate unlimited memory.
    wrong = (counts < 0) | (counts > part.end - part.position)
    if wrong.any():
        part.fail("a list has more items than its record has bytes", wrong)
    cursor.put(rows, part)
    return counts


def _places_of_one_size(part: Cursor, counts: Int64Array, size_bytes: int) -> Int64Array:
    """Return where items of one size begin; the part moves to the end of the items."""
    start = part.skip(counts * size_bytes)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places: Int64Array = np.repeat(start, counts) + (np.arange(len(first)) - first) * size_bytes
    return places
