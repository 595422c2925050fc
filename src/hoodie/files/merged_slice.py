"""Merge the base file and the log files of a slice, in bounded memory: docs/format/table.md §6.4.

The folded versions are held in memory, and the base file is streamed and merged with them. If the folded versions are
too large, both sides are first spilled to parts by key hash, except for base rows whose keys no log file contains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.base_rows import BaseRows
from hoodie.files.logs.log_records import VersionReader, delete_keys, row_keys
from hoodie.files.logs.log_scan import FoundBlock, scan_blocks
from hoodie.files.merge_results import POSITION, MergeResult, Part
from hoodie.files.slice_read import SliceRead as SliceRead
from hoodie.files.slices import FileSlice
from hoodie.files.stored_groups import LIKELY_KEYS, StoredGroups
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.keys.sorting import HASH_END, KeyLookup, spread
from hoodie.records.merging.fold import FoldRule, LogFold, is_row, resolve
from hoodie.storage import Store, scratch_folder, scratch_input, scratch_output

Int64Array = npt.NDArray[np.int64]

_BATCH_ROWS = 128 * 1024
_PARTS_MAX = 128
_SPILL_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_COMPRESSED_SHARE = 4
"""Estimated maximum of Arrow bytes per byte of an unread block; too many parts cost little."""


def read_file_slice(store: Store, file_slice: FileSlice, read: SliceRead) -> Generator[pa.Table, None, None]:
    """Yield the merged rows of a slice in pieces, with the columns of `read`, without deleted rows.

    Rows have the order of the base file, piece by piece; rows that logs change are at the end of their piece. Rows that
    only logs contain follow last. The order is arbitrary if the logs do not fit into `read.memory_bytes`. A piece of
    the base file is returned unchanged if no log contains its keys.

    Memory: up to four times `read.memory_bytes`, one block of a log file, and about 200 MiB for pieces of the base
    file, whatever the size of the slice. Close the generator if you do not read to the end: it may have opened files.

    Raises:
        CorruptFileError: a file does not parse.
        UnsupportedError: logged rows without record keys, or blocks of a kind that this release does not read.
    """
    return _read(store, file_slice, read, Part.BASE | Part.LOGGED)


def merge_or_copy(
    store: Store, file_slice: FileSlice, read: SliceRead, groups: StoredGroups
) -> Generator[pa.Table | int, None, None]:
    """Yield the rows of `read_file_slice`, but the number of a row group of the base file if no log has a key of it.

    `groups` are those of the base file of the slice; the caller copies them. If the logs do not fit into
    `read.memory_bytes`, all rows are yielded. Memory and errors: as `read_file_slice`.
    """
    return _read(store, file_slice, read, Part.BASE | Part.LOGGED, groups)


def read_logged_rows(store: Store, file_slice: FileSlice, read: SliceRead) -> Generator[pa.Table, None, None]:
    """Yield the rows of `read_file_slice` that are not rows of the base file: those that come from logs.

    Of the base file, only the record key and the ordering columns are read; if fields of versions are mixed, or a
    function merges, all columns that the merge needs. Memory and errors: as `read_file_slice`.
    """
    return _read(store, file_slice, read, Part.LOGGED)


def superseded_positions(store: Store, file_slice: FileSlice, read: SliceRead) -> Iterator[Int64Array]:
    """Yield the positions (from 0) of the rows in the base file that logs replace or delete, in pieces.

    The positions are ascending if the logs fit into `read.memory_bytes`. Rows of row groups that cannot match
    `read.base_filter` may be left out. The same columns are read as by `read_logged_rows`; `read.columns` need only
    contain the columns of `read.base_filter`. Memory and errors: as `read_file_slice`.
    """
    for found in _read(store, file_slice, read, Part.SUPERSEDED):
        yield np.asarray(found[POSITION])


def split_slice(
    store: Store, file_slice: FileSlice, read: SliceRead
) -> Iterator[tuple[pa.Table | None, Int64Array | None]]:
    """Yield what `read_logged_rows` and `superseded_positions` yield, in one pass: rows, or positions.

    Memory and errors: as `read_file_slice`.
    """
    for found in _read(store, file_slice, read, Part.LOGGED | Part.SUPERSEDED):
        if found.column_names == [POSITION]:
            yield None, np.asarray(found[POSITION])
        else:
            yield found, None


def _read(
    store: Store, file_slice: FileSlice, read: SliceRead, wanted: Part, groups: StoredGroups | None = None
) -> Generator[Any, None, None]:
    blocks = scan_blocks(store, file_slice.log_files, read.rule)
    rule = FoldRule(read.merger, is_partial=any(block.is_partial for block in blocks))
    result = MergeResult(read, rule, wanted)
    base = BaseRows(store, file_slice, read, rule, result)
    if not blocks:
        if groups is not None:
            yield from range(groups.metadata.num_row_groups)
        elif result.has_base_rows:
            yield from base.unmerged()
        return
    reader = VersionReader(store, read, is_partial=rule.is_partial)
    logs = LogFold(reader.schema, rule, pending_bytes=min(16 << 20, read.memory_bytes // 4))
    for number, block in enumerate(blocks):
        logs.add(reader.entries(block))
        if logs.held_bytes > read.memory_bytes and logs.result().nbytes > read.memory_bytes // 2:
            yield from _merge_spilled(reader, logs, blocks[number + 1 :], base, read, result)
            return
    versions = logs.result()
    merge = _Merge(versions, rule, result)
    if groups is None:
        yield from merge.rows(base.beside(versions[RECORD_KEY]))
    else:
        yield from merge.rows_or_groups(base, groups)


def deleted_keys(store: Store, file_slice: FileSlice, read: SliceRead, *, in_order: bool = True) -> pa.StringArray:
    """Return the distinct keys in the delete blocks of the slice's logs. Memory: the keys.

    Without `in_order`, only keys of deletes without an ordering value are returned.

    Raises: as `read_file_slice`.
    """
    blocks = scan_blocks(store, file_slice.log_files, read.rule)
    return _distinct(delete_keys(store, blocks, in_order=in_order))


def logged_keys(store: Store, file_slice: FileSlice, read: SliceRead) -> pa.StringArray:
    """Return the distinct keys of the rows in the slice's logs, including rows that are deletes. Memory: the keys.

    Raises: as `read_file_slice`.
    """
    blocks = scan_blocks(store, file_slice.log_files, read.rule)
    return _distinct(row_keys(store, blocks))


def written_keys(store: Store, file_slice: FileSlice, read: SliceRead, instant_time: str) -> pa.StringArray:
    """Return the distinct keys of the rows and deletes that an instant wrote into the slice's logs. Memory: the keys.

    Raises: as `read_file_slice`.
    """
    # In version 6 a name has the base instant: all files are searched if none is named by the instant.
    named = [log for log in file_slice.log_files if log.name.instant_time == instant_time]
    found = scan_blocks(store, named or file_slice.log_files, read.rule)
    blocks = [block for block in found if block.instant_time == instant_time]
    return _distinct(chain(row_keys(store, blocks), delete_keys(store, blocks, in_order=True)))


def _distinct(parts: Iterable[pa.Array | pa.ChunkedArray]) -> pa.StringArray:
    """Return the distinct keys. Memory: twice the distinct keys."""
    found = pa.array([], pa.string())
    waiting: list[pa.Array] = []
    for part in parts:
        waiting += part.chunks if isinstance(part, pa.ChunkedArray) else [part]
        if sum(map(len, waiting)) >= max(len(found), _BATCH_ROWS):
            found, waiting = pc.unique(pa.concat_arrays([found, *waiting])), []
    return pc.unique(pa.concat_arrays([found, *waiting]))


class _Merge:
    """Merges streamed base rows with the folded versions of their keys."""

    def __init__(self, versions: pa.Table, rule: FoldRule, result: MergeResult) -> None:
        self._versions = versions.combine_chunks()
        self._lookup = KeyLookup(self._versions[RECORD_KEY].combine_chunks())
        self._met = np.zeros(self._versions.num_rows, np.bool_)
        self._rule = rule
        self._result = result

    def rows(self, base: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the result: first for the rows of the base file, then for the rows whose keys are only in logs."""
        for stored in base:
            yield from self._merge(stored)
        yield from self._added()

    def rows_or_groups(self, base: BaseRows, groups: StoredGroups) -> Iterator[pa.Table | int]:
        """Yield as `rows`; the number of a row group without a key of the logs."""
        for number in range(groups.metadata.num_row_groups):
            if not self._touches(groups, number):
                yield number
                continue
            for stored in base.of_group(groups.parquet, number):
                yield from self._merge(stored)
        yield from self._added()

    def _touches(self, groups: StoredGroups, number: int) -> bool:
        """Return whether the logs have a key of a row group; its keys are not read if that is likely."""
        candidates = groups.may_hold(number, self._versions[RECORD_KEY])
        if not candidates or candidates * groups.rows(number) >= LIKELY_KEYS * groups.metadata.num_rows:
            return candidates > 0
        return len(self._lookup.find(groups.column(number, RECORD_KEY))[0]) > 0

    def _added(self) -> Iterator[pa.Table]:
        kinds = np.asarray(self._versions[KIND].combine_chunks())
        new = np.flatnonzero(~self._met & is_row(kinds))
        for start in range(0, len(new), _BATCH_ROWS):
            yield from self._result.added(self._versions, new[start : start + _BATCH_ROWS])

    def _merge(self, stored: pa.Table) -> Iterator[pa.Table]:
        """Merge one piece of base rows."""
        here, places = self._lookup.find(stored[RECORD_KEY])
        if not len(here):
            return self._result.untouched(stored)
        self._met[places] = True
        older = stored if self._rule.mixes else stored.select(self._rule.merger.ordering_columns)
        resolved = resolve(older.take(pa.array(here)), self._versions.take(pa.array(places)), self._rule)
        return self._result.merged(stored, here[resolved.replaced | resolved.deleted], resolved.rows)


def _merge_spilled(
    reader: VersionReader,
    held: LogFold,
    blocks: Sequence[FoundBlock],
    base: BaseRows,
    read: SliceRead,
    result: MergeResult,
) -> Iterator[pa.Table]:
    """Spill both sides to parts by key hash, and merge part by part.

    `held` has the versions before `blocks`; it is emptied.
    """
    unread = sum(block.place.content_bytes for block in blocks) * _COMPRESSED_SHARE
    count = int(np.clip(4 * (held.held_bytes + unread) // max(read.memory_bytes, 1), 4, _PARTS_MAX))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(read.spill_folder))
        logs = stack.enter_context(contextlib.closing(_SpilledParts(folder, "log", reader.schema, count)))
        logged = _KeyFilter()
        for versions in chain(held.drain(), map(reader.entries, blocks)):
            logs.write(versions)
            logged.add(versions[RECORD_KEY])
        logs.close()
        stored = stack.enter_context(contextlib.closing(_SpilledParts(folder, "base", base.schema, count)))
        yield from _spill_base(base, logged, stored, result)
        for number in range(count):
            fold = LogFold(reader.schema, held.rule)
            for versions in logs.read(number):
                fold.add(versions)
            yield from _Merge(fold.result(), held.rule, result).rows(stored.read(number))


def _spill_base(base: BaseRows, logged: _KeyFilter, stored: _SpilledParts, result: MergeResult) -> Iterator[pa.Table]:
    """Spill the base rows whose keys a log may contain; yield the result for the other rows."""
    for rows in base.beside(None):
        mask = pa.array(logged.may_hold(rows[RECORD_KEY]))
        stored.write(rows.filter(mask))
        others = rows.filter(pc.invert(mask))
        if others.num_rows:
            yield from result.untouched(others)
    stored.close()


class _SpilledParts:
    """Rows in files, distributed over parts by key hash: all rows of a key are in one part, in the order of writing.

    Memory: twice the table that is being written or read. Close it before reading.
    """

    def __init__(self, folder: str, name: str, schema: pa.Schema, count: int) -> None:
        self._folder = folder
        self._names = [f"{name}-{number}" for number in range(count)]
        self._sinks: list[pa.NativeFile] = []
        self._writers: list[pa.ipc.RecordBatchStreamWriter] = []
        for own in self._names:
            self._sinks.append(scratch_output(f"{folder}/{own}"))
            self._writers.append(pa.ipc.new_stream(self._sinks[-1], schema, options=_SPILL_OPTIONS))

    def write(self, rows: pa.Table) -> None:
        """Append rows, each to the part of its key."""
        if rows.num_rows == 0:
            return
        count = len(self._writers)
        numbers = spread(rows[RECORD_KEY].combine_chunks()).astype(np.uint64) * np.uint64(count) // np.uint64(HASH_END)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(count + 1))
        in_order = rows.combine_chunks().take(pa.array(order))
        for number, writer in enumerate(self._writers):
            if bounds[number] < bounds[number + 1]:
                writer.write_table(in_order.slice(bounds[number], bounds[number + 1] - bounds[number]))

    def close(self) -> None:
        """Finish all files; may be called several times."""
        while self._writers:
            self._writers.pop().close()
            self._sinks.pop().close()

    def read(self, number: int) -> Iterator[pa.Table]:
        """Yield the rows of one part, in pieces."""
        with scratch_input(f"{self._folder}/{self._names[number]}") as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


class _KeyFilter:
    """Tests whether keys may have been added: false positives are possible, false negatives are not. Memory: 32 MiB."""

    _BITS = 25

    def __init__(self) -> None:
        self._seen = np.zeros(1 << self._BITS, np.bool_)

    def add(self, keys: pa.ChunkedArray) -> None:
        """Add keys."""
        self._seen[self._slots(keys)] = True

    def may_hold(self, keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return one flag per key; a key with false was not added."""
        found: npt.NDArray[np.bool_] = self._seen[self._slots(keys)]
        return found

    def _slots(self, keys: pa.ChunkedArray) -> npt.NDArray[np.uint32]:
        return spread(keys.combine_chunks()) >> np.uint32(32 - self._BITS)
