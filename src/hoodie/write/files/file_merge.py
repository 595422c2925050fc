"""Merge the changes of one file group into the pieces of its base file, and count what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.base_file import BaseFileWriter
from hoodie.files.slices import BaseFile
from hoodie.files.stamping import Stamper
from hoodie.format.instants.commit_metadata import NULL_COMMIT, RuntimeStats, WriteStat
from hoodie.index.record.entries import EntryWriter
from hoodie.records.change import KIND, LEADING, RECORD_KEY, Kind
from hoodie.records.differences import differing_columns
from hoodie.records.merging.merge import Merged
from hoodie.write.files.cdc_log import CdcLog
from hoodie.write.files.context import RowCounts, WriteContext
from hoodie.write.files.touched import Piece
from hoodie.write.files.unchanged import unordered_rows


@dataclass(frozen=True, slots=True)
class Locations:
    """Note locations: record the keys that are added to or removed from the file group, if there is a record index."""

    entries: EntryWriter | None
    partition_path: str
    file_id: str

    def put(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Record that these keys are in the file group now."""
        if self.entries is not None:
            self.entries.put(keys, self.partition_path, self.file_id)

    def delete(self, keys: pa.Array | pa.ChunkedArray) -> None:
        """Record that these keys are not in the file group any more."""
        if self.entries is not None:
            self.entries.delete(keys, self.partition_path)


class FileMerge:
    """The merge of one base file: marks the changes whose key has a stored row, and counts the outcomes."""

    def __init__(
        self,
        context: WriteContext,
        changes: pa.Table,
        stamper: Stamper,
        locations: Locations,
        cdc: CdcLog | None = None,
    ) -> None:
        self._context = context
        self._cdc = cdc
        self._locations = locations
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
            self._log(self._cdc, self._keys.take(pa.array(incoming)), older, merged)
        replaced = stored.take(pa.array(here[merged.replaced]))
        rows = self._stamper.new_rows(self._filled(merged.rows, replaced))
        if self._differing is not None:
            self._differing |= differing_columns(replaced, rows)
        source = np.arange(stored.num_rows)
        source[here[merged.replaced]] = stored.num_rows + np.arange(rows.num_rows)
        if merged.deleted.any():
            self._locations.delete(self._keys.take(pa.array(incoming[merged.deleted])))
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
        self._locations.put(rows[RECORD_KEY])
        if self._cdc is not None:
            self._cdc.inserted(rows[RECORD_KEY].combine_chunks(), rows)
        return self._stamper.new_rows(rows)

    def _log(self, cdc: CdcLog, keys: pa.StringArray, older: pa.Table, merged: Merged) -> None:
        """Log the stored rows that a piece of changes replaces or deletes; `older` are the stored rows of the keys."""
        replaced, deleted = pa.array(merged.replaced), pa.array(merged.deleted)
        cdc.updated(keys.filter(replaced), older.filter(replaced), merged.rows)
        cdc.deleted(keys.filter(deleted), older.filter(deleted))

    def count_ignored(self, counts: RowCounts) -> None:
        """Count the changes that lost against their stored row, and the deletes that met no stored row."""
        kinds = np.asarray(self._changes[KIND].combine_chunks())
        lost = self._met & ~self._won
        is_inserted = (kinds == Kind.ROW) & (not self._context.is_partial)
        counts.ignored += int((lost | (~self._met & ~is_inserted)).sum())
        counts.unordered += unordered_rows(self._changes.filter(pa.array(lost)), self._context.merger)

    def stat(
        self,
        base_file: BaseFile | None,
        partition_path: str,
        path: str,
        writer: BaseFileWriter,
        file_id: str,
        started: float,
    ) -> WriteStat:
        """Return the write statistic of the new file."""
        millis = int((time.monotonic() - started) * 1000)
        runtime = RuntimeStats(total_upsert_time_ms=millis) if base_file else RuntimeStats(total_create_time_ms=millis)
        return WriteStat(
            file_id=file_id,
            path=path,
            prev_commit=base_file.instant_time if base_file else NULL_COMMIT,
            prev_base_file=base_file.name if base_file else None,
            num_writes=writer.rows,
            num_deletes=self.deleted,
            num_update_writes=self.updated,
            num_inserts=self.inserted,
            total_write_bytes=writer.size_bytes,
            file_size_bytes=writer.size_bytes,
            partition_path=partition_path,
            runtime_stats=runtime,
            column_ranges=writer.ranges,
        )


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
