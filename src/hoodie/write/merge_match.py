"""Find how the source rows of a merge meet the stored rows: the columns that `on` compares."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.format.table.merge_config import MergeMode
from hoodie.index import index_of
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.sql.parse import operands, parse_expression, to_sql, without_parens
from hoodie.view.table_view import TableView
from hoodie.write.setup import effective_options

if TYPE_CHECKING:
    from hoodie.write.merge_plan import Merge


def names_by_path(view: TableView, properties: Mapping[str, str]) -> bool:
    """Return whether the partition path is part of what names a record: the index is not global."""
    index = index_of(view, effective_options(view.config, properties))
    return not index.is_global and bool(view.config.partition_fields)


def naming_columns(view: TableView, *, by_path: bool) -> dict[str, None]:
    """Return the columns that name a record. Raises: UnsupportedError if a merge cannot match by columns."""
    config = view.config
    if not config.record_key_fields:
        raise UnsupportedError(
            "merge: the table makes its record keys automatically, so no column of the source names a record; use "
            "update, delete_where and insert"
        )
    wanted = dict.fromkeys((*config.record_key_fields, *(config.partition_fields if by_path else ())))
    if any("." in name for name in wanted):
        raise UnsupportedError(f"merge: the record key or partition has nested columns, {list(wanted)}; use upsert")
    if by_path and any(table_key_generator(config).time_formats):
        raise UnsupportedError(
            "merge: the partition paths are made from times, so that rows with other values share a partition; use "
            "upsert, or a table with a global index"
        )
    return wanted


def refuse_merge_function(view: TableView, call: str) -> None:
    """Refuse to write kept values of stored rows into a table that merges by a function: it would merge them again.

    Raises: UnsupportedError.
    """
    if view.config.merge_rule.mode is MergeMode.CUSTOM:
        raise UnsupportedError(
            f"{call}: the table merges rows by a function, which would merge the values that a row keeps with "
            "themselves; upsert whole rows"
        )


@dataclass(frozen=True, slots=True)
class Equality:
    """A column of the table and one of the source that `on` compares; `null_safe`: null equals null."""

    target: str
    source: str
    null_safe: bool


def equalities(view: TableView, merge: Merge, source_names: Sequence[str]) -> tuple[Equality, ...]:
    """Return the columns that `on` compares. Raises: UnsupportedError for other conditions; SchemaMismatchError."""
    schema = view.schema().arrow
    parts = operands(parse_expression(merge.on), exp.And)
    return tuple(_equality(part, merge, schema, source_names) for part in parts)


def is_by_name(found: Sequence[Equality], naming: Collection[str]) -> bool:
    """Return whether `on` compares exactly the columns that name a record, each with one source column."""
    return len(found) == len(naming) and {one.target for one in found} == set(naming)


def _equality(part: exp.Expression, merge: Merge, schema: pa.Schema, source_names: Sequence[str]) -> Equality:
    """Return the columns that a part of `on` compares. Raises: as `equalities`."""
    if isinstance(part, exp.Column) and len(part.parts) == 1:
        return Equality(_one_of(schema.names, part.name, "table"), _one_of(source_names, part.name, "source"), False)
    sides: dict[str, str] = {}
    if isinstance(part, exp.EQ | exp.NullSafeEQ):
        for node in (without_parens(part.this), without_parens(part.expression)):
            if isinstance(node, exp.Column) and len(node.parts) == 2:
                sides[node.parts[0].name.lower()] = node.parts[1].name
    target, source = sides.get(merge.target.lower()), sides.get(merge.source.lower())
    if target is None or source is None:
        raise UnsupportedError(
            f"merge on {to_sql(part)[:300]!r}: expected only equalities of a column of the table and a column of the "
            f"source, such as {f'{merge.target}.id = {merge.source}.id'!r}, joined by AND; other conditions belong to "
            "the clauses"
        )
    columns = (_one_of(schema.names, target, "table"), _one_of(source_names, source, "source"))
    return Equality(*columns, null_safe=isinstance(part, exp.NullSafeEQ))


def _one_of(names: Sequence[str], name: str, side: str) -> str:
    found = [one for one in names if one.lower() == name.lower()]
    if len(found) != 1:
        raise SchemaMismatchError(f"merge: no column {name!r} in the {side}, which has {list(names)}")
    return found[0]
