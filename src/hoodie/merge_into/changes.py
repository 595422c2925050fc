"""Compute the changes of a merge in this process, from Arrow data; check whether every Spark session computes the same.

The record keys of the source are looked up, so that only files that can hold them are read. The whole table is read for
a clause for stored rows that no source row matches, and if `on` is not the equality of the columns that name a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import RecordKeyError, SchemaMismatchError, UnsupportedError
from hoodie.format.schema.arrow_types import blanks
from hoodie.format.schema.conform import conform
from hoodie.format.schema.evolution import missing_paths
from hoodie.merge_into.clauses import Clause, Group
from hoodie.merge_into.matching import Equality
from hoodie.merge_into.plan import MergePlan
from hoodie.read.local import read_table
from hoodie.read.lookup import key_columns, key_table, plan_lookup
from hoodie.read.plan import ScanPlan, plan_scan
from hoodie.records.change import KIND, PARTITION_PATH, RECORD_KEY, Kind
from hoodie.records.expression import RowExpression, assigned_values
from hoodie.records.keys.key_generator import is_text
from hoodie.records.sql.alike import is_alike
from hoodie.records.sql.parse import parse_expression
from hoodie.records.sql.quoting import quoted
from hoodie.records.sql.translate import Translator

KNOWN_KEY: Final = (
    "merge: {} to insert match no stored row by `on`, but the table has their record keys, so that they would replace "
    "stored rows; match by the record key, or add a condition to the insert; nothing was committed"
)

PAIRS_MAX: Final = 20_000_000
"""Pairs of rows that this process compares for an `on` without equalities."""
_PAIRS_AT_ONCE: Final = 1 << 20


def merged_rows(plan: MergePlan, source: pa.Table, lookup: ScanPlan | None = None) -> pa.Table:
    """Return the changes: the column `KIND`, then the table's columns; with automatic keys, the stored key before them.

    `lookup`: the result of `plan_source_lookup`, if the caller has it.

    Memory: the source, the stored rows that it matches, and the changes; the whole table if it is read.

    Raises: RecordKeyError for null keys in the source, and inserts of keys that the table has; SchemaMismatchError for
    unknown or ambiguous columns, and values that do not fit; UnsupportedError for expressions that only Spark
    evaluates; ViewOvertakenError.
    """
    sides, stored = _joined(plan, source) if plan.joins else _looked_up(plan, source, lookup)
    parts = {group: _changes(plan, group, target, own) for group, (target, own) in sides.items()}
    if plan.joins and not plan.has_automatic_keys:
        _refuse_known(plan, stored, parts[Group.NOT_MATCHED])
    return pa.concat_tables([_change_schema(plan).empty_table(), *(part for found in parts.values() for part in found)])


_Places = np.ndarray[tuple[int], np.dtype[np.int64]]
_Sides: TypeAlias = Mapping[Group, tuple[pa.Table | None, pa.Table | None]]


def plan_source_lookup(plan: MergePlan, source: pa.Table) -> ScanPlan:
    """Plan the read of the stored rows that have the keys of source rows; the source needs only its key columns.

    Raises: RecordKeyError for null keys; SchemaMismatchError; ViewOvertakenError.
    """
    return plan_lookup(plan.view, _wanted(plan, source))


def _wanted(plan: MergePlan, source: pa.Table) -> pa.Table:
    """Return the names of the records that source rows match."""
    names = list(plan.source_of.values())
    return _named(plan, source.select(names).rename_columns(list(plan.source_of)) if names else source)


def _looked_up(plan: MergePlan, source: pa.Table, lookup: ScanPlan | None) -> tuple[_Sides, pa.Table]:
    """Return the rows of the table and of the source for each group, matched by their keys; and the stored rows."""
    wanted = _wanted(plan, source)
    if plan.merge.of(Group.BY_SOURCE):
        stored = _all_rows(plan)
    else:
        stored = read_table(plan_lookup(plan.view, wanted) if lookup is None else lookup)
    given, known = _names(wanted, plan), _names(stored, plan)
    places = pc.index_in(given, value_set=known)
    meets = pc.is_valid(places)
    target_rows = stored.select(plan.schema.names)
    others = pc.invert(pc.is_in(known, value_set=given))
    return {
        Group.MATCHED: (target_rows.take(places.filter(meets)), source.filter(meets)),
        Group.NOT_MATCHED: (None, source.filter(pc.invert(meets))),
        Group.BY_SOURCE: (target_rows.filter(others), None),
    }, stored


def _joined(plan: MergePlan, source: pa.Table) -> tuple[_Sides, pa.Table]:
    """Return the rows of the table and of the source for each group, joined by `on`; and the stored rows."""
    stored = _all_rows(plan)
    target_rows = stored.select(plan.stored_names)
    places, own_places = _met(plan, target_rows, source)
    return {
        Group.MATCHED: (target_rows.take(places), source.take(own_places)),
        Group.NOT_MATCHED: (None, source.take(np.setdiff1d(np.arange(source.num_rows), own_places))),
        Group.BY_SOURCE: (target_rows.take(np.setdiff1d(np.arange(stored.num_rows), places)), None),
    }, stored


def _met(plan: MergePlan, target: pa.Table, source: pa.Table) -> tuple[_Places, _Places]:
    """Return the row numbers of both sides of every pair of rows that meet by `on`, in the order of the source.

    Memory: several integers for each pair of rows that the equalities of `on` let meet.

    Raises: UnsupportedError for an `on` without equalities, if there are too many pairs of rows; as `joined_places`.
    """
    pairs = target.num_rows * source.num_rows
    if not plan.join and pairs > PAIRS_MAX:
        raise UnsupportedError(
            f"merge on {plan.merge.on[:300]!r}: no column of the table equals a column of the source, so that "
            f"{pairs:,} pairs of rows are compared, and this process compares at most {PAIRS_MAX:,}; add an equality "
            "with AND, or pass a Spark DataFrame as the source"
        )
    places, own_places = joined_places(target, source, plan.join)
    if plan.also is None:
        return places, own_places
    found = [np.zeros(0, np.bool_)]
    for start in range(0, len(places), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        rows = _side_by_side(
            {plan.merge.target: target.take(places[part]), plan.merge.source: source.take(own_places[part])}
        )
        translator = Translator(rows.schema, joined=2)
        condition = RowExpression.parse(plan.also, rows.schema, as_type=pa.bool_(), translator=translator)
        found.append(np.asarray(pc.fill_null(condition.values(rows), False)))
    meets = np.concatenate(found)
    return places[meets], own_places[meets]


def _side_by_side(sides: Mapping[str, pa.Table]) -> pa.Table:
    """Return the columns of both sides, each with the name of its side before its own.

    Not a struct for each side: Arrow would visit all of its fields for each expression.
    """
    return pa.Table.from_arrays(
        [column for side in sides.values() for column in side.columns],
        names=[f"{name}.{column}" for name, side in sides.items() for column in side.column_names],
    )


def _named(plan: MergePlan, rows: pa.Table) -> pa.Table:
    """Return the record keys of rows, and the partition paths if they count."""
    wanted = key_table(key_columns(plan.view), rows)
    return wanted if plan.by_path else wanted.select([RECORD_KEY])


def _refuse_known(plan: MergePlan, stored: pa.Table, inserts: list[pa.Table]) -> None:
    """Raises: RecordKeyError if an insert has the key of a stored row, which it would replace."""
    for rows in inserts:
        if rows.num_rows:
            known = pc.sum(pc.is_in(_names(_named(plan, rows), plan), value_set=_names(stored, plan))).as_py()
            if known:
                raise RecordKeyError(KNOWN_KEY.format(f"{known:,} rows"))


def _all_rows(plan: MergePlan) -> pa.Table:
    return read_table(plan_scan(plan.view, columns=[RECORD_KEY, PARTITION_PATH, *plan.schema.names]))


def _names(rows: pa.Table, plan: MergePlan) -> pa.Array:
    """Return one text for each row that names its record: the key, behind the partition path if that counts."""
    keys = rows[RECORD_KEY].combine_chunks()
    if not plan.by_path:
        return keys
    return pc.binary_join_element_wise(rows[PARTITION_PATH].combine_chunks(), keys, "\n")


def _changes(plan: MergePlan, group: Group, target: pa.Table | None, source: pa.Table | None) -> list[pa.Table]:
    """Return the changes of each clause of a group; the first clause whose condition is true takes a row."""
    sides = {plan.merge.target: target, plan.merge.source: source}
    given = {name: side for name, side in sides.items() if side is not None}
    rows = _side_by_side(given)
    translator = Translator(rows.schema, joined=2)
    plain = {f"{quoted(s)}.{quoted(name)}": f"{s}.{name}" for s, side in given.items() for name in side.column_names}
    found = []
    for clause in plan.merge.of(group):
        mine = rows
        if clause.condition is not None:
            condition = RowExpression.parse(clause.condition, rows.schema, as_type=pa.bool_(), translator=translator)
            is_true = pc.fill_null(condition.values(rows), False)
            mine, rows = rows.filter(is_true), rows.filter(pc.invert(is_true))
        found.append(_projected(plan, clause, mine, translator, plain))
        if clause.condition is None:
            break
    return found


def _projected(
    plan: MergePlan, clause: Clause, rows: pa.Table, translator: Translator, plain: Mapping[str, str]
) -> pa.Table:
    """Return the changes of the rows that a clause takes. `plain`: the columns of rows that SQL texts are.

    Values are cast as an assignment to a column casts them; of a column, no value is changed.

    Raises: SchemaMismatchError for a column with a value that the type does not hold, and for a struct that lacks a
        field of the column, which would become null.
    """
    kind = Kind.DELETE if clause.deletes else Kind.ROW
    texts = plan.projection(clause)
    columns = {name: _column(text, plain, rows) for name, text in texts.items() if text is not None}
    types = {field.name: field.type for field in plan.schema}
    computed = {name: text for name, text in texts.items() if text is not None and columns[name] is None}
    values = assigned_values(computed, translator, types, rows) if computed else None
    arrays: list[pa.Array | pa.ChunkedArray] = [pa.repeat(pa.scalar(int(kind), pa.int8()), rows.num_rows)]
    if plan.has_automatic_keys:
        is_new = clause.group is Group.NOT_MATCHED
        keys = pa.nulls(rows.num_rows, pa.string()) if is_new else rows[f"{plan.merge.target}.{RECORD_KEY}"]
        arrays.append(keys.cast(pa.string()))
    for name, data_type in types.items():
        column = columns.get(name)
        if texts[name] is None:
            arrays.append(blanks(data_type, rows.num_rows, is_null=True))
        elif column is not None:
            own = column.partition(".")[2]
            _check_has_fields(plan.schema.field(name), own, rows.schema.field(column).type)
            arrays.append(_conformed(rows[column], own, data_type))
        else:
            assert values is not None
            arrays.append(values[name])
    return pa.Table.from_arrays(arrays, schema=_change_schema(plan))


def _column(text: str, plain: Mapping[str, str], rows: pa.Table) -> str | None:
    """Return the column of rows that an expression is; None for other expressions."""
    if text in plain:
        return plain[text]
    node = parse_expression(text)
    if not isinstance(node, exp.Column) or len(node.parts) != 2:
        return None
    name = ".".join(part.name for part in node.parts)
    return name if rows.schema.get_field_index(name) >= 0 else None


def _check_has_fields(field: pa.Field, column: str, values: pa.DataType) -> None:
    """Refuse structs without fields of the table's column: their stored values would become null."""
    lacking = missing_paths([field], [field.with_type(values)])
    if lacking:
        raise SchemaMismatchError(
            f"merge: the source column {column!r} of type {values} lacks {lacking}, which would become null in stored "
            "rows: add the fields, because a column is set as a whole"
        )


def _conformed(values: pa.ChunkedArray, name: str, data_type: pa.DataType) -> pa.ChunkedArray:
    if values.type == data_type:
        return values
    return conform(pa.table({name: values}), pa.schema([pa.field(name, data_type)]))[name]


def _change_schema(plan: MergePlan) -> pa.Schema:
    key = [pa.field(RECORD_KEY, pa.string())] if plan.has_automatic_keys else []
    return pa.schema([pa.field(KIND, pa.int8()), *key, *(field.with_nullable(True) for field in plan.schema)])


def joined_places(target: pa.Table, source: pa.Table, pairs: Sequence[Equality]) -> tuple[_Places, _Places]:
    """Return the row numbers of both sides of every pair of rows that meet, in the order of the source.

    Values are equal as in Spark SQL: null equals null only in a pair with `<=>`, NaN equals NaN, and 0.0 equals -0.0.
    Memory: several integers for each row. Raises: SchemaMismatchError for types that cannot be compared without a cast.
    """
    codes = np.zeros(target.num_rows + source.num_rows, np.int64)
    for pair in pairs:
        column = _codes(target[pair.target], source[pair.source], pair)
        never = (codes < 0) | (column < 0)
        codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)[1].astype(np.int64)
        codes[never] = -1
    of_target, of_source = codes[: target.num_rows], codes[target.num_rows :]
    order = np.argsort(of_target, kind="stable")
    ordered = of_target[order]
    first, last = np.searchsorted(ordered, of_source, "left"), np.searchsorted(ordered, of_source, "right")
    counts = np.where(of_source < 0, 0, last - first)
    source_places = np.repeat(np.arange(len(of_source)), counts)
    within = np.arange(len(source_places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[np.repeat(first, counts) + within], source_places


def _codes(target: pa.ChunkedArray, source: pa.ChunkedArray, pair: Equality) -> _Places:
    """Return one number for each value of the target, then of the source; equal values have equal numbers.

    A null that equals nothing has the number -1.
    """
    common = _common_type(target.type, source.type)
    if common is None:
        raise SchemaMismatchError(
            f"merge: `on` compares column {pair.target!r} of type {target.type} with source column {pair.source!r} of "
            f"type {source.type}; cast the source column"
        )
    values = pa.chunked_array([*target.cast(common).chunks, *source.cast(common).chunks], common)
    if pa.types.is_floating(common):
        # -0.0 becomes 0.0, and NaNs with other bits the same NaN.
        values = pc.if_else(pc.is_nan(values), float("nan"), pc.add(values, 0.0))
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode" if pair.null_safe else "mask")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)


def _common_type(target: pa.DataType, source: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both types are compared; None for types that have no such type."""
    for kind, common in (
        (is_text, pa.large_string()),
        (pa.types.is_signed_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
    ):
        if kind(target) and (kind(source) or pa.types.is_null(source)):
            return common
    if pa.types.is_nested(target) or (source != target and not pa.types.is_null(source)):
        return None
    return target


def compares_alike(plan: MergePlan, source: pa.Schema) -> bool:
    """Return whether the source rows meet the stored rows by their record keys, as values of the same types.

    Floats are left out: 0.0 equals -0.0, but their record keys differ.
    """
    if plan.joins:
        return False
    pairs = [(plan.schema.field(name).type, source.field(column).type) for name, column in plan.source_of.items()]
    return all(
        (stored == given and not pa.types.is_floating(stored) and not pa.types.is_nested(stored))
        or (pa.types.is_integer(stored) and pa.types.is_integer(given))
        for stored, given in pairs
    )


def computes_alike(plan: MergePlan, source: pa.Schema) -> bool:
    """Return whether the conditions and the values of all clauses are the same in every Spark session."""
    sides = {plan.merge.target: plan.schema, plan.merge.source: source}
    for clause in plan.merge.clauses:
        known = {plan.merge.source: source} if clause.group is Group.NOT_MATCHED else sides
        rows = Translator(pa.schema([pa.field(name, pa.struct(list(side))) for name, side in known.items()]))
        if clause.condition is not None and not is_alike(clause.condition, rows, pa.bool_()):
            return False
        for field, text in zip(plan.schema, plan.projection(clause).values(), strict=True):
            if text is not None and not is_alike(text, rows, field.type):
                return False
    return True
