"""Set up a write: check the call against the table, mend the table, and collect the facts that the write goes by.

All errors of this module are raised before the timeline changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.commit.column_ids import check_columns_have_ids
from hoodie.commit.writable import check_writable
from hoodie.engine import Dataset, UntypedDataset
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.schema.required import Paths, with_required
from hoodie.format.schema.table_schema import new_table_avro
from hoodie.format.table.call_options import check_texts, config_of_call
from hoodie.format.table.table_config import TableType
from hoodie.index import INDEXES, Index, index_kind, index_of, partition_follows_columns
from hoodie.metadata.kinds.registry import KINDS
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.records.merging.merge import RecordMerger, check_defaults, fitted_merger, table_merger
from hoodie.storage import asks_ahead, forget_answers
from hoodie.view.ahead import ask_for_columns, ask_for_view
from hoodie.view.slices import data_table
from hoodie.view.stored_keys import check_given_paths, view_key_generator
from hoodie.view.table_view import TableSchema, TableView
from hoodie.write.mend import mend
from hoodie.write.options import (
    check_concurrency,
    check_moves_merge,
    checked_options,
    evolved_schema,
    filled_columns,
    ignored_columns,
    wants_look_up,
)

_LOOK_UP = frozenset({WriteOperation.UPSERT, WriteOperation.DELETE, WriteOperation.INSERT})
"""Operations that can look up keys."""
_LOOKED_UP = {kind.metadata_partition.name for kind in INDEXES if kind.metadata_partition is not None}
"""Metadata partitions that are looked up, in tables that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSetup:
    """The facts of one write. `schema` is the table's schema, evolved by the incoming data.

    `data`: the caller's rows, with the table's types where they had none; None if the call has partial rows or no rows.
    `changed`: the columns that a partial update sets; its rows have only these columns and the key, partition and
    ordering columns, which decide between rows of a batch in any case. None for whole rows.
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

    def settled(self, nulls: Paths) -> WriteSetup:
        """Return the setup after all rows were seen: of the loose columns, those without a null allow none again."""
        if not self.loose:
            return self
        schema = self.view.schema()
        columns = with_required(self.schema.arrow, self.loose - nulls)
        if columns != schema.arrow:
            schema = TableSchema(columns, new_table_avro(columns, table_name=self.view.config.name))
        return replace(self, schema=schema, loose=frozenset())

    @property
    def rows(self) -> Dataset:
        """The data of a call with whole rows."""
        assert self.data is not None
        return self.data

    @property
    def written_schema(self) -> pa.Schema:
        """Return the columns that are written to files."""
        if self.changed is None:
            return self.schema.arrow
        wanted = {*self.changed, *self.merger.ordering_fields}
        return pa.schema([field for field in self.schema.arrow if field.name in wanted])

    @property
    def has_automatic_keys(self) -> bool:
        """Whether the table has no record key fields, so that inserts get new keys."""
        return not self.view.config.record_key_fields

    @property
    def is_merge_on_read(self) -> bool:
        """Whether the table is a merge-on-read table: changes are appended to log files."""
        return self.view.config.table_type is TableType.MERGE_ON_READ

    @property
    def places_rows(self) -> bool:
        """Whether the index decides the file group of every row, so that all writes tag their rows."""
        return index_kind(self.index.name).places_rows


def set_up(
    call: Call, operation: WriteOperation, data: Dataset | None, *, changed: tuple[str, ...] | None = None
) -> WriteSetup:
    """Check the call, mend the table, and return the facts of the write.

    `data` has whole rows, None if the call has partial rows or no rows. Raises: as `check_write`.
    """
    if asks_ahead(call.state.store):
        forget_answers()
        # In any order: `key_stage` takes from the index only the number of its file groups.
        ask_for_view(call.state, _LOOKED_UP if operation in _LOOK_UP else (), columns=True)
    setup = check_write(call, data, changed=changed)
    looks_up = wants_look_up(operation, setup.view.config, setup.data, setup.options)
    view, mended = mend(call, setup.view, looks_up=looks_up)
    notes = [*setup.notes, *mended]
    if setup.data is not None and not setup.has_automatic_keys:
        notes += ignored_columns(setup.data.schema.names)
    notes += KINDS.notes(data_table(view), call.properties)
    index = setup.index if view is setup.view else index_of(view, setup.options)
    return replace(setup, view=view, index=index, notes=tuple(notes))


def check_write(call: Call, data: Dataset | None, *, changed: tuple[str, ...] | None = None) -> WriteSetup:
    """Check a call against the table, and return its facts; nothing is changed.

    Raises: UnsupportedError, InvalidConfigError, SchemaMismatchError.
    """
    view = call.load()
    ask_for_columns(view)
    check_writable(view, reads_skeletons=True)
    check_texts("extra_metadata", call.extra_metadata)
    options = checked_options(view.config, call.properties)
    of_call = config_of_call(view.config, call.properties)
    merger = table_merger(of_call)
    check_defaults(of_call, lambda: view.schema().avro)
    index = index_of(view, options)
    if view.config.partition_fields:
        check_moves_merge(index_kind(index.name), options, merger)
    check_concurrency(view, index, options)
    if isinstance(data, UntypedDataset):
        data = data.typed(view.schema().arrow)
    schema, loose = (view.schema(), frozenset()) if data is None else evolved_schema(view, data, options)
    check_columns_have_ids(view, schema.arrow)
    key_generator = view_key_generator(view, call.properties)
    if partition_follows_columns(view.config):
        check_given_paths(view, key_generator, call.properties)
    if data is not None:
        key_generator.expect_known_paths()
    return WriteSetup(
        call=call,
        view=view,
        schema=schema,
        key_generator=replace(key_generator, path_limits=view.store.spec.folder_limits),
        merger=fitted_merger(merger, schema.arrow, view.config),
        index=index,
        options=options,
        changed=changed,
        data=data,
        loose=loose,
        notes=() if data is None else filled_columns(view.schema().arrow, data.schema),
    )
