"""Change the columns of a table, or the options that it stores: every call takes these, unless it has its own.

A change of columns is one commit without files, which has the new columns, and their ids if they need ids. Files are
read by the names of columns as long as that is right. The first change after which it is not gives all columns ids;
later changes keep them. On-disk format: docs/format/table.md §3.8.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hoodie.commit.call import Call
from hoodie.commit.column_ids import changed_columns, check_columns_have_ids, column_record, records_of
from hoodie.commit.conflicts import conflict, known_schema, refuse_later_writes
from hoodie.commit.writable import check_writable
from hoodie.commit.write_instant import write_instant
from hoodie.config import indexes
from hoodie.config.writes import DURABLE_KEY, PYTHON_MERGER_KEY
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.avro.schema import META_FIELDS, arrow_to_avro
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.schema.alterations import AddColumn, Alteration, Place, stored_path
from hoodie.format.schema.id_record import Kind, Record, record_of, refuse_types_without_ids, schema_of
from hoodie.format.schema.table_schema import new_table_avro, without_meta_fields
from hoodie.format.table.call_options import is_table_property
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index import INDEXES
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.kinds.statistics import StatisticsKind
from hoodie.progress import PhaseTimes
from hoodie.timeline import Action
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.attempt import Retries
from hoodie.write.options import check_logs_allow, check_no_duplicates, check_storable, checked_options
from hoodie.write.result import AlterResult

SCHEMA_ON_READ: Final = "hoodie.schema.on.read.enable"
OF_INDEXES: Final = frozenset(
    {indexes.INDEX_TYPE_KEY, indexes.BUCKETS_SINCE.key, indexes.COLUMNS_SINCE.key}
    | {option.key for kind in INDEXES for option in kind.own_options}
    | {kind.moves_option.key for kind in INDEXES if kind.moves_option is not None}
    | {kind.switch.key for kind in KINDS.named if kind.switch is not None}
)
_OF_LOCKS: Final = "hoodie.write.lock."
_NESTED_NOTE: Final = (
    "a field of a struct changed: JVM Hudi on Spark reads such tables with spark.sql.parquet.enableVectorizedReader="
    "false too"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Altered:
    """The columns after a change. `ids`: whether they have ids; `changes` and `notes` are texts for the result."""

    record: Record
    ids: bool
    changes: tuple[str, ...]
    notes: tuple[str, ...]

    def avro(self, config: TableConfig) -> str:
        """Return the Avro text of the commit: with meta columns if columns have ids, as in the JVM."""
        columns = schema_of(self.record)
        text = new_table_avro(without_meta_fields(columns), table_name=config.name)
        return arrow_to_avro(columns, table_name=config.name) if self.ids else text


def alter(call: Call, alterations: Sequence[Alteration]) -> AlterResult:
    """Make the changes of the columns, in this order, in one commit.

    Raises: SchemaMismatchError for columns that are not there or are there already, and for types that do not change
        so; UnsupportedError for columns of keys, partition paths and ordering, and for tables whose columns cannot get
        ids; CommitConflictError if another writer changed the schema meanwhile.
    """
    watch = PhaseTimes("commit")
    retries = Retries.of(call.properties, call.state.read_config().raw)
    instant, altered, notes = retries.run(lambda _number: _attempt(call, alterations, watch))
    return AlterResult(
        operation="alter",
        instant=instant,
        changes=altered.changes,
        seconds=watch.seconds(),
        notes=(*retries.notes, *altered.notes, *notes),
    )


def _attempt(
    call: Call, alterations: Sequence[Alteration], watch: PhaseTimes
) -> tuple[str | None, _Altered, list[str]]:
    view = TableView.load(call.state)
    check_writable(view, "alter")
    check_columns_have_ids(view, view.schema().arrow)
    altered = _altered(view, alterations)
    if not altered.changes:
        return None, altered, []
    check_logs_allow(view, view.schema().arrow, without_meta_fields(schema_of(altered.record)))
    action = Action.DELTA_COMMIT if view.config.table_type is TableType.MERGE_ON_READ else Action.COMMIT
    avro = altered.avro(view.config)
    begun = write_instant(
        call.state,
        action,
        WriteOperation.ALTER_SCHEMA,
        index=None,
        engine_for=call.engine_for,
        properties=call.properties,
    )
    with watch.phase("commit"), begun as write:
        if known_schema(write.view) != known_schema(view):
            raise conflict(f"another writer changed the schema of {view.store.uri('')}")
        write.guard = lambda now: refuse_later_writes(now, write.instant_time)
        columns = changed_columns(altered.record, write.instant_time) if altered.ids else {}
        write.commit((), schema=avro, extra_metadata=call.extra_metadata, columns=columns)
    return write.instant_time, altered, [*(done.note for done in write.rolled_back), *write.notes]


def _altered(view: TableView, alterations: Sequence[Alteration]) -> _Altered:
    """Make the changes in memory. Raises: as `alter`."""
    before, has_ids = column_record(view)
    record, texts, needs = copy.deepcopy(before), [], False
    for change in (_placed(change, record, view.config) for change in alterations):
        if change.is_of_values:
            _refuse_key(view, stored_path(record, change.path))
        needs = needs or change.needs_ids(record)
        texts.append(change.apply(record))
    if record == before:
        return _Altered(record=record, ids=has_ids, changes=(), notes=())
    has_commits = any(instant.action.writes_data for instant in view.timeline) or view.has_archived_instants()
    ids = has_ids or (needs and has_commits)
    notes = [note for _, *more in texts for note in more]
    if ids:
        where = view.store.uri("")
        refuse_types_without_ids(record, where)
        _refuse_empty_structs(view, before, record)
        notes += [*_reused_names(view, before, record), *_renamed(view, before, record)]
        notes.append(
            f"the columns have ids{'' if has_ids else ' now'}: JVM Hudi reads and writes the table with "
            f"{SCHEMA_ON_READ}=true; without it, and in hudi-rs, older files are read by the names of columns"
        )
        notes += [_NESTED_NOTE] if any("." in change.path for change in alterations) else []
    return _Altered(record=record, ids=ids, changes=tuple(text for text, *_ in texts), notes=tuple(notes))


def _placed(change: Alteration, record: Record, config: TableConfig) -> Alteration:
    """Return a change that adds a column in front of the partition columns at the end, as the JVM does."""
    if not isinstance(change, AddColumn) or change.place or "." in change.path:
        return change
    names = [found["name"] for found in record["fields"]]
    while names and names[-1] in config.partition_fields:
        names.pop()
    has_place = 0 < len(names) < len(record["fields"]) and names[-1] not in META_FIELDS
    return replace(change, place=Place(after=names[-1])) if has_place else change


def _refuse_key(view: TableView, path: str) -> None:
    """Refuse to change the name or the type of a column on which keys, paths or merges depend."""
    config = view.config
    uses = {
        "the record key": config.record_key_fields,
        "the partition path": config.partition_fields,
        "the ordering": config.ordering_fields,
        "the mark of deleted rows": tuple(filter(None, (config.merge_rule.delete_field,))),
    }
    for what, fields in uses.items():
        if any(f"{field}.".startswith(f"{path}.") or f"{path}.".startswith(f"{field}.") for field in fields):
            raise UnsupportedError(
                f"column {path!r} of {view.store.uri('')} is part of {what}: its name and type cannot change; write "
                "the rows to a new table"
            )


def _reused_names(view: TableView, before: Record, after: Record) -> list[str]:
    """Return a note if a column gets a name that another column has in older files.

    Raises: SchemaMismatchError if the table has statistics of columns: JVM Hudi finds them by name, and would leave
        files out by the values of the other column.
    """
    known: dict[str, set[int]] = {}
    for record in (before, *records_of(view)):
        for path, number in _paths(record["fields"]):
            known.setdefault(path, set()).add(number)
    old = dict(_paths(before["fields"]))
    reused = [
        path
        for path, number in _paths(after["fields"])
        if old.get(path) != number and known.get(path, {number}) != {number}
    ]
    if reused and _has_statistics(view):
        raise SchemaMismatchError(
            f"column {reused[0]!r}: another column had this name, and the table has statistics of columns, by which "
            "JVM Hudi would leave out files of the other column; choose another name, or drop the statistics first: "
            't.index.drop("column_stats")'
        )
    return [
        f"column {path}: another column had this name; statistics of columns that are built later have its values too, "
        "by which JVM Hudi leaves files out: read there with hoodie.enable.data.skipping=false"
        for path in reused
    ]


def _has_statistics(view: TableView) -> bool:
    kinds = KINDS.maintained(view.config.metadata_partitions).values()
    return any(isinstance(kind, StatisticsKind) for kind in kinds)


def _renamed(view: TableView, before: Record, after: Record) -> list[str]:
    """Return a note of the columns that lose their statistics by a new name.

    Raises: SchemaMismatchError if the table has statistics in version 6: Hudi 0.15 expects ranges of every column.
    """
    old = {number: path for path, number in _paths(before["fields"])}
    renamed = [path for path, number in _paths(after["fields"]) if old.get(number, path) != path]
    if not renamed or not _has_statistics(view):
        return []
    if not view.config.version.has_index_definitions:
        raise SchemaMismatchError(
            f"column {old[dict(_paths(after['fields']))[renamed[0]]]!r}: the table has statistics of columns, by which "
            'Hudi 0.15 would skip the files with the old name; drop them first: t.index.drop("column_stats")'
        )
    return [
        f"column {path}: no statistics from now on: JVM Hudi would skip the older files by them" for path in renamed
    ]


def _refuse_empty_structs(view: TableView, before: Record, after: Record) -> None:
    """Refuse a struct if older files have none of its fields: the JVM's Parquet reader fails on it."""
    first = {
        f"{path}.{name}" for _, fields, path in _structs(record_of(view.schema(as_of="0").arrow)) for name in fields
    }
    known: list[dict[int, set[int]]] = []
    for record in (before, *records_of(view)):
        # Fields that were added before columns had ids are in version 0 too, and not in the oldest files.
        is_first = record["version_id"] == 0
        known.append(
            {
                owner: {number for name, number in fields.items() if not is_first or f"{path}.{name}" in first}
                for owner, fields, path in _structs(record)
            }
        )
    for owner, fields, path in _structs(after):
        if any(older.get(owner) and not older[owner] & {*fields.values()} for older in known):
            raise SchemaMismatchError(
                f"column {path!r}: a struct keeps a field that it had from the start, else JVM Hudi fails to read "
                "older files; drop the whole column, and add another one"
            )


def _structs(kind: Kind, owner: int = -1, path: str = "") -> Iterator[tuple[int, dict[str, int], str]]:
    """Yield the id, the fields with their ids and the path of each struct at and below a type."""
    if isinstance(kind, str):
        return
    if kind["type"] == "record":
        yield owner, {found["name"]: found["id"] for found in kind["fields"]}, path.lstrip(".")
        for found in kind["fields"]:
            yield from _structs(found["type"], found["id"], f"{path}.{found['name']}")
    else:
        name = "element" if kind["type"] == "array" else "value"
        yield from _structs(kind[name], kind[f"{name}_id"], f"{path}.{name}")


def _paths(fields: Sequence[Record], parent: str = "") -> Iterator[tuple[str, int]]:
    """Yield the path and the id of each column and field of structs."""
    for found in fields:
        yield f"{parent}{found['name']}", found["id"]
        if isinstance(found["type"], dict) and found["type"]["type"] == "record":
            yield from _paths(found["type"]["fields"], f"{parent}{found['name']}.")


def store_options(state: TableState, changes: Mapping[str, str | None]) -> AlterResult:
    """Store options in hoodie.properties, or remove them (None), under the table's lock.

    Calls that run keep the options of before.

    Raises: InvalidConfigError for unknown options and values that do not parse, and for what is fixed when a table is
        created or belongs to an index or the lock; UnsupportedError for a table that this release does not write.
    """
    watch = PhaseTimes("commit")
    for key in changes:
        _refuse_fixed(key)
    with watch.phase("commit"), TableView.locked(state, finishes_update=True) as view:
        check_writable(view)
        stored = view.config.raw
        given = {key: text for key, text in changes.items() if text is not None}
        checked_options(view.config, given)
        if not view.config.record_key_fields:
            check_no_duplicates(given)
        check_storable(given, {key: text for key, text in stored.items() if key not in changes})
        changed = tuple(
            f"{key}: {stored.get(key, 'not set')} -> {'not set' if text is None else text}"
            for key, text in changes.items()
            if stored.get(key) != text
        )
        update_table_config(state.store, dict(changes))
    notes = tuple(f"{key} is not stored" for key, text in changes.items() if text is None and key not in stored)
    return AlterResult(operation="set properties", changes=changed, seconds=watch.seconds(), notes=notes)


def _refuse_fixed(key: str) -> None:
    """Refuse what a change of an option would break. Raises: InvalidConfigError."""
    if is_table_property(key) or key in (PYTHON_MERGER_KEY, DURABLE_KEY):
        raise InvalidConfigError(f"{key} is fixed when the table is created: write the rows to a new table")
    if key in OF_INDEXES:
        raise InvalidConfigError(f"{key} belongs to an index: call t.index.switch, t.index.build or t.index.drop")
    if key.startswith(_OF_LOCKS):
        raise InvalidConfigError(
            f"{key}: writers that run would keep another lock; stop them, and pass lock= to hoodie.open or the option "
            "to each call"
        )
    if not key.startswith("hoodie."):
        raise InvalidConfigError(
            f"{key}: expected an option hoodie.<name> (docs/options.md); other texts are not stored"
        )
