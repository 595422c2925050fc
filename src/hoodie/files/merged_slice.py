"""Read a file slice, base file and log files, as merged rows: docs/format/table.md §6.4, in bounded memory.

The folded log entries are held, and the base file streams past them; where they are too large, both sides go to files
by key hash first, except for base rows that no log file names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.base_rows import BaseRows
from hoodie.files.logs.log_records import VersionReader, delete_keys, row_keys
from hoodie.files.logs.log_scan import FoundBlock, ScanRule, scan_blocks
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import FileSlice
from hoodie.files.staging.spill import KeyFilter, SpilledParts
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.keys.key_lookup import KeyLookup
from hoodie.records.merging.fold import FoldRule, LogFold, is_row, resolve
from hoodie.storage import Store, scratch_folder

__all__ = ["ScanRule", "SliceRead", "deleted_keys", "logged_keys", "read_file_slice"]

_BATCH_ROWS = 128 * 1024
_BUCKETS_MAX = 128
_COMPRESSED_SHARE = 4
"""Arrow bytes that a byte of an unread block is taken for, at most; too many buckets cost little."""


def read_file_slice(store: Store, file_slice: FileSlice, read: SliceRead) -> Generator[pa.Table, None, None]:
    """The slice's rows as merging leaves them, with the columns of `read`, in pieces; none of them deleted.

    Rows come as they lie in the base file, piece by piece, those that logs change at the end of their piece; then the
    ones that only logs have. Where the logs do not fit `read.memory_bytes` the order is arbitrary. A piece of the base
    file that no log names comes out as it is.

    Memory: `read.memory_bytes`, up to four times, one block of a log file, and some 200 MiB for pieces of the base
    file, whatever the size of the slice. Close it if you do not read to the end: it may have opened files.

    Raises:
        CorruptFileError: a file does not parse.
        UnsupportedError: logged rows without record keys, or blocks of a kind that this release does not read.
    """
    blocks = scan_blocks(store, file_slice.log_files, read.scan_rule)
    rule = replace(read.fold_rule, is_partial=any(block.is_partial for block in blocks))
    base = BaseRows(store, file_slice, read, rule)
    if not blocks:
        yield from base.unmerged()
        return
    reader = VersionReader(store, read, is_partial=rule.is_partial)
    logs = LogFold(reader.schema, rule, pending_bytes=min(16 << 20, read.memory_bytes // 4))
    for number, block in enumerate(blocks):
        logs.add(reader.entries(block))
        if logs.held_bytes > read.memory_bytes and logs.result().nbytes > read.memory_bytes // 2:
            yield from _merge_spilled(reader, logs, blocks[number + 1 :], base, read, rule)
            return
    entries = logs.result()
    yield from _Merge(entries, read, rule).rows(base.beside(entries[RECORD_KEY]))


def deleted_keys(store: Store, file_slice: FileSlice, read: SliceRead) -> pa.StringArray:
    """Distinct keys in the delete blocks of the slice's logs. Memory: the keys.

    Raises: as `read_file_slice`.
    """
    blocks = scan_blocks(store, file_slice.log_files, read.scan_rule)
    return _distinct(delete_keys(store, blocks))


def logged_keys(store: Store, file_slice: FileSlice, read: SliceRead) -> pa.StringArray:
    """Distinct keys of the rows in the slice's logs, rows that say that they are deletes too. Memory: the keys.

    Raises: as `read_file_slice`.
    """
    blocks = scan_blocks(store, file_slice.log_files, read.scan_rule)
    return _distinct(row_keys(store, blocks))


def _distinct(parts: Iterable[pa.Array | pa.ChunkedArray]) -> pa.StringArray:
    """The distinct ones of many keys. Memory: them, and as many again."""
    found = pa.array([], pa.string())
    waiting: list[pa.Array] = []
    for part in parts:
        waiting += part.chunks if isinstance(part, pa.ChunkedArray) else [part]
        if sum(map(len, waiting)) >= max(len(found), _BATCH_ROWS):
            found, waiting = pc.unique(pa.concat_arrays([found, *waiting])), []
    return pc.unique(pa.concat_arrays([found, *waiting]))


class _Merge:
    """Folded entries, and the base rows that stream past them."""

    def __init__(self, entries: pa.Table, read: SliceRead, rule: FoldRule) -> None:
        self._entries = entries.combine_chunks()
        self._lookup = KeyLookup(self._entries[RECORD_KEY].combine_chunks())
        self._met = np.zeros(self._entries.num_rows, np.bool_)
        self._schema = read.output_schema
        self._rule = rule
        self._mixes = rule.overlay is not None or rule.merger.function is not None

    def rows(self, base: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Merged rows: those of the base file, then the ones that no base row has."""
        for stored in base:
            yield self._merge(stored)
        kinds = np.asarray(self._entries[KIND].combine_chunks())
        new = np.flatnonzero(~self._met & is_row(kinds))
        for start in range(0, len(new), _BATCH_ROWS):
            yield self._output(self._entries).take(pa.array(new[start : start + _BATCH_ROWS]))

    def _merge(self, stored: pa.Table) -> pa.Table:
        """What takes the place of base rows: first those that stay as they are."""
        kept = self._output(stored)
        here, places = self._lookup.find(stored[RECORD_KEY])
        if not len(here):
            return kept
        self._met[places] = True
        older = stored if self._mixes else stored.select(self._rule.merger.ordering_columns)
        resolved = resolve(older.take(pa.array(here)), self._entries.take(pa.array(places)), self._rule)
        gone = here[resolved.replaced | resolved.deleted]
        if not len(gone):
            return kept
        stays = np.ones(stored.num_rows, np.bool_)
        stays[gone] = False
        return pa.concat_tables([kept.filter(pa.array(stays)), self._output(resolved.rows)])

    def _output(self, rows: pa.Table) -> pa.Table:
        """The columns to return."""
        return pa.Table.from_arrays([rows[name] for name in self._schema.names], schema=self._schema)


def _merge_spilled(
    reader: VersionReader, held: LogFold, blocks: Sequence[FoundBlock], base: BaseRows, read: SliceRead, rule: FoldRule
) -> Iterator[pa.Table]:
    """Merge bucket by bucket of key hashes, through files; `held` has the entries before `blocks`, and is emptied."""
    unread = sum(block.place.content_bytes for block in blocks) * _COMPRESSED_SHARE
    count = int(np.clip(4 * (held.held_bytes + unread) // max(read.memory_bytes, 1), 4, _BUCKETS_MAX))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(read.spill_folder))
        logs = stack.enter_context(contextlib.closing(SpilledParts(folder, "log", reader.schema, count)))
        logged = KeyFilter()
        for entries in chain(held.drain(), map(reader.entries, blocks)):
            logs.write(entries)
            logged.add(entries[RECORD_KEY])
        logs.close()
        stored = stack.enter_context(contextlib.closing(SpilledParts(folder, "base", base.schema, count)))
        yield from _spill_base(base, logged, stored, read)
        for number in range(count):
            fold = LogFold(reader.schema, rule)
            for entries in logs.read(number):
                fold.add(entries)
            yield from _Merge(fold.result(), read, rule).rows(stored.read(number))


def _spill_base(base: BaseRows, logged: KeyFilter, stored: SpilledParts, read: SliceRead) -> Iterator[pa.Table]:
    """Write the base rows that a log may name to buckets; pass on the others."""
    for rows in base.beside(None):
        mask = pa.array(logged.may_hold(rows[RECORD_KEY]))
        stored.write(rows.filter(mask))
        others = rows.filter(pc.invert(mask))
        if others.num_rows:
            yield pa.Table.from_arrays([others[name] for name in read.columns], schema=read.output_schema)
    stored.close()
