"""Plan a partial upsert: a merge by the columns that name a record, which sets the columns that the data has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie.errors import SchemaMismatchError
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD
from hoodie.format.table.merge_config import MergeMode
from hoodie.records.sql.quoting import quoted
from hoodie.view.table_view import TableView
from hoodie.write.merge_match import names_by_path, naming_columns, refuse_merge_function
from hoodie.write.merge_plan import Clause, Group, Merge, MergePlan


def plan_partial_upsert(view: TableView, names: Sequence[str], properties: Mapping[str, str]) -> MergePlan:
    """Return the plan of a partial upsert of data with these columns.

    Rows with known keys keep the stored values of other columns; in rows with new keys these are null.

    Raises: SchemaMismatchError for unknown columns, and if columns of the key, the partition path or the ordering are
        missing; UnsupportedError for automatic keys, and for other tables into which a merge is refused.
    """
    schema, by_path = view.schema().arrow, names_by_path(view, properties)
    refuse_merge_function(view, "partial upsert")
    named = naming_columns(view, by_path=by_path)
    given = [name for name in names if name not in (*META_FIELDS, OPERATION_FIELD)]
    known = set(schema.names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SchemaMismatchError(
            f"partial upsert: the table has no columns {unknown}, it has {schema.names}; drop them, or add them first "
            "with an upsert of whole rows"
        )
    lacking = [name for name in _needed(view) if name.split(".")[0] not in given]
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


def _needed(view: TableView) -> dict[str, None]:
    """Return the columns that each row must have: those that name it, and those that order it."""
    config = view.config
    ordering = () if config.merge_rule.mode is MergeMode.COMMIT_TIME_ORDERING else config.ordering_fields
    return dict.fromkeys((*config.record_key_fields, *config.partition_fields, *ordering))
