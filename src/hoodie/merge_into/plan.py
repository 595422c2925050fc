"""Plan a merge: check its clauses against the table, and find how the source rows meet the stored rows.

The rules are those of Delta's MERGE. The clauses of one kind are tried in order, and the first clause whose condition
is true decides about a row. A row for which no condition is true stays as it is. A partial upsert is a merge by the
columns that name a record, which sets the columns that the data has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD
from hoodie.format.table.merge_config import MergeMode
from hoodie.index import index_of
from hoodie.merge_into.clauses import Clause, Group, Merge
from hoodie.merge_into.matching import Equality, by_lower, known_names, matching_of, qualified
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.sql.columns import is_column
from hoodie.records.sql.parse import parse_expression, without_parens
from hoodie.records.sql.quoting import quoted
from hoodie.view.table_view import TableView
from hoodie.write.options import check_sets_nulls, checked_options


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge, checked against a view. `schema` has the table's columns.

    `source_of`: the source column that `on` compares with each column that names a record. `by_path`: whether the
    partition path is part of what names a record, because keys are unique within partitions only. `join`: what `on`
    compares, if it is not exactly the columns that name a record; empty if it is. With automatic keys no columns name a
    record, so `on` always joins, and the changes have the stored key of each row that is not inserted; `also` is the
    further condition that `on` has then.
    """

    view: TableView
    merge: Merge
    schema: pa.Schema
    source_of: Mapping[str, str]
    by_path: bool
    join: tuple[Equality, ...] = ()
    also: str | None = None

    @property
    def is_upsert(self) -> bool:
        """Whether the merge updates and inserts all source rows by their keys, with all columns."""
        return not self.joins and self.merge.is_upsert

    @property
    def joins(self) -> bool:
        """Whether `on` is not exactly the columns that name a record, so that the whole table is read."""
        return self.has_automatic_keys or bool(self.join)

    @property
    def has_automatic_keys(self) -> bool:
        """Whether stored rows are named by their `_hoodie_record_key`, and inserted rows get new keys."""
        return not self.view.config.record_key_fields

    @property
    def stored_names(self) -> list[str]:
        """The columns of the target: those of the table, behind the stored key if no columns name a record."""
        return [*([RECORD_KEY] if self.has_automatic_keys else []), *self.schema.names]

    @property
    def naming(self) -> list[str]:
        """The columns that name a record."""
        return list(_naming_columns(self.view, by_path=self.by_path))

    def projection(self, clause: Clause) -> dict[str, str | None]:
        """Return the SQL expression of every column of the changed rows; None for null."""
        target, source = quoted(self.merge.target), quoted(self.merge.source)
        if clause.deletes:
            return {name: f"{target}.{quoted(name)}" for name in self.schema.names}
        if clause.values is None:
            return {name: f"{source}.{quoted(name)}" for name in self.schema.names}
        unset = None if clause.group is Group.NOT_MATCHED else target
        kept = {name: None if unset is None else f"{unset}.{quoted(name)}" for name in self.schema.names}
        return {**kept, **clause.values}


def plan_merge(view: TableView, merge: Merge, source_names: Sequence[str], properties: Mapping[str, str]) -> MergePlan:
    """Check a merge. `source_names` are the source's columns, `properties` the options of the call.

    Raises: InvalidConfigError for clauses that contradict, or that set key columns; SchemaMismatchError for unknown
    or ambiguous columns; UnsupportedError for an `on` that is not a conjunction of equalities, unless the table has
        automatic keys.
    """
    schema, by_path = view.schema().arrow, _names_by_path(view, properties)
    _check_order(merge)
    if any(one.values is not None and one.group is not Group.NOT_MATCHED for one in merge.clauses):
        _refuse_merge_function(view, "merge with an update of some columns")
    if any(not one.deletes and one.group is not Group.NOT_MATCHED for one in merge.clauses):
        check_sets_nulls(view.config, properties, "merge with an update")
    has_automatic_keys = not view.config.record_key_fields
    found, also = matching_of(
        merge,
        [*schema.names, RECORD_KEY] if has_automatic_keys else schema.names,
        source_names,
        takes_conditions=has_automatic_keys,
    )
    names = {} if has_automatic_keys else _naming_columns(view, by_path=by_path)
    joins = has_automatic_keys or len(found) != len(names) or {one.target for one in found} != names.keys()
    key_fields = (*view.config.record_key_fields, *view.config.partition_fields)
    naming = {name.split(".")[0] for name in key_fields}
    source_of = {one.target: one.source for one in reversed(found) if one.target in naming}
    clauses = tuple(
        _qualified_clause(
            _checked(clause, merge, schema, naming, source_names, source_of, joins=joins), merge, schema, source_names
        )
        for clause in merge.clauses
    )
    merge, join = replace(merge, clauses=clauses), found if joins else ()
    plan = MergePlan(view=view, merge=merge, schema=schema, source_of=source_of, by_path=by_path, join=join, also=also)
    if not plan.is_upsert:
        _refuse_unstored_keys(view, "a merge that is no upsert of all columns")
    return plan


def plan_partial_upsert(view: TableView, names: Sequence[str], properties: Mapping[str, str]) -> MergePlan:
    """Return the plan of a partial upsert of data with these columns.

    Rows with known keys keep the stored values of other columns; in rows with new keys these are null.

    Raises: SchemaMismatchError for unknown columns, and if columns of the key, the partition path or the ordering are
        missing; UnsupportedError for automatic keys, and for other tables into which a merge is refused.
    """
    schema, by_path = view.schema().arrow, _names_by_path(view, properties)
    _refuse_merge_function(view, "partial upsert")
    check_sets_nulls(view.config, properties, "partial upsert")
    _refuse_unstored_keys(view, "partial upsert")
    named = _naming_columns(view, by_path=by_path)
    given = [name for name in names if name not in (*META_FIELDS, OPERATION_FIELD)]
    known = set(schema.names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SchemaMismatchError(
            f"partial upsert: the table has no columns {unknown}, it has {schema.names}; drop them, or add them first "
            "with an upsert of whole rows"
        )
    config = view.config
    ordering = () if config.merge_rule.mode is MergeMode.COMMIT_TIME_ORDERING else config.ordering_fields
    needed = dict.fromkeys((*config.record_key_fields, *config.partition_fields, *ordering))
    lacking = [name for name in needed if name.split(".")[0] not in given]
    if lacking:
        raise SchemaMismatchError(
            f"partial upsert: the data lacks {lacking}, columns of the record key, the partition path or the ordering, "
            f"and has {given}; add them, or set the other columns with merge or update"
        )
    values = {name: f"{quoted('s')}.{quoted(name)}" for name in given}
    clauses = tuple(Clause(group=group, values=values) for group in (Group.MATCHED, Group.NOT_MATCHED))
    on = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in named)
    merge = Merge(on=on, clauses=clauses)
    return MergePlan(view=view, merge=merge, schema=schema, source_of={name: name for name in named}, by_path=by_path)


def _refuse_unstored_keys(view: TableView, what: str) -> None:
    """Refuse a merge that compares stored keys. Raises: UnsupportedError."""
    if not view.config.populates_meta_fields:
        raise UnsupportedError(
            f"{view.store.uri('')} is a table without meta fields, whose files store no keys: expected an upsert, an "
            f"update or a delete, found {what}"
        )


def _names_by_path(view: TableView, properties: Mapping[str, str]) -> bool:
    """Return whether the partition path is part of what names a record: the index is not global.

    Raises: UnsupportedError if a merge cannot match by the columns of the path; as `expect_known_paths`.
    """
    if not view.config.record_key_fields:
        return False
    index = index_of(view, checked_options(view.config, properties))
    by_path = not index.is_global and bool(view.config.partition_fields)
    if by_path and any(table_key_generator(view.config, properties).expect_known_paths()):
        raise UnsupportedError(
            "merge: the partition paths are made from times, so that rows with other values share a partition; use "
            "upsert, or a table with a global index"
        )
    return by_path


def _naming_columns(view: TableView, *, by_path: bool) -> dict[str, None]:
    """Return the columns that name a record. Raises: UnsupportedError if a merge cannot match by columns."""
    config = view.config
    if not config.record_key_fields:
        raise UnsupportedError(
            "partial upsert: the table makes its record keys automatically, so no column of the data names a record; "
            "use merge with a condition `on`, or update, delete_where and insert"
        )
    wanted = dict.fromkeys((*config.record_key_fields, *(config.partition_fields if by_path else ())))
    if any("." in name for name in wanted):
        raise UnsupportedError(f"merge: the record key or partition has nested columns, {list(wanted)}; use upsert")
    return wanted


def _refuse_merge_function(view: TableView, call: str) -> None:
    """Refuse to write kept values of stored rows into a table that merges by a function: it would merge them again.

    Raises: UnsupportedError.
    """
    if view.config.merge_rule.mode is MergeMode.CUSTOM:
        raise UnsupportedError(
            f"{call}: the table merges rows by a function, which would merge the values that a row keeps with "
            "themselves; upsert whole rows"
        )


def _check_order(merge: Merge) -> None:
    if not merge.clauses:
        raise InvalidConfigError("merge: expected at least one clause, such as when_matched_update_all()")
    if merge.target.lower() == merge.source.lower():
        raise InvalidConfigError(f"merge: both sides have the name {merge.target!r}: choose another for one of them")
    for group in Group:
        found = merge.of(group)
        if any(clause.condition is None for clause in found[:-1]):
            raise InvalidConfigError(
                f"merge: a clause `{group.value}` without a condition is not the last of its kind, so that the clauses "
                "after it would never apply; give it a condition, or make it the last one"
            )


def _checked(
    clause: Clause,
    merge: Merge,
    schema: pa.Schema,
    naming: set[str],
    source_names: Sequence[str],
    source_of: Mapping[str, str],
    *,
    joins: bool,
) -> Clause:
    """Return the clause with the table's names of the columns that it sets. Raises: as `plan_merge`."""
    if clause.deletes:
        return clause
    if clause.values is None:
        given = set(source_names)
        lacking = [name for name in schema.names if name not in given]
        if lacking:
            raise SchemaMismatchError(
                f"merge: all columns of the table are set from the source, which lacks {lacking} and has "
                f"{list(source_names)}; add them, or name the columns to set"
            )
        unmatched = sorted(naming - source_of.keys()) if joins and clause.group is Group.MATCHED else []
        if unmatched:
            raise InvalidConfigError(
                f"merge: an update of all columns would set {unmatched}, columns of the record key or the partition "
                "path that `on` does not compare; name the columns to set, or let `on` compare these too"
            )
        is_insert = joins and clause.group is Group.NOT_MATCHED
        other = {} if is_insert else {name: column for name, column in source_of.items() if name != column}
        if other:
            raise InvalidConfigError(
                f"merge: `on` compares key columns with source columns of other names, {other}, so the columns to set "
                "must be named"
            )
        return clause
    columns = by_lower(schema.names)
    values = {_table_column(name, merge, columns): str(text) for name, text in clause.values.items()}
    if len(values) < len(clause.values):
        raise InvalidConfigError(f"merge: a clause sets a column twice: {list(clause.values)}; keep one of the names")
    if clause.group is Group.NOT_MATCHED:
        lacking = sorted(name for name in naming if name not in values)
        if lacking:
            raise InvalidConfigError(f"merge: an insert sets no value for {lacking}, columns of the key or partition")
        wrong = [name for name in source_of if not joins and not _is_match(values[name], name, merge, source_of)]
        if wrong:
            raise InvalidConfigError(
                f"merge: an insert sets {wrong} to other values than those that `on` looked up; expected "
                f"{[f'{merge.source}.{source_of[name]}' for name in wrong]}"
            )
        return Clause(group=clause.group, values=values, condition=clause.condition)
    same = {name for name in naming & values.keys() if _is_match(values[name], name, merge, source_of)}
    wrong = sorted((naming & values.keys()) - same)
    if wrong or not values:
        raise InvalidConfigError(
            f"merge: an update sets {wrong or 'no columns'}; expected columns that are not part of the record key or "
            "the partition path: delete such rows and insert them again"
        )
    kept = {name: text for name, text in values.items() if name not in same}
    return Clause(group=clause.group, values=kept, condition=clause.condition)


def _qualified_clause(clause: Clause, merge: Merge, schema: pa.Schema, source_names: Sequence[str]) -> Clause:
    """Return the clause with the name of its side before every column."""
    sides: dict[str, Sequence[str]] = {merge.target: schema.names, merge.source: source_names}
    if clause.group is not Group.MATCHED:
        del sides[merge.source if clause.group is Group.BY_SOURCE else merge.target]
    known = known_names(sides)
    values = clause.values and {name: qualified(text, sides, known, merge) for name, text in clause.values.items()}
    condition = None if clause.condition is None else qualified(clause.condition, sides, known, merge)
    return replace(clause, values=values, condition=condition)


def _is_match(text: str, name: str, merge: Merge, source_of: Mapping[str, str]) -> bool:
    """Return whether an expression is the key column itself, or the source column that equals it in matched rows."""
    node = without_parens(parse_expression(text))
    if not is_column(node) or not isinstance(node, exp.Column) or len(node.parts) != 2:
        return False
    side, column = node.parts[0].name.lower(), node.parts[1].name
    if side == merge.target.lower():
        return column.lower() == name.lower()
    return side == merge.source.lower() and column == source_of.get(name)


def _table_column(name: str, merge: Merge, columns: Mapping[str, list[str]]) -> str:
    """Return the table's spelling of a column to set, which may be named with the target's name before it.

    `columns`: the table's columns by their names in lower case.
    """
    plain = name.replace("`", "")
    prefix = f"{merge.target}.".lower()
    if plain not in columns.get(plain.lower(), ()) and plain.lower().startswith(prefix):
        plain = plain[len(prefix) :]
    found = columns.get(plain.lower(), [])
    if len(found) != 1:
        known = [one for names in columns.values() for one in names]
        raise SchemaMismatchError(f"merge sets {name!r}: expected a column of the table, {known}")
    return found[0]
