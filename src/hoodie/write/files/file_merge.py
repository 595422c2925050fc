"""Merge the changes of one file group into the pieces of its base file, and count what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.stamping import Stamper
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.log.cdc_block import CdcOperation
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import KIND, LEADING, RECORD_KEY, Kind
from hoodie.records.differences import differing_columns
from hoodie.write.files.cdc_log import CdcLog
from hoodie.write.files.context import RowCounts, WriteContext
from hoodie.write.files.touched import Piece
from hoodie.write.files.unchanged import unordered_rows


class FileMerge:
    """The merge of one base file: marks the changes whose key has a stored row, and counts the outcomes.

    `entries` gets the keys that are added to or removed from the file group `group` (partition path and file id).
    """

    def __init__(
        self,
        context: WriteContext,
        changes: pa.Table,
        stamper: Stamper,
        entries: EntryWriter,
        group: tuple[str, str],
        cdc: CdcLog | None = None,
    ) -> None:
        self._context = context
        self._cdc = cdc
        self._entries, self._group = entries, group
        # The rows of an update have the columns that name the record too.
        self._changes = changes.select([*LEADING, *context.schema.names])
        self._keys = changes[RECORD_KEY].combine_chunks()
        self._met = np.zeros(changes.num_rows, np.bool_)
        self._won = np.zeros(changes.num_rows, np.bool_)
        self._data = context.schema.names
        self._differing: set[str] | None = None
        self._stamper = stamper
        self.updated = 0
        self.deleted = 0
        self.inserted = 0

    def merge_group(self, pieces: Iterable[Piece]) -> MergedGroup:
        """Merge the pieces of a row group."""
        self._differing, deleted = set(), self.deleted
        rows = [self.merge(piece.rows, piece.places) for piece in pieces if piece.rows is not None]
        differing, self._differing = self._differing, None
        changed = [name for one in rows[:1] for name in one.column_names if name in differing]
        return MergedGroup(rows, changed, loses_rows=self.deleted > deleted)

    def merge(self, stored: pa.Table, places: pa.Array | None = None) -> pa.Table:
        """Return the rows that replace the rows of `stored`, in the order of `stored`; `places` as in a `Piece`."""
        if not self._context.merge_stored:
            return stored
        if places is None:
            places = pc.index_in(stored[RECORD_KEY].combine_chunks(), value_set=self._keys)
        here = np.flatnonzero(np.asarray(pc.is_valid(places)))
        if not len(here):
            return stored
        incoming = np.asarray(places.drop_null())
        self._met[incoming] = True
        older = stored.select(self._data).take(pa.array(here))
        merged = self._context.merger.merge(older, self._changes.take(pa.array(incoming)))
        self._won[incoming[merged.replaced | merged.deleted]] = True
        self.updated += int(merged.replaced.sum())
        self.deleted += int(merged.deleted.sum())
        if self._cdc is not None:
            keys = self._keys.take(pa.array(incoming))
            replaces, deletes = pa.array(merged.replaced), pa.array(merged.deleted)
            self._cdc.add(CdcOperation.UPDATE, keys.filter(replaces), older.filter(replaces), merged.rows)
            self._cdc.add(CdcOperation.DELETE, keys.filter(deletes), older.filter(deletes), None)
        replaced = stored.take(pa.array(here[merged.replaced]))
        rows = self._stamper.new_rows(self._filled(merged.rows, replaced))
        if self._differing is not None:
            self._differing |= differing_columns(replaced, rows)
        source = np.arange(stored.num_rows)
        source[here[merged.replaced]] = stored.num_rows + np.arange(rows.num_rows)
        if merged.deleted.any():
            self._entries.delete(self._keys.take(pa.array(incoming[merged.deleted])), self._group[0])
            source = np.delete(source, here[merged.deleted])
        return pa.concat_tables([stored, rows]).take(pa.array(source))

    def _filled(self, changes: pa.Table, stored: pa.Table) -> pa.Table:
        """Return the rows of an update with those columns of their stored rows that it lacks, if these are read."""
        whole = self._context.whole
        if whole is None or set(whole.names) - set(stored.column_names):
            return changes
        changed = set(changes.column_names)
        return pa.table({name: (changes if name in changed else stored)[name] for name in (*LEADING, *whole.names)})

    def inserts(self) -> Iterator[pa.Table]:
        """Yield the rows whose key no stored row has; deletes of unknown keys are skipped.

        An update that has only some columns inserts none.
        """
        if self._context.is_partial:
            return
        kinds = np.asarray(self._changes[KIND].combine_chunks())
        new = np.flatnonzero(~self._met & (kinds == Kind.ROW))
        self.inserted += len(new)
        step = 256 * 1024
        for start in range(0, len(new), step):
            rows = self._changes.take(pa.array(new[start : start + step]))
            yield self._new(rows)

    def append(self, changes: pa.Table) -> pa.Table:
        """Return further inserts, whose keys no stored row has."""
        rows = changes.filter(pc.equal(changes[KIND], int(Kind.ROW)))
        self.inserted += rows.num_rows
        return self._new(rows)

    def _new(self, rows: pa.Table) -> pa.Table:
        """Return inserts as rows of the file, and note their locations and the change."""
        self._entries.put(rows[RECORD_KEY], *self._group)
        if self._cdc is not None:
            self._cdc.add(CdcOperation.INSERT, rows[RECORD_KEY].combine_chunks(), None, rows)
        return self._stamper.new_rows(rows)

    def count_ignored(self, counts: RowCounts) -> None:
        """Count the changes that lost against their stored row, and the deletes that met no stored row."""
        kinds = np.asarray(self._changes[KIND].combine_chunks())
        lost = self._met & ~self._won
        is_inserted = (kinds == Kind.ROW) & (not self._context.is_partial)
        counts.ignored += int((lost | (~self._met & ~is_inserted)).sum())
        counts.unordered += unordered_rows(self._changes.filter(pa.array(lost)), self._context.merger)

    def counted(self, stat: WriteStat) -> WriteStat:
        """Return the write statistic of the new file with the numbers of updates, deletes and inserts."""
        return replace(stat, num_deletes=self.deleted, num_update_writes=self.updated, num_inserts=self.inserted)


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """The merged rows of a row group, none if it has no changed key; `changed` are the columns in which a row differs.

    `loses_rows`: whether a row was deleted, so that all columns differ.
    """

    rows: list[pa.Table]
    changed: list[str]
    loses_rows: bool

    @property
    def nbytes(self) -> int:
        """Arrow bytes of the rows."""
        return sum(int(one.nbytes) for one in self.rows)
