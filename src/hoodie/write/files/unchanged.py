"""Find out whether the changes of a file group change anything, before a new file is begun.

Used in tables with ordering columns. A row that loses against its stored row changes nothing; neither does a row that
equals it in all columns, as the rows of a repeated batch. docs/decisions/0019-nothing-to-write.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.files.slices import BaseFile
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.records.change import KIND, RECORD_KEY, Kind
from hoodie.records.differences import are_same_rows
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import Store
from hoodie.write.files.context import RowCounts, WriteContext
from hoodie.write.files.touched import Piece


class ChangeProbe:
    """Looks for the first change among the stored rows of a file group, and remembers what it met until then."""

    def __init__(self, context: WriteContext, changes: pa.Table) -> None:
        self._context = context
        self._changes = changes
        self._keys = changes[RECORD_KEY].combine_chunks()
        self._kinds = np.asarray(changes[KIND].combine_chunks())
        self._met = np.zeros(changes.num_rows, np.bool_)
        self._lost = np.zeros(changes.num_rows, np.bool_)
        self._equal = np.zeros(changes.num_rows, np.bool_)

    def changes_any(self, stored: pa.Table) -> bool:
        """Return whether a change replaces one of these stored rows with another row, or deletes it."""
        here, incoming = self._meet(stored)
        if not len(here):
            return False
        data = self._context.schema.names
        older = stored.select(data).take(pa.array(here))
        merged = self._context.merger.merge(older, self._changes.take(pa.array(incoming)))
        self._lost[incoming[~(merged.replaced | merged.deleted)]] = True
        self._equal[incoming[merged.replaced]] = True
        if merged.deleted.any():
            return True
        older = older if merged.replaced.all() else older.filter(pa.array(merged.replaced))
        return not are_same_rows(older, merged.rows.select(data))

    def wins_any(self, stored: pa.Table) -> bool:
        """Return whether a change wins against one of these stored rows, which have only their ordering columns."""
        here, incoming = self._meet(stored)
        newer = self._changes.take(pa.array(incoming))
        wins = self._context.merger.newer_wins(stored.take(pa.array(here)), newer)
        self._lost[incoming[~wins]] = True
        return bool((wins | self._context.merger.always_deletes(self._kinds[incoming])).any())

    @property
    def inserts_any(self) -> bool:
        """Whether a row has a key that no stored row so far has."""
        return bool((~self._met & (self._kinds == Kind.ROW)).any())

    def count(self, counts: RowCounts) -> None:
        """Count all changes: rows that equal their stored row, and rows that are ignored."""
        equal = int(self._equal.sum())
        counts.equal += equal
        counts.ignored += self._changes.num_rows - equal
        lost = self._changes.filter(pa.array(self._lost))
        counts.unordered += unordered_rows(lost, self._context.merger)

    def _meet(self, stored: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the positions of stored rows that have a change, and the positions of these changes."""
        places = pc.index_in(stored[RECORD_KEY].combine_chunks(), value_set=self._keys)
        incoming = np.asarray(places.drop_null()).astype(np.int64)
        self._met[incoming] = True
        return np.flatnonzero(np.asarray(pc.is_valid(places))), incoming


def unordered_rows(changes: pa.Table, merger: RecordMerger) -> int:
    """Return the number of rows without a value in one of the ordering columns."""
    masks = [np.asarray(changes[name].is_null()) for name in merger.logged_ordering]
    return int(np.logical_or.reduce(masks).sum()) if masks else 0


@dataclass(slots=True)
class ReadAhead:
    """Reads the stored rows of a base file until the first change, and gives them again.

    `read` starts to read the file. Up to `held_bytes_max` bytes of rows are held, so that they are decoded once. If the
    first change comes later, the file is read from its beginning again.
    """

    read: Callable[[], Iterator[Piece]]
    held_bytes_max: int
    _held: deque[Piece] = field(default_factory=deque)
    _rest: Iterator[Piece] = field(default_factory=lambda: iter(()))

    def finds_change(self, probe: ChangeProbe) -> bool:
        """Read until the first change; False if there is none in the whole file, and no insert either."""
        held_bytes = 0
        self._rest = self.read()
        for stored in self._rest:
            held_bytes += stored.nbytes
            if held_bytes <= self.held_bytes_max:
                self._held.append(stored)
            if stored.rows is not None and probe.changes_any(stored.rows):
                break
        else:
            if not probe.inserts_any:
                return False
        if held_bytes > self.held_bytes_max:
            self._held.clear()
            self._rest = self.read()
        return True

    def pieces(self) -> Iterator[Piece]:
        """Yield all stored rows."""
        while self._held:
            yield self._held.popleft()
        yield from self._rest


def is_newer_than_stored(
    parquet: pq.ParquetFile, context: WriteContext, base_file: BaseFile, changes: pa.Table
) -> bool:
    """Return whether the footer of the open base file shows that a row is newer than all stored rows.

    Such a row wins, or has a new key. Only integers, dates and times are compared; for other types the answer is False.
    """
    ordering = context.merger.ordering_columns
    if not ordering or not context.stored.are_in(base_file):
        return False
    name = ordering[0]
    values = changes.filter(pc.equal(changes[KIND], int(Kind.ROW)))[name]
    if name not in parquet.schema_arrow.names or parquet.schema_arrow.field(name).type != values.type:
        return False
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type) or pa.types.is_integer(values.type):
        values = values.cast(pa.int64())
    else:
        return False
    newest = pc.max(values).as_py()
    greatest = [_greatest(parquet.metadata.row_group(group), name) for group in range(parquet.num_row_groups)]
    known = [found for found in greatest if found is not None]
    return newest is not None and len(known) == len(greatest) and newest > max(known, default=newest)


def all_lose(
    store: Store,
    parquet: pq.ParquetFile,
    context: WriteContext,
    base_file: BaseFile,
    changes: pa.Table,
    *,
    bytes_max: int | None = None,
) -> ChangeProbe | None:
    """Return a probe that met all changes, if each loses against its stored row by the ordering columns; else None.

    `parquet` is the open base file. Only record keys and ordering values are read, and nothing if these columns have
    more than `bytes_max` bytes in the file.
    """
    if not may_all_lose(context, changes) or not context.stored.are_in(base_file):
        return None
    schema = with_meta_fields(context.schema)
    columns = pa.schema([schema.field(name) for name in (RECORD_KEY, *context.merger.ordering_columns)])
    if bytes_max is not None and _compressed_bytes(parquet, columns.names) > bytes_max:
        return None
    probe = ChangeProbe(context, changes)
    for stored in context.stored.base_rows(store, parquet, columns, base_file, with_keys=True):
        if probe.wins_any(stored):
            return None
    return None if probe.inserts_any else probe


def may_all_lose(context: WriteContext, changes: pa.Table) -> bool:
    """Return whether ordering columns decide, no fields are mixed, and no change is a delete that always wins."""
    kinds, merger = np.asarray(changes[KIND].combine_chunks()), context.merger
    decides = bool(merger.ordering_columns) and merger.overlay is None
    return decides and not bool(merger.always_deletes(kinds).any())


def _greatest(group: pq.RowGroupMetaData, name: str) -> int | None:
    """Return the greatest value of an integer column in a row group, as it is stored; None if it is not known."""
    for place in range(group.num_columns):
        chunk = group.column(place)
        if chunk.path_in_schema == name:
            found = chunk.statistics if chunk.is_stats_set else None
            return int(found.max_raw) if found is not None and found.has_min_max else None
    return None


def _compressed_bytes(parquet: pq.ParquetFile, columns: list[str]) -> int:
    """Return the bytes of some columns in the file."""
    groups = (parquet.metadata.row_group(number) for number in range(parquet.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    return sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in columns)
