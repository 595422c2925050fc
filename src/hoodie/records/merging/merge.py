"""Merge two versions of a record: by event time, by commit time, or with a function of the caller.

Implements docs/format/table.md §6.4. All functions work on aligned rows of whole Arrow tables. Where the versions lack
columns, the winner gets the fields that it does not bring from the loser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.writes import PYTHON_MERGER
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.schema.table_schema import columns_with_defaults
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import (
    EVENT_TIME_PAYLOAD_CLASS,
    MergeMode,
    PartialUpdateMode,
    current_class_name,
)
from hoodie.format.table.table_config import TableConfig
from hoodie.records.change import IS_DELETED, KIND, LEADING, PARTITION_PATH, RECORD_KEY, Kind, flags_deletes
from hoodie.records.merging.merge_function import answered, merge_by
from hoodie.records.merging.mergers import MergeFunction, registered_merger

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Merged:
    """Outcome of a merge, row by row: `replaced` where a row is written, `deleted` where the key is deleted.

    `rows` holds the row to write for each true value of `replaced`, in order, with the columns of the newer rows.
    """

    replaced: Mask
    deleted: Mask
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class RecordMerger:
    """The merge rule of one table. Picklable if the function is picklable.

    `pre_combines`: the ordering fields decide among versions in logs, as in Hudi 0.x (docs/format/table.md §6.6).
    `deletes_win`: a late delete deletes the stored row. `overlay`: how fields of two versions are mixed; None if they
    are not mixed.
    """

    mode: MergeMode
    ordering_fields: tuple[str, ...] = ()
    function: MergeFunction | None = None
    pre_combines: bool = False
    deletes_win: bool = False
    overlay: Overlay | None = None

    @property
    def ordering_columns(self) -> tuple[str, ...]:
        """The columns that decide whether a version wins against the stored row; empty if it always wins."""
        return self.ordering_fields if self.mode is MergeMode.EVENT_TIME_ORDERING else ()

    @property
    def batch_ordering(self) -> tuple[str, ...]:
        """The columns that decide which of two records of a batch is kept; empty if the later one is."""
        return () if self.function is not None else self.ordering_fields

    @property
    def logged_ordering(self) -> tuple[str, ...]:
        """The columns that decide which of two logged versions wins; empty if the later one always wins."""
        return self.ordering_fields if self.pre_combines else self.ordering_columns

    @property
    def merges_batches(self) -> bool:
        """Whether records of a batch with the same key are merged one after the other, so that whole rows must meet."""
        return self.function is not None or (self.overlay is not None and self.overlay.mixes_batches)

    def merge(self, older: pa.Table, newer: pa.Table) -> Merged:
        """Merge aligned rows: `older` has the table's data columns, `newer` is a change table with as many rows.

        Event time: the newer row wins if its ordering value is equal or higher; a commit-time delete always wins.
        """
        kinds = _kinds(newer)
        wins = self.newer_wins(older, newer) | self.always_deletes(kinds)
        deleted = wins & (kinds != Kind.ROW)
        replaced = wins & (kinds == Kind.ROW)
        if self.overlay is not None:
            replaced |= (kinds == Kind.ROW) & self.overlay.fills(older, newer)
            mask = pa.array(replaced)
            rows = _mixed(older.filter(mask), newer.filter(mask), wins[replaced], self.overlay)
            return Merged(replaced, deleted, rows)
        if self.function is None or not replaced.any():
            return Merged(replaced, deleted, newer if replaced.all() else newer.filter(pa.array(replaced)))
        return self._merge_custom(older, newer, replaced, deleted)

    def reduce(self, changes: pa.Table, *, across_partitions: bool = False) -> pa.Table:
        """Keep one change per partition path and record key (or per record key); later rows are newer.

        The winners keep their order. Memory: the changes, and a few numbers for each change.
        """
        codes = _codes(changes, across_partitions)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        lengths = np.diff(starts, append=len(order))
        if len(starts) == len(order):
            return changes
        if self.merges_batches:
            return self._reduce_in_turns(changes, order, starts, lengths)
        if self.batch_ordering:
            order = _order_by(changes, codes, self.batch_ordering)
        winners = np.sort(order[starts + lengths - 1])
        return changes.take(pa.array(winners))

    def newer_wins(self, older: pa.Table, newer: pa.Table) -> Mask:
        """Mark the rows where the newer version wins against the stored row."""
        return not_outranked(older, newer, self.ordering_columns)

    def always_deletes(self, kinds: npt.NDArray[np.int8]) -> Mask:
        """Mark the changes of these kinds that delete the stored row, whatever its ordering value is."""
        deletes_win = self.deletes_win or (self.overlay is not None and self.overlay.is_payload)
        marks: Mask = kinds != Kind.ROW if deletes_win else kinds == Kind.DELETE
        return marks

    def _merge_custom(self, older: pa.Table, newer: pa.Table, replaced: Mask, deleted: Mask) -> Merged:
        """Merge the rows that are replaced with the caller's function."""
        assert self.function is not None
        picked = newer.filter(pa.array(replaced))
        data = [name for name in picked.column_names if name not in LEADING]
        merged, gone = merge_by(self.function, older.select(data).filter(pa.array(replaced)), picked.select(data))
        rows = pa.Table.from_arrays(
            [
                *(picked[name] for name in LEADING),
                *(answered(merged[name], picked.schema.field(name)) for name in data),
            ],
            schema=picked.schema,
        )
        if gone is None:
            return Merged(replaced, deleted, rows)
        gone_mask = np.asarray(gone)
        positions = np.flatnonzero(replaced)
        replaced, deleted = replaced.copy(), deleted.copy()
        replaced[positions[gone_mask]] = False
        deleted[positions[gone_mask]] = True
        return Merged(replaced, deleted, rows.filter(pa.array(~gone_mask)))

    def _reduce_in_turns(self, changes: pa.Table, order: Rows, starts: Rows, lengths: Rows) -> pa.Table:
        """Merge duplicates pairwise, all keys at once: round n merges the n-th duplicate of each key."""
        single = changes.take(pa.array(order[starts[lengths == 1]]))
        starts, lengths = starts[lengths > 1], lengths[lengths > 1]
        current = changes.take(pa.array(order[starts]))
        for turn in range(1, int(lengths.max())):
            active = np.flatnonzero(lengths > turn)
            newer = changes.take(pa.array(order[starts[active] + turn]))
            older = current.take(pa.array(active))
            folded = self._mix(older, newer) if self.overlay is not None else self._call(older, newer)
            current = with_rows(current, active, folded)
        return pa.concat_tables([single, current])

    def _call(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """Merge aligned changes with the caller's function where both are rows; otherwise the newer change is kept."""
        both_rows = _are_rows(older) & _are_rows(newer)
        rows = newer.filter(pa.array(both_rows))
        merged = self.merge(older.filter(pa.array(both_rows)), rows)
        kinds = np.where(merged.deleted, np.int8(Kind.DELETE_IN_ORDER), np.int8(Kind.ROW))
        folded = with_rows(rows, merged.replaced, merged.rows)
        return with_rows(newer, both_rows, folded.set_column(0, folded.schema.field(0), pa.array(kinds)))

    def _mix(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """Merge aligned changes; fields are mixed where both are rows.

        `PartialUpdateAvroPayload` (docs/format/table.md §6.5): a losing delete fills fields too, and a winning row is
        mixed with a delete. A delete that outranks a later row is dropped.
        """
        assert self.overlay is not None
        by_order = not_outranked(older, newer, self.batch_ordering)
        older_rows, newer_rows = _are_rows(older), _are_rows(newer)
        unconditional = (_kinds(older) == Kind.DELETE) | (_kinds(newer) == Kind.DELETE)
        wins = by_order | unconditional
        mixes = older_rows & newer_rows
        if self.overlay.is_payload:
            mixes = ~unconditional & np.where(by_order, newer_rows, older_rows)
            wins |= ~older_rows
        plain = _pick_rows(older, newer, wins)
        mask = pa.array(mixes)
        mixed = _mixed(older.filter(mask), newer.filter(mask), wins[mixes], self.overlay)
        if self.overlay.is_payload and flags_deletes(mixed.schema):
            # A row without a mark gets the mark of the delete.
            kinds = np.where(_mask(mixed[IS_DELETED]), np.int8(Kind.DELETE_IN_ORDER), np.int8(Kind.ROW))
            mixed = mixed.set_column(0, mixed.schema.field(0), pa.array(kinds))
        return with_rows(plain, mixes, mixed)


def _kinds(changes: pa.Table) -> npt.NDArray[np.int8]:
    return np.asarray(changes[KIND].combine_chunks())


def _are_rows(changes: pa.Table) -> Mask:
    rows: Mask = _kinds(changes) == Kind.ROW
    return rows


def with_rows(rows: pa.Table, places: Rows | Mask, others: pa.Table) -> pa.Table:
    """Return the rows with `others` at these places: their numbers, or a mask of them."""
    where = np.arange(rows.num_rows)
    where[places] = rows.num_rows + np.arange(others.num_rows)
    return pa.concat_tables([rows, others]).take(pa.array(where))


def _pick_rows(older: pa.Table, newer: pa.Table, wins: Mask) -> pa.Table:
    return with_rows(older, wins, newer.filter(pa.array(wins)))


def _mixed(older: pa.Table, newer: pa.Table, wins: Mask, overlay: Overlay) -> pa.Table:
    """Return aligned rows with mixed data columns, as changes; stored rows lack the leading columns of changes."""
    data = [name for name in newer.column_names if name not in LEADING]
    fields = overlay.over(older.select(data), newer.select(data), wins)
    plain = newer if older.schema.get_field_index(KIND) < 0 else _pick_rows(older, newer, wins)
    columns = [fields[name] if name not in LEADING else plain[name] for name in newer.column_names]
    return pa.Table.from_arrays(columns, schema=newer.schema)


def _codes(changes: pa.Table, across_partitions: bool) -> Rows:
    """Return one integer per row; rows with equal keys have equal integers."""
    keys = changes[RECORD_KEY].combine_chunks().dictionary_encode()
    codes: Rows = np.asarray(keys.indices).astype(np.int64)
    if not across_partitions:
        partitions = changes[PARTITION_PATH].combine_chunks().dictionary_encode()
        codes = codes * max(len(partitions.dictionary), 1) + np.asarray(partitions.indices)
    return codes


def delete_ordering(merger: RecordMerger, schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns whose values decide whether a logged delete wins; empty if it always wins.

    Hudi 0.x ignores a value of another Java class than the row's value: a string, date, decimal or binary.
    """
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_boolean)
    ordering = merger.logged_ordering
    types = [schema.field(name).type for name in ordering]
    counts = not merger.pre_combines or all(any(is_kind(found) for is_kind in kinds) for found in types)
    return ordering if counts else ()


def not_outranked(older: pa.Table, newer: pa.Table, ordering: tuple[str, ...]) -> Mask:
    """Mark the aligned rows whose newer version has equal or higher ordering values; all if no columns order them."""
    wins = np.ones(older.num_rows, np.bool_)
    undecided = wins.copy()
    for field in ordering:
        greater, equal = _compare(newer[field], older[field])
        wins = np.where(undecided, greater | equal, wins)
        undecided &= equal
    return wins


def ordering_ranks(rows: pa.Table, ordering_fields: tuple[str, ...]) -> Rows:
    """Return one number per row that sorts like the row's ordering values; equal values have equal numbers.

    Null is the lowest value; in an int column it equals 0, as in the JVM.
    """
    if len(ordering_fields) == 1:
        plain = rows[ordering_fields[0]]
        if not plain.null_count and (pa.types.is_integer(plain.type) or pa.types.is_timestamp(plain.type)):
            return np.asarray(plain.cast(pa.int64()))
    columns = _ordering_columns(rows, ordering_fields)
    ranks: Rows = np.zeros(rows.num_rows, np.int64)
    if columns:
        order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
        differs = np.zeros(rows.num_rows, np.bool_)
        for column in columns.values():
            in_order = column.take(order)
            differs[1:] |= _mask(pc.not_equal(in_order.slice(1), in_order.slice(0, max(len(in_order) - 1, 0))))
        ranks[np.asarray(order)] = np.cumsum(differs)
    return ranks


def _order_by(changes: pa.Table, codes: Rows, ordering_fields: tuple[str, ...]) -> Rows:
    """Return row numbers sorted by key, then ordering values (compared as in `_compare`), then input position."""
    columns = {"#code": pa.array(codes), "#kind": pc.equal(changes[KIND], int(Kind.DELETE)).cast(pa.int8())}
    columns |= _ordering_columns(changes, ordering_fields)
    columns["#row"] = pa.array(np.arange(len(codes)))
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    return np.asarray(order).astype(np.int64)


def _ordering_columns(rows: pa.Table, ordering_fields: tuple[str, ...]) -> dict[str, pa.ChunkedArray]:
    """Return the columns to sort by: for each ordering field whether it is set, then its value."""
    columns: dict[str, pa.ChunkedArray] = {}
    for number, field in enumerate(ordering_fields):
        values = rows[field]
        if pa.types.is_int32(values.type):
            values = pc.fill_null(values, 0)
        columns[f"#valid{number}"] = pc.is_valid(values).cast(pa.int8())
        columns[f"#value{number}"] = _sortable(values)
    return columns


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that sort in Arrow as the JVM compares the ordering values; nulls stay null.

    Floats: -0.0 is below 0.0 and NaN is the highest, as in `Double.compare`. Binary: bytes are signed. Booleans: false
    is first.
    """
    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        return pa.chunked_array([_float_ranks(chunk) for chunk in column.chunks], _RANK_TYPES[column.type.bit_width])
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.chunked_array([_signed_bytes(chunk) for chunk in column.chunks], column.type)
    return column


_RANK_TYPES = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _float_ranks(floats: pa.Array) -> pa.Array:
    """Return the bits of floats as integers that sort like the floats."""
    rank_type = _RANK_TYPES[floats.type.bit_width].to_pandas_dtype()
    values = np.asarray(floats.fill_null(0.0)).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(rank_type)
    ranks = np.where(bits < 0, bits ^ np.iinfo(rank_type).max, bits)
    return pa.array(ranks, mask=np.asarray(floats.is_null()) if floats.null_count else None)


def _signed_bytes(texts: pa.Array) -> pa.Array:
    """Return the byte strings with the top bit of every byte inverted, so that 0x80 sorts before 0x00."""
    validity, offsets, data = texts.buffers()
    if data is None:
        return texts
    turned = pa.py_buffer((np.frombuffer(data, np.uint8) ^ 0x80).tobytes())
    buffers = [validity, offsets, turned]
    return pa.Array.from_buffers(texts.type, len(texts), buffers, texts.null_count, texts.offset)


def _compare(newer: pa.ChunkedArray, older: pa.ChunkedArray) -> tuple[Mask, Mask]:
    """Compare aligned ordering values: return (greater, equal). Null is the lowest value; in an int column it equals 0.

    The JVM reads a null as the Integer 0, and fails if the column has another type.
    """
    if pa.types.is_int32(newer.type):
        newer, older = pc.fill_null(newer, 0), pc.fill_null(older, 0)
    newer, older = _sortable(newer), _sortable(older)
    greater = np.asarray(pc.fill_null(pc.greater(newer, older), False))
    equal = np.asarray(pc.fill_null(pc.equal(newer, older), False))
    if newer.null_count or older.null_count:
        newer_null, older_null = _mask(pc.is_null(newer)), _mask(pc.is_null(older))
        greater = greater | (~newer_null & older_null)
        equal = equal | (newer_null & older_null)
    return greater, equal


def _mask(values: pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(values, False))


def table_merger(config: TableConfig, function: MergeFunction | None = None) -> RecordMerger:
    """Return the table's merge rule; a custom rule uses `function`, by default the registered function.

    Raises: UnsupportedError for a JVM merger, and for ordering fields inside structs; InvalidConfigError if the Python
    merger is not registered.
    """
    mode, by_payload = config.merge_rule.mode, config.merge_mode is MergeMode.CUSTOM
    nested = [name for name in config.ordering_fields if "." in name]
    if nested and mode is not MergeMode.COMMIT_TIME_ORDERING:
        raise UnsupportedError(
            f"the ordering field {nested[0]!r} of table {config.name!r} is inside a struct, which this release does "
            "not support; write to the table with JVM Hudi"
        )
    if mode is not MergeMode.CUSTOM:
        # Hudi 0.x reads only this name. Later releases, which choose otherwise, store another one.
        pre_combines = config.version.pre_combines and bool(config.raw.get(keys.PRECOMBINE_FIELD)) and not nested
        by_order = mode is MergeMode.EVENT_TIME_ORDERING or pre_combines or (by_payload and not nested)
        ordering = config.ordering_fields if by_order else ()
        # The class of Hudi 0.x compares ordering values of rows only.
        deletes_win = pre_combines and current_class_name(config.payload_class or "") == EVENT_TIME_PAYLOAD_CLASS
        overlay = overlay_of(config)
        return RecordMerger(mode, ordering, pre_combines=pre_combines, deletes_win=deletes_win, overlay=overlay)
    name = PYTHON_MERGER.get(config.raw)
    if not name:
        raise UnsupportedError(
            f"table {config.name!r} merges with {config.merge_rule.merger or config.payload_class!r}, which exists "
            "only in JVM Hudi; write to the table with JVM Hudi, or create a table with a Python merger"
        )
    return RecordMerger(mode, config.ordering_fields, function or registered_merger(name))


def overlay_of(config: TableConfig) -> Overlay | None:
    """Return how the table mixes fields of two versions; None if it does not."""
    rule, has_payload = config.merge_rule, config.version.stores_payload_class
    if rule.partial_update_mode is None:
        return None
    return Overlay(
        rule.partial_update_mode,
        rule.unavailable_value,
        losers_fill=not has_payload or rule.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS,
        mixes_batches=not has_payload or rule.newest_meta_fields,
        is_payload=rule.newest_meta_fields,
    )


def check_defaults(config: TableConfig, avro: Callable[[], str]) -> None:
    """Refuse a rule that keeps a stored value where a row has the column's default, if a default is another than null.

    `avro` returns the text of the table's schema. Raises: UnsupportedError that names the columns.
    """
    ignores = config.merge_rule.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS
    found = columns_with_defaults(avro()) if ignores else []
    if found:
        raise UnsupportedError(
            f"table {config.name!r} keeps the stored value where a row has the default of its column (partial update "
            f"mode {PartialUpdateMode.IGNORE_DEFAULTS}), and the default of {', '.join(map(repr, found))[:500]} is not "
            "null, which this release does not merge; use JVM Hudi"
        )


def fitted_merger(merger: RecordMerger, schema: pa.Schema, config: TableConfig) -> RecordMerger:
    """Return the merger for the columns of a table: without ordering fields that do not exist, if it can do without.

    Raises: InvalidConfigError that names the column, if stored rows are merged by it.
    """
    missing = [name for name in merger.batch_ordering if schema.get_field_index(name) < 0]
    if missing and not merger.ordering_columns:
        return replace(merger, ordering_fields=(), pre_combines=False)
    if missing:
        raise InvalidConfigError(
            f"table {config.name!r}: ordering field {missing[0][:100]!r} expected among its columns, found "
            f"{', '.join(schema.names)[:500]}; correct hoodie.table.ordering.fields, or add the column"
        )
    return merger


HAS = "_hoodie_has:"
"""Prefix of the boolean columns that mark the rows that bring a field; all rows bring a field without such a column."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """The rule that decides whether a row brings a field. Without a mode, the HAS columns decide.

    With IGNORE_DEFAULTS a row does not bring a null: null is the default of every nullable column. With
    FILL_UNAVAILABLE a row does not bring a text or byte string that equals `unavailable_value`.

    `losers_fill`: a version that loses against the stored row fills the fields that the stored row does not bring.
    `mixes_batches`: records of a batch with the same key are mixed too. `is_payload`: the rule of
    `PartialUpdateAvroPayload`, in which every delete wins against the row of a base file that is written anew.
    """

    mode: PartialUpdateMode | None = None
    unavailable_value: str | None = None
    losers_fill: bool = True
    mixes_batches: bool = False
    is_payload: bool = False

    def brings(self, rows: pa.Table, name: str) -> Mask | None:
        """Mark the rows that bring the field; return None if all rows do."""
        column = rows[name]
        if self.mode is PartialUpdateMode.IGNORE_DEFAULTS:
            return np.asarray(column.is_valid()) if column.null_count else None
        if self.mode is PartialUpdateMode.FILL_UNAVAILABLE:
            is_marked = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
            if self.unavailable_value is None or not is_marked:
                return None
            marker = pa.scalar(self.unavailable_value).cast(column.type)
            return np.asarray(pc.fill_null(pc.not_equal(column, marker), True))
        return np.asarray(rows[HAS + name]) if rows.schema.get_field_index(HAS + name) >= 0 else None

    def fills(self, older: pa.Table, newer: pa.Table) -> Mask:
        """Mark the aligned rows whose newer version fills a field of the older one, even if it loses."""
        found = np.zeros(older.num_rows, np.bool_)
        for name in older.column_names if self.losers_fill else ():
            older_has, newer_has = self.brings(older, name), self.brings(newer, name)
            if older_has is not None:
                found |= ~older_has & (True if newer_has is None else newer_has)
        return found

    def over(self, older: pa.Table, newer: pa.Table, wins: Mask) -> pa.Table:
        """Mix aligned rows: each field gets the winner's value, or the loser's if only the loser brings the field.

        `wins` is true where the newer row wins. The result has the columns of `newer`.
        """
        rows = np.arange(newer.num_rows)
        columns: list[pa.ChunkedArray] = []
        for name in newer.column_names:
            if name.startswith(HAS):
                older_has = self.brings(older, name.removeprefix(HAS))
                has = np.ones(len(rows), np.bool_) if older_has is None else older_has | np.asarray(newer[name])
                columns.append(pa.chunked_array([pa.array(has)]))
                continue
            newer_has, older_has = self.brings(newer, name), self.brings(older, name)
            picks = wins.copy()
            if newer_has is not None:
                picks &= newer_has if older_has is None else (newer_has | ~older_has)
            if older_has is not None:
                picks |= ~wins & ~older_has & (True if newer_has is None else newer_has)
            columns.append(_pick(older[name], newer[name], picks, rows))
        return pa.table(columns, schema=newer.schema)


def _pick(older: pa.ChunkedArray, newer: pa.ChunkedArray, picks: Mask, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the newer value where `picks` is true, else the older value."""
    if picks.all():
        return newer
    both = pa.chunked_array([*older.chunks, *newer.chunks], newer.type)
    return both.take(pa.array(np.where(picks, rows + len(rows), rows)))
