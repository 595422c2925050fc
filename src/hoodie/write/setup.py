"""Set up a write before it changes anything: options, schema, key generator, merger, and the check of the table.

All errors of this module are raised before the timeline changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.commit.call import Call, Wait
from hoodie.commit.column_ids import check_columns_have_ids
from hoodie.commit.conflicts import known_schema
from hoodie.commit.data_commit import REBUILT_NOTE
from hoodie.commit.metadata_table import lost_partitions
from hoodie.commit.writable import check_writable
from hoodie.commit.write_instant import WriteInstant, write_instant
from hoodie.config import indexes, writes
from hoodie.engine import Dataset, LocalEngine, UntypedDataset
from hoodie.errors import (
    CommitConflictError,
    MetadataPartitionMissingError,
    MetadataTableMissingError,
    UnsupportedError,
)
from hoodie.files.logs.log_file import LogNames, log_block_format
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged_keys import KeyStage
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.log.cdc_block import CdcMode, cdc_avro_schema
from hoodie.format.log.data_block import log_schema
from hoodie.format.schema.evolution import schema_changes
from hoodie.format.schema.required import Paths, with_required
from hoodie.format.schema.table_schema import new_table_avro, with_meta_fields
from hoodie.format.table.call_options import check_texts, config_of_call
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index import (
    INDEXES,
    Index,
    Purpose,
    TagRequest,
    breaks_new_index,
    index_kind,
    index_of,
    lost_record_index,
    partition_follows_columns,
)
from hoodie.index.record import EntryStage
from hoodie.index.record.building.plan import pending_indexing
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.registry import KINDS, parquet_options
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.records.merging.merge import RecordMerger, fitted_merger, table_merger
from hoodie.services.indexing.rebuild import build_lost_index, finish_dead_build, give_up_lost, rebuild_listing
from hoodie.storage import asks_ahead, forget_answers
from hoodie.timeline import Action
from hoodie.view.ahead import ask_for_columns, ask_for_view
from hoodie.view.columns import stored_columns
from hoodie.view.pending_plans import compactions_by_group
from hoodie.view.slices import data_table
from hoodie.view.stored_keys import check_given_paths, view_key_generator
from hoodie.view.table_view import TableSchema, TableView
from hoodie.write.files.context import CdcOptions, FileSizing, LogOptions, WriteContext
from hoodie.write.options import (
    check_concurrency,
    check_moves_merge,
    check_no_duplicates,
    checked_options,
    evolved_schema,
    filled_columns,
    ignored_columns,
)
from hoodie.write.plan import Storage
from hoodie.write.retry import Retries
from hoodie.write.staging import Preparation, Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSetup:
    """The facts of one write. `schema` is the table's schema, evolved by the incoming data.

    `data`: the caller's rows, with the table's types where they had none; None if the call has partial rows or no rows.
    `changed`: the columns that a partial update sets; its rows have only these columns and the key, partition and
    ordering columns. None for whole rows.
    `loose`: columns that allow no null in the table, and whose rows were not seen yet.
    """

    call: Call
    view: TableView
    schema: TableSchema
    key_generator: KeyGenerator
    merger: RecordMerger
    index: Index
    options: Mapping[str, str]
    changed: tuple[str, ...] | None = None
    data: Dataset | None = None
    notes: tuple[str, ...] = ()
    loose: Paths = frozenset()

    @classmethod
    def of(
        cls, call: Call, data: Dataset | None, *, changed: tuple[str, ...] | None = None, looks_up: bool = False
    ) -> WriteSetup:
        """Collect the facts, and build a record index that is missing.

        `data` has whole rows, None if the call has partial rows or no rows. `looks_up`: the write may look up keys.

        Raises: as `without_repair`.
        """
        if asks_ahead(call.state.store):
            forget_answers()
            # In any order: `key_stage` takes from the index only the number of its file groups.
            index = _index_partition(call.state.last_config()) if looks_up else None
            ask_for_view(call.state, () if index is None else (index.name,))
        setup = cls.without_repair(call, data, changed=changed).without_lost_partitions()
        if setup.data is not None and not setup.has_automatic_keys:
            setup = replace(setup, notes=(*setup.notes, *ignored_columns(setup.data.schema.names)))
        setup = replace(setup, notes=(*setup.notes, *KINDS.notes(data_table(setup.view), call.properties)))
        if lost_record_index(setup.view) is None and not pending_indexing(setup.view):
            return setup
        return setup.with_index_again(*finish_dead_build(call.state))

    @classmethod
    def without_repair(cls, call: Call, data: Dataset | None, *, changed: tuple[str, ...] | None = None) -> WriteSetup:
        """Collect the facts; nothing is changed. Raises: UnsupportedError, InvalidConfigError, SchemaMismatchError."""
        view = TableView.load(call.state)
        ask_for_columns(view)
        check_writable(view, reads_skeletons=True)
        check_texts("extra_metadata", call.extra_metadata)
        effective = checked_options(view.config, call.properties)
        merger = table_merger(config_of_call(view.config, call.properties))
        index = index_of(view, effective)
        if view.config.partition_fields:
            check_moves_merge(index_kind(index.name), effective, merger)
        check_concurrency(view, index, effective)
        if isinstance(data, UntypedDataset):
            key_fields = (*view.config.record_key_fields, *view.config.partition_fields)
            data = data.typed(view.schema().arrow, key_fields)
        schema, loose = (view.schema(), frozenset()) if data is None else evolved_schema(view, data, effective)
        check_columns_have_ids(view, schema.arrow)
        merger = fitted_merger(merger, schema.arrow, view.config)
        key_generator = view_key_generator(view, call.properties)
        if partition_follows_columns(view.config):
            check_given_paths(view, key_generator, call.properties)
        return cls(
            call=call,
            view=view,
            schema=schema,
            key_generator=replace(key_generator, path_limits=view.store.spec.folder_limits),
            merger=merger,
            index=index,
            options=effective,
            changed=changed,
            data=data,
            loose=loose,
            notes=() if data is None else filled_columns(view.schema().arrow, data.schema),
        )

    def without_lost_partitions(self) -> WriteSetup:
        """Drop the metadata partitions that a restore by the JVM emptied; return the setup with the table after that.

        They are looked for only if the active timeline has a restore.
        """
        restored = any(found.action is Action.RESTORE for found in self.view.timeline.completed())
        if not restored or not self.view.config.has_metadata_table:
            return self
        try:
            lost = lost_partitions(self.view)
        except MetadataTableMissingError:
            return self  # the commit builds the metadata table anew
        if not lost:
            return self
        notes = give_up_lost(self.call.state)
        view = TableView.load(self.call.state)
        return replace(self, view=view, index=index_of(view, self.options), notes=(*self.notes, *notes))

    def with_index_again(self, *notes: str) -> WriteSetup:
        """Build the record index if the table asks for one and has none; return the setup with the table after that."""
        built = self.build_lost_index()
        view = TableView.load(self.call.state)
        found = (*self.notes, *notes, *built)
        return replace(self, view=view, index=index_of(view, self.options), notes=found)

    def build_lost_index(self) -> tuple[str, ...]:
        """Build a record index that is missing, if its size allows it; return notes about it."""
        call = Call(state=self.call.state, engine=self.call.engine, properties=self.options, wait=Wait(0.0))
        return build_lost_index(call, bytes_max=indexes.INDEX_REBUILD_BYTES_MAX.get(self.options))

    def staging_keys(self) -> tuple[WriteSetup, KeyStage | None]:
        """Return how to stage keys for the index. A metadata table or an index that is missing is built anew first.

        The setup that is returned has the table after that.
        """
        try:
            return self, self.index.key_stage(self.merger)
        except MetadataTableMissingError:
            setup = self.with_index_again(*rebuild_listing(self.call.state), REBUILT_NOTE)
        except MetadataPartitionMissingError:
            setup = self.with_index_again(*give_up_lost(self.call.state))
        return setup, setup.index.key_stage(setup.merger)

    def settled(self, nulls: Paths) -> WriteSetup:
        """Return the setup after all rows were seen: of the loose columns, those without a null allow none again."""
        if not self.loose:
            return self
        current = self.view.schema()
        columns = with_required(self.schema.arrow, self.loose - nulls)
        if columns == current.arrow:
            return replace(self, schema=current, loose=frozenset())
        schema = TableSchema(columns, new_table_avro(columns, table_name=self.view.config.name))
        return replace(self, schema=schema, loose=frozenset())

    @property
    def schema_changes(self) -> tuple[str, ...]:
        """Return texts of what the data changed in the table's schema."""
        return schema_changes(self.view.schema().arrow, self.schema.arrow)

    @property
    def staged_schema(self) -> pa.Schema:
        """Return the staged columns: all columns, or those that a partial update requires, in the table's order."""
        if self.changed is None:
            return self.schema.arrow
        config = self.view.config
        naming = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
        wanted = {*naming, *self.written_schema.names}
        return pa.schema([field for field in self.schema.arrow if field.name in wanted])

    @property
    def written_schema(self) -> pa.Schema:
        """Return the columns that are written to files."""
        if self.changed is None:
            return self.schema.arrow
        wanted = {*self.changed, *self.merger.ordering_columns}
        return pa.schema([field for field in self.schema.arrow if field.name in wanted])

    @property
    def has_automatic_keys(self) -> bool:
        """Whether the table has no record key fields, so that inserts get new keys."""
        return not self.view.config.record_key_fields

    def key_source(self, operation: WriteOperation) -> KeySource:
        """Return where the record keys of the rows come from.

        With automatic keys, inserts get new keys; updates and deletes name stored records by `_hoodie_record_key`.

        Raises: UnsupportedError for an upsert without stored keys into a table with automatic keys; InvalidConfigError
            if the options of an insert contradict automatic keys.
        """
        if not self.has_automatic_keys:
            return KeySource.COLUMNS
        if operation is WriteOperation.UPSERT:
            if self.data is not None and RECORD_KEY not in self.data.schema.names:
                raise UnsupportedError(
                    f"upsert: {self.view.store.uri('')} makes its record keys automatically, so the rows do not say "
                    f"which records they change: call insert to add them, update or delete_where to change records by "
                    f"a condition, or upsert rows that were read from the table with their {RECORD_KEY}"
                )
            return KeySource.STORED
        if operation is WriteOperation.DELETE:
            return KeySource.STORED
        check_no_duplicates(self.options)
        return KeySource.AUTOMATIC

    def preparation(
        self, *, key_source: KeySource = KeySource.COLUMNS, keys_only: bool = False, buckets: int = 0
    ) -> Preparation:
        """Return the preparation of this write's data, its first step. Raises: as `KeyGenerator.expect_known_paths`."""
        self.key_generator.expect_known_paths()
        rule = config_of_call(self.view.config, self.call.properties).merge_rule
        return Preparation(
            schema=self.staged_schema,
            key_generator=self.key_generator,
            key_source=key_source,
            delete_field=rule.delete_field,
            delete_marker=rule.delete_marker,
            keys_only=keys_only,
            any_partition=self.index.is_global,
            buckets=buckets,
            loose=self.loose,
            path_columns=self.view.config.path_fields,
            stores_keys=self.view.config.populates_meta_fields,
        )

    def context(
        self, write: WriteInstant, *, combine: bool, merge_stored: bool, entries: EntryStage | None = None
    ) -> WriteContext:
        """Return the facts that the workers of a write share."""
        return WriteContext(
            store=self.view.store.spec,
            schema=self.written_schema,
            merger=self.merger,
            instant_time=write.instant_time,
            combine=combine,
            merge_stored=merge_stored,
            has_automatic_keys=self.has_automatic_keys,
            parquet=parquet_options(data_table(self.view), self.options, self.schema.arrow),
            sizing=self.sizing,
            entries=entries,
            stored=self._stored,
            log=self._log_options(write.view) if self.is_merge_on_read else None,
            cdc=self._cdc_options() if self.view.config.is_cdc_enabled else None,
        )

    @property
    def _stored(self) -> StoredColumns:
        """How the table's files differ from its columns."""
        return stored_columns(self.view, with_meta_fields(self.schema.arrow))

    def _log_options(self, view: TableView) -> LogOptions:
        """Return the options of appending to log files of file slices of `view`."""
        columns = None if self.changed is None else self.written_schema.names
        return LogOptions(
            avro_schema=log_schema(self.schema.avro, table_name=self.view.config.name, columns=columns),
            data_format=log_block_format(self.view.config, self.schema.arrow, self.options),
            block_bytes_max=writes.LOG_BLOCK_BYTES.get(self.options),
            read=replace(view.slice_read(self.schema.arrow, self.merger), stored=self._stored),
            names=_log_names(view),
            is_partial=self.changed is not None,
        )

    def _cdc_options(self) -> CdcOptions:
        """Return the options of logging change data. Raises: UnsupportedError for an unknown mode."""
        mode = CdcMode.of(self.view.config.cdc_logging_mode)
        return CdcOptions(
            schema=self.schema.arrow,
            avro_schema=cdc_avro_schema(self.schema.avro, mode),
            block_bytes_max=writes.LOG_BLOCK_BYTES.get(self.options),
        )

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table is a merge-on-read table: changes are appended to log files."""
        return self.view.config.table_type is TableType.MERGE_ON_READ

    @property
    def write_action(self) -> Action:
        """Return the action of a write that replaces no file groups."""
        return Action.DELTA_COMMIT if self.is_merge_on_read else Action.COMMIT

    def storage(self, *, is_indexed: bool) -> Storage:
        """Return how changes of existing file groups are stored.

        Rows whose keys were not looked up are not appended to log files: a read would merge a logged row with other
        rows of its key.
        """
        if not self.is_merge_on_read:
            return Storage.REWRITE
        return Storage.APPEND if is_indexed and self.index.indexes_logs else Storage.APPEND_UPDATES

    @property
    def sizing(self) -> FileSizing:
        """Return the sizes that place inserts."""
        return FileSizing(
            max_file_bytes=writes.MAX_FILE_BYTES.get(self.options),
            small_file_bytes=writes.SMALL_FILE_BYTES.get(self.options),
        )

    def skeletons(self, slices: Sequence[FileSlice]) -> set[tuple[str, str]]:
        """Return the file groups with a skeleton file. Inserts stay out of them: its size is not that of its rows."""
        source = self._stored.source
        if source is None:
            return set()
        bases = [found.base_file for found in slices if found.base_file is not None]
        return {(base.partition_path, base.file_id) for base in bases if source.is_of(base)}

    @property
    def places_rows(self) -> bool:
        """Whether the index decides the file group of every row, so that all writes tag their rows."""
        return index_kind(self.index.name).places_rows

    def merges(self, operation: WriteOperation) -> bool:
        """Return whether rows with known keys change the stored rows; inserts add their rows.

        Inserts merge too if they are appended to the file group of their key: a read merges the rows of a log file.
        """
        if operation not in (WriteOperation.INSERT, WriteOperation.BULK_INSERT):
            return True
        return self.places_rows and self.is_merge_on_read

    def tag_request(self, staged: Staged, folder: str, purpose: Purpose = Purpose.MERGE) -> TagRequest:
        """Return the request to tag the staged rows; hits are staged in `folder`."""
        return TagRequest(
            schema=self.schema.arrow,
            merger=self.merger,
            runs=staged.runs,
            keys=staged.keys,
            key_groups=staged.key_groups,
            stage_folder=folder,
            engine_for=self.call.engine_for,
            purpose=purpose,
        )

    @contextmanager
    def begin(
        self, action: Action, operation: WriteOperation, plan: bytes = b"", *, reads: Collection[str] | None = None
    ) -> Iterator[WriteInstant]:
        """Begin the write's instant, if the table's schema did not change after this setup was made.

        `reads`: as for `begin_write`.

        Raises: CommitConflictError if the schema changed, or the index was switched.
        """
        with write_instant(
            self.call.state,
            action,
            operation,
            plan,
            index=self.index,
            baseline=self.call.baseline,
            engine_for=self.call.engine_for,
            properties=self.call.properties,
            reads=reads,
        ) as write:
            if known_schema(write.view) != known_schema(self.view):
                raise CommitConflictError(
                    f"another writer changed the schema of {write.view.store.uri('')} while this write was prepared; "
                    "nothing was committed, try again"
                )
            if breaks_new_index(self.view.config, write.view.config):
                raise CommitConflictError(
                    f"the index of {write.view.store.uri('')} was switched while this write was prepared; nothing was "
                    "committed, try again"
                )
            if self.call.guard is not None:
                self.call.guard(write.view)
                write.guard = self.call.guard
            write.options = self.options
            write.notes += self.notes
            yield write
        if REBUILT_NOTE in write.notes[len(self.notes) :]:
            write.notes += self.build_lost_index()

    def retries(self) -> Retries:
        """Return how often this write is tried again after a conflict; never here if its rows were read before."""
        return Retries(0) if self.call.baseline is not None else Retries.of(self.options)

    @property
    def is_in_process(self) -> bool:
        """Whether all work of this write runs on threads of this process, however large it is."""
        return isinstance(self.call.engine, LocalEngine)


def _log_names(view: TableView) -> LogNames:
    """Return how log files are named. Raises: CorruptFileError if the plan of a pending compaction is damaged."""
    if not view.config.version.log_name_has_base_instant:
        return LogNames()
    return LogNames(has_base_instant=True, compacted=compactions_by_group(view))


def _index_partition(config: TableConfig) -> PartitionKind | None:
    """Return the metadata partition that keys are looked up in; None for other indexes."""
    return next((kind.metadata_partition for kind in INDEXES if kind.needs_one_of(config.metadata_partitions)), None)
