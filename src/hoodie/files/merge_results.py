"""What a merge of a file slice returns: all rows, the rows that come from its logs, the superseded rows, or both.

The rows of a slice are the rows of its base file without the superseded rows, and the rows that come from its logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Protocol

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


class MergeResult(Protocol):
    """The result of a merge. A merge calls it with each piece of the base file, and with the rows that logs add."""

    base_schema: pa.Schema
    """The columns of base rows that the merge reads, POSITION as the last if `is_numbered`."""
    is_numbered: ClassVar[bool]
    has_base_rows: ClassVar[bool]
    """Whether rows of the base file that no log changes are in the result."""
    decides_rows_alone: ClassVar[bool]
    """Whether a base row that is not read changes nothing in the result but itself."""

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield the result for base rows whose keys no log contains."""
        ...

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the result for base rows: `gone` are replaced or deleted, `rows` replace the replaced rows."""
        ...

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield the result for rows whose keys only logs contain: the versions with these numbers."""
        ...


class SliceRows:
    """All rows of a slice."""

    is_numbered: ClassVar[bool] = False
    has_base_rows: ClassVar[bool] = True
    decides_rows_alone: ClassVar[bool] = False

    def __init__(self, read: SliceRead, rule: FoldRule) -> None:
        self._schema = read.output_schema
        self.base_schema = read.schema_of(read.merged_columns)

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield the base rows as they are."""
        yield _selected(stored, self._schema)

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield one piece: the base rows that stay, then the rows that replace others."""
        kept = _selected(stored, self._schema)
        if not len(gone):
            yield kept
            return
        stays = np.ones(stored.num_rows, np.bool_)
        stays[gone] = False
        yield pa.concat_tables([kept.filter(pa.array(stays)), _selected(rows, self._schema)])

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield the rows."""
        yield _selected(versions, self._schema).take(pa.array(numbers))


class LoggedRows:
    """The rows that replace rows of the base file, and the rows whose keys only logs contain."""

    is_numbered: ClassVar[bool] = False
    has_base_rows: ClassVar[bool] = False
    decides_rows_alone: ClassVar[bool] = False

    def __init__(self, read: SliceRead, rule: FoldRule) -> None:
        self._schema = read.output_schema
        self.base_schema = _decisive(read, rule)

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield nothing."""
        yield from ()

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows that replace others."""
        if rows.num_rows:
            yield _selected(rows, self._schema)

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield the rows."""
        yield _selected(versions, self._schema).take(pa.array(numbers))


class SupersededRows:
    """The positions in the base file of the rows that logs replace or delete: tables with the column POSITION alone."""

    is_numbered: ClassVar[bool] = True
    has_base_rows: ClassVar[bool] = False
    decides_rows_alone: ClassVar[bool] = True

    def __init__(self, read: SliceRead, rule: FoldRule) -> None:
        self.base_schema = _decisive(read, rule).append(POSITION_FIELD)

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield nothing."""
        yield from ()

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the positions of the rows that are replaced or deleted."""
        if len(gone):
            yield stored.select([POSITION]).take(pa.array(gone))

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield nothing."""
        yield from ()


class SplitRows:
    """What LoggedRows and SupersededRows return: rows, and tables with the column POSITION alone."""

    is_numbered: ClassVar[bool] = True
    has_base_rows: ClassVar[bool] = False
    decides_rows_alone: ClassVar[bool] = False

    def __init__(self, read: SliceRead, rule: FoldRule) -> None:
        self._rows = LoggedRows(read, rule)
        self._positions = SupersededRows(read, rule)
        self.base_schema = self._positions.base_schema

    def untouched(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Yield nothing."""
        yield from ()

    def merged(self, stored: pa.Table, gone: Rows, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the positions of the rows that are replaced or deleted, and the rows that replace others."""
        yield from self._positions.merged(stored, gone, rows)
        yield from self._rows.merged(stored, gone, rows)

    def added(self, versions: pa.Table, numbers: Rows) -> Iterator[pa.Table]:
        """Yield the rows."""
        yield from self._rows.added(versions, numbers)


def _decisive(read: SliceRead, rule: FoldRule) -> pa.Schema:
    """Return the columns of base rows that decide which version wins, and those that winning rows get from them."""
    names = read.merged_columns
    if not rule.mixes:
        needed = {RECORD_KEY, *rule.merger.ordering_columns}
        names = tuple(name for name in names if name in needed)
    return read.schema_of(names)


def _selected(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema)
