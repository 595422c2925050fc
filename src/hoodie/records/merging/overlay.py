"""Mix the fields of two versions of a record: the winner gets the fields that it does not bring from the loser.

A version brings a field if its value of the field counts.
docs/format/table.md §4.5 (blocks with some of the columns) and §6.5 (partial update modes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.table.merge_config import PartialUpdateMode

Mask = npt.NDArray[np.bool_]
HAS = "_hoodie_has:"
"""Prefix of the boolean columns that mark the rows that bring a field; all rows bring a field without such a column."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The rule that decides whether a row brings a field. Without a mode, the HAS columns decide.

    With IGNORE_DEFAULTS a row does not bring a null: null is the default of every nullable column. With
    FILL_UNAVAILABLE a row does not bring a text or byte string that equals `unavailable_value`.
    """

    mode: PartialUpdateMode | None = None
    unavailable_value: str | None = None

    def brings(self, rows: pa.Table, name: str) -> Mask | None:
        """Mark the rows that bring the field; return None if all rows do."""
        column = rows[name]
        if self.mode is PartialUpdateMode.IGNORE_DEFAULTS:
            return np.asarray(column.is_valid()) if column.null_count else None
        if self.mode is PartialUpdateMode.FILL_UNAVAILABLE:
            return self._available(column)
        return np.asarray(rows[HAS + name]) if rows.schema.get_field_index(HAS + name) >= 0 else None

    def _available(self, column: pa.ChunkedArray) -> Mask | None:
        if self.unavailable_value is None or not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            return None
        marker = pa.scalar(self.unavailable_value).cast(column.type)
        return np.asarray(pc.fill_null(pc.not_equal(column, marker), True))

    def over(self, older: pa.Table, newer: pa.Table, wins: Mask) -> pa.Table:
        """Mix aligned rows: each field gets the winner's value, or the loser's if only the loser brings the field.

        `wins` is true where the newer row wins. The result has the columns of `newer`.
        """
        count = newer.num_rows
        rows = np.arange(count)
        columns: dict[str, pa.ChunkedArray] = {}
        for name in newer.column_names:
            if name.startswith(HAS):
                continue
            newer_has, older_has = self.brings(newer, name), self.brings(older, name)
            picks = wins.copy()
            if newer_has is not None:
                picks &= newer_has if older_has is None else (newer_has | ~older_has)
            if older_has is not None:
                picks |= ~wins & ~older_has & (True if newer_has is None else newer_has)
            columns[name] = _pick(older[name], newer[name], picks, rows)
        for name in newer.column_names:
            if name.startswith(HAS):
                older_has = self.brings(older, name.removeprefix(HAS))
                has = np.ones(count, np.bool_) if older_has is None else older_has | np.asarray(newer[name])
                columns[name] = pa.chunked_array([pa.array(has)])
        return pa.table([columns[name] for name in newer.column_names], schema=newer.schema)


def _pick(older: pa.ChunkedArray, newer: pa.ChunkedArray, picks: Mask, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the newer value where `picks` is true, else the older value."""
    if picks.all():
        return newer
    both = pa.chunked_array([*older.chunks, *newer.chunks], newer.type)
    return both.take(pa.array(np.where(picks, rows + len(rows), rows)))
