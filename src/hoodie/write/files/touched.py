"""The pieces of a base file that a write merges: only row groups with a changed key are read, the others are copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.stored_groups import LIKELY_KEYS, StoredGroups
from hoodie.records.change import KIND, RECORD_KEY, Kind
from hoodie.write.files.context import WriteContext

_FULL: Final = 0.5
"""Inserts are added to the last row group if it has less than this share of a full one, by the bytes of their rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Stored rows to merge; `rows` is None if the row group `group` is copied.

    The pieces of one row group follow each other. `group` is None if their rows are encoded with those of other groups.
    `places`: for each row the place of its key among the changes, null for other rows; None if it is not known yet.
    """

    rows: pa.Table | None
    group: int | None = None
    places: pa.Array | None = None

    @property
    def nbytes(self) -> int:
        """Arrow bytes."""
        return 0 if self.rows is None else int(self.rows.nbytes)


@dataclass(frozen=True, slots=True)
class TouchedGroups:
    """The row groups of a base file beside the changes of its file group; `read` reads the rows of a row group.

    Memory: one row group; of a large one, its keys and one piece.
    """

    context: WriteContext
    stored: StoredGroups
    changes: pa.Table
    read: Callable[[int], Iterator[pa.Table]]

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of the file, in the order of its rows. Raises: CorruptFileError."""
        keys = self.changes[RECORD_KEY].combine_chunks()
        met = np.zeros(len(keys), np.bool_)
        counts = [self.stored.rows(number) for number in range(self.stored.metadata.num_row_groups)]
        total = sum(counts)
        last_bytes = counts[-1] * self.changes.nbytes / max(self.changes.num_rows, 1)
        last_is_small = last_bytes < _FULL * self.context.parquet.row_group_bytes
        for group, count in enumerate(counts):
            looks_up = self.context.merge_stored  # else all changes are inserts
            pieces = self._with_changes(group, keys, met, count / total) if looks_up else None
            if group == len(counts) - 1 and last_is_small and self._has_inserts(met):
                pieces = (
                    map(Piece, self.read(group)) if pieces is None else (replace(one, group=None) for one in pieces)
                )
            yield from [Piece(None, group)] if pieces is None else pieces

    def _with_changes(
        self, group: int, keys: pa.Array, met: npt.NDArray[np.bool_], share: float
    ) -> Iterator[Piece] | None:
        """Return the pieces of a row group with a changed key, and note the keys in `met`; None for other groups."""
        candidates = self.stored.may_hold(group, keys)
        if not candidates:
            return None
        is_large = self.stored.is_large(group)
        rows = [*self.read(group)] if candidates * share >= LIKELY_KEYS and not is_large else None
        if rows is None:
            stored = self.stored.column(group, RECORD_KEY)
        else:
            stored = pa.chunked_array([chunk for one in rows for chunk in one[RECORD_KEY].chunks], pa.string())
        places = pc.index_in(stored.combine_chunks(), value_set=keys)
        if places.null_count == len(places):
            return None
        met[np.asarray(places.drop_null())] = True
        return _placed(self.read(group) if rows is None else rows, None if is_large else group, places)

    def _has_inserts(self, met: npt.NDArray[np.bool_]) -> bool:
        if self.context.is_partial:
            return False
        kinds = np.asarray(self.changes[KIND].combine_chunks())
        return bool((~met & (kinds == Kind.ROW)).any())


def _placed(rows: Iterable[pa.Table], group: int | None, places: pa.Array) -> Iterator[Piece]:
    start = 0
    for one in rows:
        yield Piece(one, group, places.slice(start, one.num_rows))
        start += one.num_rows
