"""Fold the logged versions of records, oldest to newest, into one for each key, and that with the stored row.

Implements docs/format/table.md §4.5, §6.4 and §6.5 on whole Arrow tables of *entries*: logged rows and deletes, in log
order, with their kind in front, the record key among the columns, and the ordering values of deletes in the ordering
columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.avro.schema import META_FIELDS
from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.merging.merge import RecordMerger, ordering_ranks
from hoodie.records.merging.overlay import HAS, Overlay

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


class VersionKind(IntEnum):
    """What an entry does to its key; the first three as `records.change.Kind`."""

    ROW = 0
    DELETE = 1
    """Delete whatever is older, whatever its ordering value."""
    DELETE_IN_ORDER = 2
    """A row that says that it is a delete, with an ordering value."""
    DELETE_RECORD = 3
    """A delete of a delete block, with an ordering value: it changes nothing where the key was deleted already."""
    ROW_ALONE = 4
    """A row that follows a delete, for a merge function: it is not merged with what was deleted. Folding makes it."""


@dataclass(frozen=True, slots=True)
class FoldRule:
    """Which version of a record counts. `is_partial`: some entries bring only some fields (HAS columns say which)."""

    merger: RecordMerger
    partial_update_mode: PartialUpdateMode | None = None
    unavailable_value: str | None = None
    is_partial: bool = False

    @property
    def overlay(self) -> Overlay | None:
        """How fields of two versions are mixed; None if they are not. Blocks with some of the columns come first."""
        if self.is_partial:
            return Overlay()
        if self.partial_update_mode is None:
            return None
        return Overlay(self.partial_update_mode, self.unavailable_value)

    @property
    def decides_by_order(self) -> bool:
        """Whether ordering values decide."""
        return bool(self.merger.ordering_columns)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Outcome for stored rows that an entry met: `replaced` by `rows` (in order, entry columns), or `deleted`."""

    replaced: Mask
    deleted: Mask
    rows: pa.Table


def fold(entries: pa.Table, rule: FoldRule) -> pa.Table:
    """One entry per key, by place of its first entry; folding what was folded with later entries is the same.

    Memory: the entries, and a few numbers for each.
    """
    keys = entries[RECORD_KEY].combine_chunks().dictionary_encode()
    codes: Rows = np.asarray(keys.indices).astype(np.int64)
    key_count = len(keys.dictionary)
    if key_count == len(codes):
        return entries
    entries = entries.combine_chunks()
    kinds = np.asarray(entries[KIND].chunk(0))
    places = np.arange(len(codes))
    last_delete = np.full(key_count, -1)
    wiping = np.flatnonzero(kinds == VersionKind.DELETE if rule.decides_by_order else ~is_row(kinds))
    last_delete[codes[wiping]] = wiping
    alive = places > last_delete[codes]
    if rule.decides_by_order:
        alive &= ~_changes_nothing(codes, kinds, alive, last_delete)
    living = np.flatnonzero(alive)
    if rule.merger.function is not None:
        return _fold_custom(entries, living, codes, last_delete, rule)
    if rule.overlay is not None:
        return _fold_mixing(entries, living, codes, last_delete, rule, rule.overlay)
    winners = last_delete
    if rule.decides_by_order:
        ranks = ordering_ranks(entries, rule.merger.ordering_columns)
        living = living[np.argsort(ranks[living], kind="stable")]
    winners[codes[living]] = living
    return entries.take(pa.array(winners))


def is_row(kinds: npt.NDArray[np.int8]) -> Mask:
    """Which entries are rows, not deletes."""
    rows: Mask = (kinds == VersionKind.ROW) | (kinds == VersionKind.ROW_ALONE)
    return rows


def resolve(stored: pa.Table, entries: pa.Table, rule: FoldRule) -> Resolved:
    """Decide between stored rows and the folded entry of the same key, row by row.

    `stored` has the columns of the entries, but for the kind and the HAS columns; where neither fields are mixed nor a
    function merges, the ordering columns will do.
    """
    kinds = np.asarray(entries[KIND].combine_chunks())
    if rule.merger.function is not None:
        return _settle_custom(stored, entries, kinds, rule)
    are_rows = kinds == VersionKind.ROW
    wins = kinds == VersionKind.DELETE
    wins |= rule.merger.newer_wins(stored, entries) if rule.decides_by_order else True
    overlay = rule.overlay
    if overlay is None:
        replaced = wins & are_rows
        return Resolved(replaced, wins & ~are_rows, entries if replaced.all() else entries.filter(pa.array(replaced)))
    # A stored row is whole: with blocks of some columns nothing changes where it wins. It may have nulls to be filled.
    replaced = are_rows & wins if rule.is_partial else are_rows
    mask = pa.array(replaced)
    rows = overlay.over(_as_entries(stored.filter(mask), entries.schema), entries.filter(mask), wins[replaced])
    return Resolved(replaced, wins & ~are_rows, rows)


def _settle_custom(stored: pa.Table, entries: pa.Table, kinds: npt.NDArray[np.int8], rule: FoldRule) -> Resolved:
    """Let the caller's function merge the stored rows with those entries that follow no delete."""
    met = np.flatnonzero(kinds == VersionKind.ROW)
    rows, gone = _call(stored.take(pa.array(met)), entries.take(pa.array(met)), rule)
    deleted = ~is_row(kinds)
    deleted[met[gone]] = True
    source = np.arange(len(kinds))
    source[met] = len(kinds) + np.arange(len(met))
    merged = pa.concat_tables([entries, rows]) if len(met) else entries
    return Resolved(~deleted, deleted, merged.take(pa.array(source[~deleted])))


def _as_entries(stored: pa.Table, schema: pa.Schema) -> pa.Table:
    """Stored rows with the columns of entries: they are rows, and bring every field."""
    count = stored.num_rows
    kinds = pa.array(np.full(count, VersionKind.ROW, np.int8))
    columns = {KIND: kinds} | {name: stored[name] for name in schema.names if name in stored.column_names}
    brought = pa.array(np.ones(count, np.bool_))
    return pa.table({name: columns.get(name, brought) for name in schema.names})


def _changes_nothing(codes: Rows, kinds: npt.NDArray[np.int8], alive: Mask, last_delete: Rows) -> Mask:
    """Deletes of delete blocks that follow a delete of all that is older: that one stays, with no ordering value."""
    suspects: Mask = alive & (kinds == VersionKind.DELETE_RECORD) & (last_delete[codes] >= 0)
    if not suspects.any():
        return suspects
    first_other = np.full(len(last_delete), len(codes))
    others = np.flatnonzero(alive & (kinds != VersionKind.DELETE_RECORD))[::-1]
    first_other[codes[others]] = others
    ineffective: Mask = suspects & (np.arange(len(codes)) < first_other[codes])
    return ineffective


def _fold_mixing(
    entries: pa.Table, living: Rows, codes: Rows, last_delete: Rows, rule: FoldRule, overlay: Overlay
) -> pa.Table:
    """Fold where fields of several versions are mixed.

    A version that wins at its turn puts its fields over those before. One that loses to a row fills what is missing
    still; one that loses to a delete is dropped. So of each field the last winner's value counts that brings it, or
    else the first loser's. A delete that wins at its turn ends all that is before it.
    """
    order = living[np.argsort(codes[living], kind="stable")]
    wins = _winners_at_their_turn(entries, order, codes, rule)
    kinds = np.asarray(entries[KIND].chunk(0))
    # The first version of a key wins, so that the last winner up to a version is one of the same key.
    last_winner = np.maximum.accumulate(np.where(wins, np.arange(len(order)), 0))
    meets_row = wins | (kinds[order[last_winner]] == VersionKind.ROW)
    winner = last_delete.copy()
    winner[codes[order[wins]]] = order[wins]
    last_end = last_delete
    ends = order[wins & (kinds[order] != VersionKind.ROW)]
    last_end[codes[ends]] = ends
    ends_as_row = kinds[winner] == VersionKind.ROW
    mixed = (order > last_end[codes[order]]) & (kinds[order] == VersionKind.ROW) & ends_as_row[codes[order]] & meets_row
    order, wins = order[mixed], wins[mixed]
    columns: list[pa.ChunkedArray] = []
    plain = entries.take(pa.array(winner))
    for name in entries.column_names:
        if name == KIND:
            columns.append(plain[name])
            continue
        has = np.asarray(entries[name]) if name.startswith(HAS) else overlay.brings(entries, name)
        if has is None:
            columns.append(plain[name])
            continue
        source = winner.copy()
        losers = order[~wins & has[order]][::-1]
        source[codes[losers]] = losers
        winners = order[wins & has[order]]
        source[codes[winners]] = winners
        columns.append(entries[name].take(pa.array(source)))
    return pa.Table.from_arrays(columns, schema=entries.schema)


def _winners_at_their_turn(entries: pa.Table, order: Rows, codes: Rows, rule: FoldRule) -> Mask:
    """Which entries, sorted by key, are not outranked by one before them of the same key."""
    if not rule.decides_by_order:
        return np.ones(len(order), np.bool_)
    ranks = ordering_ranks(entries, rule.merger.ordering_columns)[order]
    _, dense = np.unique(ranks, return_inverse=True)
    height = codes[order] * (len(order) + 1) + dense
    highest = np.maximum.accumulate(height)
    wins: Mask = height >= highest
    return wins


def _fold_custom(entries: pa.Table, living: Rows, codes: Rows, last_delete: Rows, rule: FoldRule) -> pa.Table:
    """Fold by the caller's function, all keys at once: round n merges the n-th version of each."""
    order = living[np.argsort(codes[living], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    slots = codes[order[starts]]
    follows_delete = last_delete[slots] >= 0
    first = last_delete
    first[slots] = order[starts]
    current = entries.take(pa.array(first))
    kinds = np.array(current[KIND].combine_chunks())
    kinds[slots[follows_delete]] = VersionKind.ROW_ALONE
    current = current.set_column(0, current.schema.field(0), pa.array(kinds))
    for turn in range(1, int(lengths.max(initial=0))):
        active = lengths > turn
        newer = entries.take(pa.array(order[starts[active] + turn]))
        folded = _combine(current.take(pa.array(slots[active])), newer, rule)
        where = np.arange(current.num_rows)
        where[slots[active]] = current.num_rows + np.arange(folded.num_rows)
        current = pa.concat_tables([current, folded]).take(pa.array(where))
    return current


def _combine(older: pa.Table, newer: pa.Table, rule: FoldRule) -> pa.Table:
    """One round of `_fold_custom`: newer rows on older entries; on a delete the newer row stays as it is."""
    older_kinds = np.asarray(older[KIND].combine_chunks())
    merges = is_row(older_kinds)
    rows, gone = _call(older.filter(pa.array(merges)), newer.filter(pa.array(merges)), rule)
    kinds = np.where(older_kinds == VersionKind.ROW, np.int8(VersionKind.ROW), np.int8(VersionKind.ROW_ALONE)).astype(
        np.int8
    )
    kinds[np.flatnonzero(merges)[gone]] = VersionKind.DELETE
    where = np.arange(newer.num_rows)
    where[merges] = newer.num_rows + np.arange(rows.num_rows)
    combined = pa.concat_tables([newer, rows]).take(pa.array(where))
    return combined.set_column(0, combined.schema.field(0), pa.array(kinds))


def _call(older: pa.Table, newer: pa.Table, rule: FoldRule) -> tuple[pa.Table, Mask]:
    """The caller's function on rows of the same keys: the merged entries, and which of them it deletes.

    Of fields that the newer row does not bring the function sees the older value; its answer counts for the fields that
    one of the two brings. Meta columns are the newer row's.
    """
    assert rule.merger.function is not None
    if newer.num_rows == 0:
        return newer, np.zeros(0, np.bool_)
    if rule.is_partial:
        newer = Overlay().over(_as_entries(older, newer.schema), newer, np.ones(newer.num_rows, np.bool_))
    names = [name for name in newer.column_names if name not in (KIND, *META_FIELDS) and not name.startswith(HAS)]
    answer = rule.merger.function(older.select(names), newer.select(names))
    merged, gone = answer if isinstance(answer, tuple) else (answer, None)
    if not isinstance(merged, pa.Table) or merged.num_rows != newer.num_rows:
        raise ValueError(f"the merger must return a table of {newer.num_rows} rows, one for each that it got")
    columns = [_answered(merged, newer, name) if name in names else newer[name] for name in newer.column_names]
    deleted = np.zeros(newer.num_rows, np.bool_) if gone is None else np.asarray(pc.fill_null(gone, False))
    return pa.Table.from_arrays(columns, schema=newer.schema), deleted


def _answered(merged: pa.Table, newer: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of the function's answer, null where no version of the row brings it."""
    column = merged[name].cast(newer.schema.field(name).type)
    if HAS + name not in newer.column_names or pc.all(newer[HAS + name]).as_py():
        return column
    return column.take(pa.array(np.arange(newer.num_rows), mask=~np.asarray(newer[HAS + name])))


class LogFold:
    """Folds entries as they come. Memory: one entry per key, and as much again of what came since."""

    def __init__(self, schema: pa.Schema, rule: FoldRule, *, pending_bytes: int = 16 * 1024 * 1024) -> None:
        """`pending_bytes`: what may wait to be folded at least."""
        self.rule = rule
        self._schema = schema
        self._folded: pa.Table | None = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._pending_bytes_min = pending_bytes

    def add(self, entries: pa.Table) -> None:
        """Entries later than all before."""
        self._pending.append(entries)
        self._pending_bytes += entries.nbytes
        if self._pending_bytes >= max(self._pending_bytes_min, self._folded_bytes):
            self.result()

    @property
    def held_bytes(self) -> int:
        """Arrow bytes held."""
        return self._folded_bytes + self._pending_bytes

    @property
    def _folded_bytes(self) -> int:
        return 0 if self._folded is None else int(self._folded.nbytes)

    def result(self) -> pa.Table:
        """One entry per key of all that was added."""
        parts = [*([] if self._folded is None else [self._folded]), *self._pending]
        if self._pending or self._folded is None:
            whole = pa.concat_tables(parts) if parts else self._schema.empty_table()
            self._folded = fold(whole, self.rule).combine_chunks()
            self._pending, self._pending_bytes = [], 0
        return self._folded

    def drain(self) -> Iterator[pa.Table]:
        """What `result` gives, which is not held any longer."""
        whole = self.result()
        self._folded = None
        yield whole


def mode_replaces_all(rule: FoldRule) -> bool:
    """Whether any logged version of a record replaces the stored one whole, whatever the values of the two."""
    return (
        rule.merger.mode is not MergeMode.CUSTOM
        and rule.merger.function is None
        and not rule.decides_by_order
        and rule.overlay is None
    )
