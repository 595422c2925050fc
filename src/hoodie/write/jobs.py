"""What a write hands to its workers: how rows are prepared, how their keys are tagged, how files are written.

All of it follows from the facts of the write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.commit.write_instant import WriteInstant
from hoodie.config import writes
from hoodie.errors import UnsupportedError
from hoodie.files.logs.log_file import LogNames, log_block_format
from hoodie.files.slices import FileSlice
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.log.cdc_block import CdcMode, cdc_avro_schema
from hoodie.format.log.data_block import log_schema
from hoodie.format.schema.table_schema import with_meta_fields
from hoodie.format.table.call_options import config_of_call
from hoodie.index import Purpose, TagRequest
from hoodie.index.record.entries import EntryStage
from hoodie.metadata.kinds.registry import parquet_options
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.view.columns import stored_columns
from hoodie.view.pending_plans import compactions_by_group
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView
from hoodie.write.files.context import CdcOptions, FileSizing, LogOptions, WriteContext
from hoodie.write.options import check_no_duplicates
from hoodie.write.plan import Storage
from hoodie.write.setup import WriteSetup
from hoodie.write.staging import Preparation, Staged


def key_source_of(setup: WriteSetup, operation: WriteOperation) -> KeySource:
    """Return where the record keys of the rows come from.

    With automatic keys, inserts get new keys; updates and deletes name stored records by `_hoodie_record_key`.

    Raises: UnsupportedError for an upsert without stored keys into a table with automatic keys; InvalidConfigError
        if the options of an insert contradict automatic keys.
    """
    if not setup.has_automatic_keys:
        return KeySource.COLUMNS
    if operation is WriteOperation.UPSERT:
        if setup.data is not None and RECORD_KEY not in setup.data.schema.names:
            raise UnsupportedError(
                f"upsert: {setup.view.store.uri('')} makes its record keys automatically, so the rows do not say "
                f"which records they change: call insert to add them, update or delete_where to change records by "
                f"a condition, or upsert rows that were read from the table with their {RECORD_KEY}"
            )
        return KeySource.STORED
    if operation is WriteOperation.DELETE:
        return KeySource.STORED
    check_no_duplicates(setup.options)
    return KeySource.AUTOMATIC


def preparation_of(
    setup: WriteSetup, *, key_source: KeySource = KeySource.COLUMNS, keys_only: bool = False, buckets: int = 0
) -> Preparation:
    """Return the preparation of a write's data, its first step. Raises: as `KeyGenerator.expect_known_paths`."""
    setup.key_generator.expect_known_paths()
    config = setup.view.config
    rule = config_of_call(config, setup.call.properties).merge_rule
    return Preparation(
        schema=_staged_schema(setup),
        key_generator=setup.key_generator,
        key_source=key_source,
        delete_field=rule.delete_field,
        delete_marker=rule.delete_marker,
        keys_only=keys_only,
        any_partition=setup.index.is_global,
        buckets=buckets,
        loose=setup.loose,
        path_columns=config.path_fields,
        stores_keys=config.populates_meta_fields,
    )


def _staged_schema(setup: WriteSetup) -> pa.Schema:
    """Return the staged columns: all columns, or those that a partial update requires, in the table's order."""
    if setup.changed is None:
        return setup.schema.arrow
    config = setup.view.config
    naming = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    wanted = {*naming, *setup.written_schema.names}
    return pa.schema([field for field in setup.schema.arrow if field.name in wanted])


def tag_request_of(setup: WriteSetup, staged: Staged, folder: str, purpose: Purpose = Purpose.MERGE) -> TagRequest:
    """Return the request to tag the staged rows; hits are staged in `folder`."""
    return TagRequest(
        schema=setup.schema.arrow,
        merger=setup.merger,
        runs=staged.runs,
        keys=staged.keys,
        key_groups=staged.key_groups,
        stage_folder=folder,
        engine_for=setup.call.engine_for,
        purpose=purpose,
    )


def storage_of(setup: WriteSetup, *, is_indexed: bool) -> Storage:
    """Return how changes of existing file groups are stored.

    Rows whose keys were not looked up are not appended to log files: a read would merge a logged row with other rows of
    its key.
    """
    if not setup.is_merge_on_read:
        return Storage.REWRITE
    return Storage.APPEND if is_indexed and setup.index.indexes_logs else Storage.APPEND_UPDATES


def skeletons_of(setup: WriteSetup, slices: Sequence[FileSlice]) -> set[tuple[str, str]]:
    """Return the file groups with a skeleton file. Inserts stay out of them: its size is not the size of its rows."""
    source = _stored(setup).source
    if source is None:
        return set()
    bases = [found.base_file for found in slices if found.base_file is not None]
    return {(base.partition_path, base.file_id) for base in bases if source.is_of(base)}


def context_of(
    setup: WriteSetup, write: WriteInstant, *, combine: bool, merge_stored: bool, entries: EntryStage | None = None
) -> WriteContext:
    """Return the facts that the workers of a write share."""
    return WriteContext(
        store=setup.view.store.spec,
        schema=setup.written_schema,
        whole=None if setup.changed is None else setup.schema.arrow,
        merger=setup.merger,
        instant_time=write.instant_time,
        combine=combine,
        merge_stored=merge_stored,
        has_automatic_keys=setup.has_automatic_keys,
        parquet=parquet_options(data_table(setup.view), setup.options, setup.schema.arrow),
        sizing=FileSizing.of(setup.options),
        entries=entries,
        stored=_stored(setup),
        log=_log_options(setup, write.view) if setup.is_merge_on_read else None,
        cdc=_cdc_options(setup) if setup.view.config.is_cdc_enabled else None,
    )


def _stored(setup: WriteSetup) -> StoredColumns:
    """Return how the table's files differ from its columns."""
    return stored_columns(setup.view, with_meta_fields(setup.schema.arrow))


def _log_options(setup: WriteSetup, view: TableView) -> LogOptions:
    """Return the options of appending to log files of file slices of `view`.

    Raises: CorruptFileError if the plan of a pending compaction is damaged.
    """
    is_partial = setup.changed is not None
    columns = setup.written_schema.names if is_partial else None
    names = LogNames()
    if view.config.version.log_name_has_base_instant:
        names = LogNames(has_base_instant=True, compacted=compactions_by_group(view))
    return LogOptions(
        avro_schema=log_schema(setup.schema.avro, table_name=setup.view.config.name, columns=columns),
        data_format=log_block_format(setup.view.config, setup.schema.arrow, setup.options),
        block_bytes_max=writes.LOG_BLOCK_BYTES.get(setup.options),
        read=replace(view.slice_read(setup.schema.arrow, setup.merger), stored=_stored(setup)),
        names=names,
        is_partial=is_partial,
    )


def _cdc_options(setup: WriteSetup) -> CdcOptions:
    """Return the options of logging change data. Raises: UnsupportedError for an unknown mode."""
    mode = CdcMode.of(setup.view.config.cdc_logging_mode)
    return CdcOptions(
        schema=setup.schema.arrow,
        avro_schema=cdc_avro_schema(setup.schema.avro, mode),
        block_bytes_max=writes.LOG_BLOCK_BYTES.get(setup.options),
    )
