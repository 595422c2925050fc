"""What a merge of a file slice returns: rows of the base file, rows that come from logs, superseded rows.

The rows of a slice are the rows of its base file without the superseded rows, and the rows that come from its logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Flag, auto
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.files.slice_read import SliceRead
from hoodie.records.change import RECORD_KEY
from hoodie.records.merging.fold import FoldRule

Rows = npt.NDArray[np.int64]
POSITION: Final = "#position"
"""Column of base rows: the position of the row in the base file, counted from 0."""
POSITION_FIELD: Final = pa.field(POSITION, pa.int64())


class Part(Flag):
    """A part of a result."""

    BASE = auto()
    """The rows of the base file that stay; only together with `LOGGED`."""
    LOGGED = auto()
    """The rows that replace rows of the base file, and the rows whose keys only logs contain."""
    SUPERSEDED = auto()
    """The positions in the base file of the rows that logs replace or delete: tables with the column POSITION alone.

    Not together with `BASE`.
    """


class MergeResult:
    """The wanted parts of a merge, which calls it with each piece of the base file, and with the rows that logs add."""

    def __init__(self, read: SliceRead, rule: FoldRule, wanted: Part) -> None:
        self._schema = read.output_schema
        self._has_logged_rows = Part.LOGGED in wanted
        self.has_base_rows = Part.BASE in wanted
        self.is_numbered = Part.SUPERSEDED in wanted
        self.decides_rows_alone = wanted is Part.SUPERSEDED
        """Whether a base row that is not read changes nothing in the result but itself."""
        names = read.merged_columns
        if not (self.has_base_rows or rule.mixes):
            # They decide which version wins.
            needed = {RECORD_KEY, *rule.merger.ordering_columns}
            names = tuple(name for name in names if name in needed)
        schema = read.schema_of(names)
        self.base_schema = schema.append(POSITION_FIELD) if self.is_numbered else schema
        """The columns of base rows that the merge reads, POSITION as the last if `is_numbered`."""

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield the result for base rows whose keys no log contains."""
        if self.has_base_rows:
            yield self._selected(stored)

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the result for base rows: `gone` are replaced or deleted, `rows` replace the replaced rows."""
        if self.has_base_rows:
            kept = self._selected(stored)
            if len(gone):
                stays = np.ones(stored.num_rows, np.bool_)
                stays[gone] = False
                kept = pa.concat_tables([kept.filter(pa.array(stays)), self._selected(rows)])
            yield kept
            return
        if self.is_numbered and len(gone):
            yield stored.select([POSITION]).take(pa.array(gone))
        if self._has_logged_rows and rows.num_rows:
            yield self._selected(rows)

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield the result for rows whose keys only logs contain: the versions with these numbers."""
        if self._has_logged_rows:
            yield self._selected(versions).take(pa.array(numbers))

    def _selected(self, rows: pa.Table) -> pa.Table:
        return pa.Table.from_arrays([rows[name] for name in self._schema.names], schema=self._schema)
