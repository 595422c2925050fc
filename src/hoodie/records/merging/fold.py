"""Fold all logged versions of a record, oldest to newest, into one, and merge it with the stored row.

Implements docs/format/table.md §4.5, §6.4 and §6.5 on whole Arrow tables of *versions*: logged rows and deletes in log
order. The first column of such a table is the kind, another column is the record key, and the ordering columns contain
the ordering values of deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.format.avro.schema import META_FIELDS
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.change import KIND, RECORD_KEY
from hoodie.records.merging.merge import (
    HAS,
    Mask,
    Merged,
    Overlay,
    RecordMerger,
    Rows,
    ordering_ranks,
    with_rows,
)
from hoodie.records.merging.merge_function import answered, merge_by


class VersionKind(IntEnum):
    """The effect of a version on its key; the first three kinds are those of `records.change.Kind`."""

    ROW = 0
    DELETE = 1
    """Delete all older versions, whatever their ordering values."""
    DELETE_IN_ORDER = 2
    """A row that is marked as a delete, with an ordering value."""
    DELETE_RECORD = 3
    """A delete of a delete block, with an ordering value: it changes nothing if the key is deleted already."""
    ROW_ALONE = 4
    """A row that follows a delete: the merge function does not merge it with deleted versions. Only folding sets it."""


@dataclass(frozen=True, slots=True)
class FoldRule:
    """The rule for folding versions.

    `is_partial`: some versions bring only some fields, marked by HAS columns.
    """

    merger: RecordMerger
    is_partial: bool = False

    @property
    def overlay(self) -> Overlay | None:
        """How fields of two versions are mixed; None if they are not mixed. `is_partial` overrides the update mode."""
        return Overlay() if self.is_partial else self.merger.overlay

    @property
    def logged_overlay(self) -> Overlay | None:
        """As `overlay`, for two logged versions: of the payloads of Hudi 0.x, one mixes their fields."""
        if self.merger.pre_combines and self.merger.overlay is not None and not self.newest_meta_fields:
            return None
        return self.overlay

    @property
    def newest_meta_fields(self) -> bool:
        """Whether rows with mixed fields have the meta fields of the later version, even if it loses."""
        return self.merger.overlay is not None and self.merger.overlay.is_payload

    @property
    def mixes(self) -> bool:
        """Whether a winning row may have values of both versions: fields are mixed, or a function merges."""
        return self.overlay is not None or self.merger.function is not None

    @property
    def decides_by_order(self) -> bool:
        """Whether ordering values decide if a version wins against the stored row."""
        return bool(self.merger.ordering_columns)

    @property
    def replaces_all(self) -> bool:
        """Whether a logged version always replaces the whole stored row, whatever the values of the two."""
        return not (self.mixes or self.decides_by_order or self.merger.mode is MergeMode.CUSTOM)


def fold(versions: pa.Table, rule: FoldRule) -> pa.Table:
    """Fold all versions of each key into one; the keys keep the order of their first versions.

    Folding the result with later versions gives the same as folding all versions at once. Memory: the versions, and a
    few numbers for each version.
    """
    keys = versions[RECORD_KEY].combine_chunks().dictionary_encode()
    codes: Rows = np.asarray(keys.indices).astype(np.int64)
    key_count = len(keys.dictionary)
    if key_count == len(codes):
        return versions
    versions = versions.combine_chunks()
    kinds = np.asarray(versions[KIND].chunk(0))
    places = np.arange(len(codes))
    ordering = rule.merger.logged_ordering
    if rule.merger.pre_combines:
        last_delete = _last_delete_that_wins(codes, key_count, kinds, ordering_ranks(versions, ordering))
        alive = (places > last_delete[codes]) & ~_in_delete_blocks(kinds)
    else:
        last_delete = np.full(key_count, -1)
        wiping = np.flatnonzero(kinds == VersionKind.DELETE if ordering else ~is_row(kinds))
        last_delete[codes[wiping]] = wiping
        alive = places > last_delete[codes]
        if ordering:
            alive &= ~_changes_nothing(codes, kinds, alive, last_delete)
    living = np.flatnonzero(alive)
    if rule.merger.function is not None:
        return _fold_custom(versions, living, codes, last_delete, rule)
    if rule.logged_overlay is not None:
        return _fold_mixing(versions, living, codes, last_delete, rule, rule.logged_overlay)
    winners = last_delete
    if ordering:
        ranks = ordering_ranks(versions, ordering)
        living = living[np.argsort(ranks[living], kind="stable")]
    winners[codes[living]] = living
    return versions.take(pa.array(winners))


def is_row(kinds: npt.NDArray[np.int8]) -> Mask:
    """Mark the versions that are rows, not deletes."""
    rows: Mask = (kinds == VersionKind.ROW) | (kinds == VersionKind.ROW_ALONE)
    return rows


def resolve(stored: pa.Table, versions: pa.Table, rule: FoldRule) -> Merged:
    """Merge each stored row with the folded version of the same key, row by row.

    `stored` has the columns of the versions without the kind and the HAS columns. The ordering columns are enough if no
    fields are mixed and no function merges.
    """
    kinds = np.asarray(versions[KIND].combine_chunks())
    if rule.merger.function is not None:
        return _resolve_custom(stored, versions, kinds, rule)
    are_rows = kinds == VersionKind.ROW
    wins = _in_delete_blocks(kinds) if rule.merger.pre_combines else kinds == VersionKind.DELETE
    wins |= rule.merger.newer_wins(stored, versions) if rule.decides_by_order else True
    overlay = rule.overlay
    if overlay is None:
        replaced = wins & are_rows
        return Merged(replaced, wins & ~are_rows, versions if replaced.all() else versions.filter(pa.array(replaced)))
    # A stored row brings all fields, so partial versions change nothing where it wins. In the other modes a version can
    # fill its nulls or unavailable values, except with PostgresDebeziumAvroPayload.
    replaced = are_rows & wins if rule.is_partial or not overlay.losers_fill else are_rows
    mask = pa.array(replaced)
    newer = versions.filter(mask)
    rows = overlay.over(_as_versions(stored.filter(mask), versions.schema), newer, wins[replaced])
    if rule.newest_meta_fields:
        kept = [newer[name] if name in META_FIELDS else rows[name] for name in rows.column_names]
        rows = pa.Table.from_arrays(kept, schema=rows.schema)
    return Merged(replaced, wins & ~are_rows, rows)


def _resolve_custom(stored: pa.Table, versions: pa.Table, kinds: npt.NDArray[np.int8], rule: FoldRule) -> Merged:
    """Merge the stored rows with the versions that follow no delete, with the caller's function."""
    met = np.flatnonzero(kinds == VersionKind.ROW)
    rows, gone = _call(stored.take(pa.array(met)), versions.take(pa.array(met)), rule)
    deleted = ~is_row(kinds)
    deleted[met[gone]] = True
    source = np.arange(len(kinds))
    source[met] = len(kinds) + np.arange(len(met))
    merged = pa.concat_tables([versions, rows]) if len(met) else versions
    return Merged(~deleted, deleted, merged.take(pa.array(source[~deleted])))


def _as_versions(stored: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return stored rows with the columns of versions: their kind is ROW, and they bring every field."""
    count = stored.num_rows
    kinds = pa.array(np.full(count, VersionKind.ROW, np.int8))
    columns = dict(zip(stored.column_names, stored.columns, strict=True)) | {KIND: kinds}
    brought = pa.array(np.ones(count, np.bool_))
    return pa.table({name: columns.get(name, brought) for name in schema.names})


def _in_delete_blocks(kinds: npt.NDArray[np.int8]) -> Mask:
    """Mark the deletes of delete blocks: in Hudi 0.x they have no row, and delete whatever is stored."""
    deletes: Mask = (kinds == VersionKind.DELETE) | (kinds == VersionKind.DELETE_RECORD)
    return deletes


def _last_delete_that_wins(codes: Rows, key_count: int, kinds: npt.NDArray[np.int8], ranks: Rows) -> Rows:
    """Return for each key the place of its last delete that wins, by the rules of Hudi 0.x; -1 if there is none.

    A delete loses only if a row since the last delete has a greater ordering value. A row after a delete always wins.
    Round n decides about the n-th delete of all keys.
    """
    last = np.full(key_count, -1)
    deletes = _in_delete_blocks(kinds)
    if not deletes.any():
        return last
    order = np.argsort(codes, kind="stable")
    # A run is the rows of a key up to a delete, which is its last member.
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1) | np.append(False, deletes[order][:-1]))
    lowest = np.iinfo(np.int64).min
    greatest = np.maximum.reduceat(np.where(deletes, lowest, ranks)[order], starts)
    ends = order[np.append(starts[1:], len(order)) - 1]
    ending = np.flatnonzero(deletes[ends])
    ends, greatest = ends[ending], greatest[ending]
    turns = np.arange(len(ends)) - np.searchsorted(codes[ends], codes[ends])
    highest = np.full(key_count, lowest)
    for turn in range(int(turns.max()) + 1):
        mine = turns == turn
        here, before = ends[mine], np.maximum(highest[codes[ends[mine]]], greatest[mine])
        wins = (kinds[here] == VersionKind.DELETE) | (ranks[here] >= before)
        last[codes[here[wins]]] = here[wins]
        highest[codes[here]] = np.where(wins, lowest, before)
    return last


def _changes_nothing(codes: Rows, kinds: npt.NDArray[np.int8], alive: Mask, last_delete: Rows) -> Mask:
    """Mark deletes of delete blocks that follow an unconditional delete, with no other kind of version between.

    The unconditional delete is kept; it has no ordering value.
    """
    suspects: Mask = alive & (kinds == VersionKind.DELETE_RECORD) & (last_delete[codes] >= 0)
    if not suspects.any():
        return suspects
    first_other = np.full(len(last_delete), len(codes))
    others = np.flatnonzero(alive & (kinds != VersionKind.DELETE_RECORD))[::-1]
    first_other[codes[others]] = others
    ineffective: Mask = suspects & (np.arange(len(codes)) < first_other[codes])
    return ineffective


def _fold_mixing(
    versions: pa.Table, living: Rows, codes: Rows, last_delete: Rows, rule: FoldRule, overlay: Overlay
) -> pa.Table:
    """Fold where fields of several versions are mixed.

    Versions are taken in log order. A version wins if no earlier version of its key outranks it. Its fields replace
    the earlier values. A version that loses to a row fills only the fields that are still missing; a version that loses
    to a delete is dropped. So each field gets the value of the last winner that brings it, or else of the first loser
    that brings it. A delete that wins discards all earlier versions.
    """
    order = living[np.argsort(codes[living], kind="stable")]
    wins = _winners_at_their_turn(versions, order, codes, rule)
    kinds = np.asarray(versions[KIND].chunk(0))
    # The first version of a key always wins, so the last winner up to a version has the same key.
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
    plain = versions.take(pa.array(winner))
    newest = winner.copy()
    newest[codes[order]] = order
    for name in versions.column_names:
        if name == KIND:
            columns.append(plain[name])
            continue
        if rule.newest_meta_fields and name in META_FIELDS:
            columns.append(versions[name].take(pa.array(newest)))
            continue
        has = np.asarray(versions[name]) if name.startswith(HAS) else overlay.brings(versions, name)
        if has is None:
            columns.append(plain[name])
            continue
        source = winner.copy()
        losers = order[~wins & has[order]][::-1] if overlay.losers_fill else order[:0]
        source[codes[losers]] = losers
        winners = order[wins & has[order]]
        source[codes[winners]] = winners
        columns.append(versions[name].take(pa.array(source)))
    return pa.Table.from_arrays(columns, schema=versions.schema)


def _winners_at_their_turn(versions: pa.Table, order: Rows, codes: Rows, rule: FoldRule) -> Mask:
    """Mark the versions, sorted by key, that no earlier version of the same key outranks."""
    if not rule.merger.logged_ordering:
        return np.ones(len(order), np.bool_)
    ranks = ordering_ranks(versions, rule.merger.logged_ordering)[order]
    _, dense = np.unique(ranks, return_inverse=True)
    height = codes[order] * (len(order) + 1) + dense
    highest = np.maximum.accumulate(height)
    wins: Mask = height >= highest
    return wins


def _fold_custom(versions: pa.Table, living: Rows, codes: Rows, last_delete: Rows, rule: FoldRule) -> pa.Table:
    """Fold with the caller's function, all keys at once: round n merges the n-th version of each key."""
    order = living[np.argsort(codes[living], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(starts, append=len(order))
    slots = codes[order[starts]]
    follows_delete = last_delete[slots] >= 0
    first = last_delete
    first[slots] = order[starts]
    current = versions.take(pa.array(first))
    kinds = np.array(current[KIND].combine_chunks())
    kinds[slots[follows_delete]] = VersionKind.ROW_ALONE
    current = current.set_column(0, current.schema.field(0), pa.array(kinds))
    for turn in range(1, int(lengths.max(initial=0))):
        active = lengths > turn
        newer = versions.take(pa.array(order[starts[active] + turn]))
        folded = _combine(current.take(pa.array(slots[active])), newer, rule)
        current = with_rows(current, slots[active], folded)
    return current


def _combine(older: pa.Table, newer: pa.Table, rule: FoldRule) -> pa.Table:
    """Merge newer rows with older versions, one round of `_fold_custom`; a newer row that follows a delete is kept."""
    older_kinds = np.asarray(older[KIND].combine_chunks())
    merges = is_row(older_kinds)
    rows, gone = _call(older.filter(pa.array(merges)), newer.filter(pa.array(merges)), rule)
    kinds = np.where(older_kinds == VersionKind.ROW, np.int8(VersionKind.ROW), np.int8(VersionKind.ROW_ALONE))
    kinds[np.flatnonzero(merges)[gone]] = VersionKind.DELETE
    combined = with_rows(newer, merges, rows)
    return combined.set_column(0, combined.schema.field(0), pa.array(kinds))


def _call(older: pa.Table, newer: pa.Table, rule: FoldRule) -> tuple[pa.Table, Mask]:
    """Call the caller's function on rows of the same keys; return the merged versions and a mask of the deleted ones.

    For fields that the newer row does not bring, the function gets the older value. Its result is used only for the
    fields that one of the two rows brings. Meta columns are the newer row's.
    """
    assert rule.merger.function is not None
    if newer.num_rows == 0:
        return newer, np.zeros(0, np.bool_)
    if rule.is_partial:
        newer = Overlay().over(_as_versions(older, newer.schema), newer, np.ones(newer.num_rows, np.bool_))
    names = [name for name in newer.column_names if name not in (KIND, *META_FIELDS) and not name.startswith(HAS)]
    mixed = set(names)
    merged, gone = merge_by(rule.merger.function, older.select(names), newer.select(names))
    columns = [_answered(merged, newer, name) if name in mixed else newer[name] for name in newer.column_names]
    deleted = np.zeros(newer.num_rows, np.bool_) if gone is None else np.asarray(gone)
    return pa.Table.from_arrays(columns, schema=newer.schema), deleted


def _answered(merged: pa.Table, newer: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column of the function's result, null where no version of the record brings it."""
    column = merged[name]
    if newer.schema.get_field_index(HAS + name) >= 0:
        column = column.take(pa.array(np.arange(newer.num_rows), mask=~np.asarray(newer[HAS + name])))
    return answered(column, newer.schema.field(name))


class LogFold:
    """Folds versions step by step. Memory: one folded version per key, and as many bytes of versions added since."""

    def __init__(self, schema: pa.Schema, rule: FoldRule, *, pending_bytes: int = 16 * 1024 * 1024) -> None:
        """`pending_bytes`: Arrow bytes of added versions below which no fold starts."""
        self.rule = rule
        self._schema = schema
        self._folded: pa.Table | None = None
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._pending_bytes_min = pending_bytes

    def add(self, versions: pa.Table) -> None:
        """Add versions that are later than all added before."""
        self._pending.append(versions)
        self._pending_bytes += versions.nbytes
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
        """Return one folded version per key of all added versions."""
        parts = [*([] if self._folded is None else [self._folded]), *self._pending]
        if self._pending or self._folded is None:
            whole = pa.concat_tables(parts) if parts else self._schema.empty_table()
            self._folded = fold(whole, self.rule).combine_chunks()
            self._pending, self._pending_bytes = [], 0
        return self._folded

    def drain(self) -> Iterator[pa.Table]:
        """Yield what `result` returns, and release it."""
        whole = self.result()
        self._folded = None
        yield whole
