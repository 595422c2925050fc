"""What the options of a write and the table's data allow: options, schema evolution, keys, concurrency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from hoodie import config as options
from hoodie.config import compaction, concurrency, retention, writes
from hoodie.engine import ArrowDataset, Dataset
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.logs.log_scan import stored_blocks
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.log.log_block import BlockType
from hoodie.format.schema.evolution import evolve, missing_paths, schema_changes
from hoodie.format.schema.required import Paths, loosened, paths_with_null, with_required
from hoodie.format.schema.table_schema import META_FIELDS, OPERATION_FIELD, new_table_avro
from hoodie.format.table.call_options import check_call_options, config_of_call, effective_options
from hoodie.format.table.merge_config import PartialUpdateMode
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index import INDEXES, Index, IndexKind, check_index_options
from hoodie.metadata.kinds.bloom_filters import filter_options
from hoodie.records.change import IS_DELETED, flags_deletes
from hoodie.records.keys.path_columns import text_schema
from hoodie.records.merging.merge import RecordMerger
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableSchema, TableView

ROWS_MAX = 10_000
"""Number of rows up to which an insert into a table with a record index looks up their keys without an option."""


def ignored_columns(names: Sequence[str], used: str = "") -> tuple[str, ...]:
    """Return a note if columns of the data are not stored, because they have the names of Hudi's meta columns.

    `used`: expressions of the call; columns that they name are not noted.
    """
    meta = [name for name in names if name in (*META_FIELDS, OPERATION_FIELD) and name not in used]
    if not meta:
        return ()
    return (f"the data's columns {', '.join(meta)} are not stored: Hudi writes its own columns of these names",)


def checked_options(config: TableConfig, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the effective options of a write, once they are checked.

    Raises: InvalidConfigError for an unknown option, and for a table property, which no write may change.
    """
    check_call_options(properties, config)
    for moves in filter(None, (kind.moves_option for kind in INDEXES)):
        if moves.get(properties, config.raw) != moves.get(config.raw):
            raise InvalidConfigError(
                f"{moves.key} is fixed when the table is created, because reads by partition depend on it: the table "
                f"has {str(moves.get(config.raw)).lower()}; omit the option"
            )
    check_index_options(config, properties)
    _check_compactions(properties)
    effective = effective_options(config, properties)
    options.check_sizes(effective)
    if properties.keys() & {retention.KEEP_COMMITS_MIN.key, retention.KEEP_COMMITS_MAX.key}:
        retention.kept_commits(effective)
    filter_options(effective)
    return effective


def check_storable(properties: Mapping[str, str], stored: Mapping[str, str] | None = None) -> None:
    """Refuse options that a table must not store, alone or together with the options that it stores already.

    Raises: InvalidConfigError.
    """
    mode = concurrency.CONCURRENCY_MODE
    if mode.get(properties) == concurrency.NON_BLOCKING:
        raise InvalidConfigError(
            f"{mode.key}=NON_BLOCKING_CONCURRENCY_CONTROL: a table that stores it cannot be written by JVM Hudi, which "
            "requires a bucket index for it; pass it to each write instead"
        )
    if properties.keys() & {compaction.COMPACT_INLINE.key, compaction.COMPACT_SCHEDULE_INLINE.key}:
        _check_compactions({**(stored or {}), **properties})


def _check_compactions(properties: Mapping[str, str]) -> None:
    if all(found.get(properties) for found in (compaction.COMPACT_INLINE, compaction.COMPACT_SCHEDULE_INLINE)):
        raise InvalidConfigError(
            f"{compaction.COMPACT_INLINE.key} executes compactions, {compaction.COMPACT_SCHEDULE_INLINE.key} only "
            "plans them: expected true for one of them, found true for both; omit one"
        )


def check_moves_merge(index: IndexKind, properties: Mapping[str, str], merger: RecordMerger) -> None:
    """Refuse a merge function, and a rule that mixes fields, if records may move between partitions.

    The task of the new partition does not read the stored version of a moved record. Raises: UnsupportedError.
    """
    merges = merger.function is not None or merger.overlay is not None
    if merges and index.moves_option is not None and index.moves_records(properties):
        rule = "a Python merger" if merger.overlay is None else f"partial update mode {merger.overlay.mode}"
        raise UnsupportedError(
            f"index={index.name!r} moves records between partitions, which is not supported with {rule}; use "
            f"index='simple', or create the table with {index.moves_option.key}=false"
        )


def check_sets_nulls(config: TableConfig, properties: Mapping[str, str], call: str) -> None:
    """Refuse a call that sets columns of stored rows, if the merge rule keeps a stored value where a row has a null.

    `properties` are the options of the call. Raises: UnsupportedError.
    """
    config = config_of_call(config, properties)
    if config.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS:
        raise UnsupportedError(
            f"{call}: table {config.name!r} keeps the stored value where a row has a null (partial update mode "
            f"{config.partial_update_mode}), so a column cannot be set to null; upsert rows instead, with null in the "
            "columns to keep"
        )


def check_concurrency(view: TableView, index: Index, properties: Mapping[str, str]) -> None:
    """Refuse non-blocking writes where several appends to one file group would conflict, and options that contradict.

    In version 6 the order of the log files of one file group is not the order of the writes.

    Raises: UnsupportedError, InvalidConfigError.
    """
    mode = concurrency.CONCURRENCY_MODE
    if mode.get(properties) != concurrency.NON_BLOCKING:
        return
    if concurrency.EARLY_CONFLICTS.get(properties):
        raise InvalidConfigError(
            f"{concurrency.EARLY_CONFLICTS.key}=true contradicts {mode.key}=NON_BLOCKING_CONCURRENCY_CONTROL, in which "
            "writes to one file group do not conflict; omit one of them"
        )
    if view.config.version.log_name_has_base_instant:
        raise UnsupportedError(
            f"{mode.key}=NON_BLOCKING_CONCURRENCY_CONTROL requires a table of version 8 or later, whose log files are "
            f"ordered by their writes; {view.store.uri('')} has version {view.config.version.value}: use "
            "OPTIMISTIC_CONCURRENCY_CONTROL, which retries, or upgrade the table"
        )
    if view.config.table_type is not TableType.MERGE_ON_READ or not index.indexes_logs:
        raise UnsupportedError(
            f"{mode.key}=NON_BLOCKING_CONCURRENCY_CONTROL requires a merge-on-read table with a record index (or HBase "
            f"or bucket index), so that all changes are appended to log files; {view.store.uri('')} is "
            f"{view.config.table_type.value} with index {index.name!r}: use OPTIMISTIC_CONCURRENCY_CONTROL, which "
            "retries"
        )


def evolved_schema(view: TableView, data: Dataset, properties: Mapping[str, str]) -> tuple[TableSchema, Paths]:
    """Return the table's schema after a write of the data, and its columns whose nulls are not known yet.

    The Avro text changes only if a column is new or wider, or begins to allow nulls. It begins to do so if the data has
    a null there. Rows in memory are searched; else the column is nullable, and `WriteSetup.settled` decides later.

    Raises: SchemaMismatchError, naming the field and, where an option permits it, the option; UnsupportedError if the
        new schema exceeds a limit of reads.
    """
    current, config = view.schema(), view.config
    key_fields = (*config.record_key_fields, *config.partition_fields)
    fill_missing = writes.FILL_MISSING.get(properties)
    columns = text_schema(data.schema, config.path_fields)
    if flags_deletes(columns) and IS_DELETED not in current.arrow.names:
        columns = columns.remove(columns.get_field_index(IS_DELETED))  # it marks rows to delete
    if columns.equals(current.arrow):
        return current, frozenset()
    evolved = evolve(current.arrow, columns, key_fields=key_fields, fill_missing=fill_missing)
    allowed = writes.SCHEMA_EVOLUTION.get(properties)
    evolved, loose = _still_required(current.arrow, evolved, data, is_strict=allowed == "never")
    if evolved == current.arrow:
        return current, loose
    _check_evolution(current.arrow, evolved, data, allowed)
    check_logs_allow(view, current.arrow, evolved)
    return TableSchema(evolved, new_table_avro(evolved, table_name=config.name)), loose


def filled_columns(table: pa.Schema, data: pa.Schema) -> tuple[str, ...]:
    """Return a note of the columns and fields of structs that the data lacks, and that the write sets to null."""
    own = (field for field in table if field.name not in (*META_FIELDS, OPERATION_FIELD))
    missing = missing_paths(own, data)
    return (f"the data lacks {missing}: null in the written rows ({writes.FILL_MISSING.key})",) if missing else ()


def _still_required(before: pa.Schema, after: pa.Schema, data: Dataset, *, is_strict: bool) -> tuple[pa.Schema, Paths]:
    """Return the schema whose columns allow no null where the data is known to have none, and the other columns.

    A strict write keeps the rule of all columns: a null in its rows is refused when it is met.
    """
    loose = loosened(before, after)
    if not loose or is_strict:
        return with_required(after, loose), frozenset()
    rows = data.source if isinstance(data, ArrowDataset) else None
    if isinstance(rows, pa.Table) and rows.schema == data.schema and not flags_deletes(rows.schema):
        return with_required(after, loose - paths_with_null(rows, loose)), frozenset()
    return after, loose


def _check_evolution(before: pa.Schema, after: pa.Schema, data: Dataset, allowed: str) -> None:
    """Refuse changes of the schema that the option does not allow; a misspelt column would stay for ever."""
    option = writes.SCHEMA_EVOLUTION.key
    if allowed == "never":
        changes = "; ".join(schema_changes(before, after))
        raise SchemaMismatchError(
            f"the data would change the table's schema ({changes}), and {option}=never (schema='strict') forbids it"
        )
    untyped = data.untyped if isinstance(data, ArrowDataset) else frozenset()
    unknown = [name for name in after.names if name in untyped and before.get_field_index(name) < 0]
    if unknown and allowed == "typed":
        raise SchemaMismatchError(
            f"column {unknown[0]!r} is not in the table ({', '.join(before.names)}), and the data does not declare its "
            "type: drop the column, correct its name, or add it with Arrow data, schema='add_columns' or "
            f"{option}=always"
        )


def check_logs_allow(view: TableView, before: pa.Schema, after: pa.Schema) -> None:
    """Refuse a wider type at any depth while the newest slices have log files that Hudi 0.15 could not read then.

    Hudi 0.15 neither reads nor compacts a slice with a Parquet block whose column has a narrower type than the table,
    nor one with a decimal of fewer digits in any log file. Reads the headers of the blocks, if a type changes in a
    merge-on-read table of version 6.

    Raises: UnsupportedError.
    """
    config = view.config
    if not config.version.logs_avro or config.table_type is not TableType.MERGE_ON_READ:
        return
    known = dict(_leaves("", pa.struct(before)))
    wider = {path: known[path] for path, kind in _leaves("", pa.struct(after)) if known.get(path, kind) != kind}
    if not wider:
        return
    logs = [log for found in list_slices(view) for log in found.log_files]
    decimals = sorted(path for path, kind in wider.items() if pa.types.is_decimal(kind))
    if logs and decimals:
        raise _wider_than_logs(view, decimals, "log files")
    rule = view.slice_read().rule
    if any(block.block_type is BlockType.PARQUET_DATA for block in stored_blocks(view.store, logs, rule)):
        raise _wider_than_logs(view, sorted(wider), "log files with Parquet blocks")


def _wider_than_logs(view: TableView, columns: list[str], what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{view.store.uri('')}: the column {', '.join(columns)} would get a wider type, and the newest file slices "
        f"have {what}, which Hudi 0.15 could not read any more. Compact first, with "
        "t.schedule_compaction(strategy='unbounded') and t.compact(), or upgrade the table to version 9"
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and type of each field at every depth that has no fields of its own."""
    if pa.types.is_struct(kind):
        children = {child.name: child.type for child in kind}
    elif pa.types.is_map(kind):
        children = {"key": kind.key_type, "value": kind.item_type}
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        children = {"element": kind.value_type}
    else:
        yield path, kind
        return
    for name, child in children.items():
        yield from _leaves(f"{path}.{name}" if path else name, child)


def wants_look_up(
    operation: WriteOperation, config: TableConfig, data: Dataset | None, properties: Mapping[str, str]
) -> bool:
    """Return whether a write looks up its keys, if the index of the table finds them at little cost.

    An insert does so if its policy for known keys requires it, or if it has few rows. Automatic keys are new.
    """
    if operation is not WriteOperation.INSERT:
        return operation in (WriteOperation.UPSERT, WriteOperation.DELETE)
    if not config.record_key_fields:
        return False
    rows = data.source if isinstance(data, ArrowDataset) else None
    is_small = isinstance(rows, pa.Table) and rows.num_rows <= ROWS_MAX
    return is_small or writes.INSERT_DUP_POLICY.get(properties) != "none"


def check_no_duplicates(properties: Mapping[str, str]) -> None:
    """Refuse options that look for rows with equal keys: automatic keys differ in all rows.

    Raises: InvalidConfigError.
    """
    policy = writes.INSERT_DUP_POLICY
    wrong = {
        f"{policy.key}={policy.get(properties)}": policy.get(properties) != "none",
        f"{writes.COMBINE_BEFORE_INSERT.key}=true": writes.COMBINE_BEFORE_INSERT.get(properties),
    }
    for option in (text for text, is_set in wrong.items() if is_set):
        raise InvalidConfigError(
            f"{option} contradicts automatic record keys: each row gets a new key, so no two rows have the same; "
            "omit the option, and remove duplicates from the data before the write"
        )
