"""What `df.write.format("hudi").save(path)` means: operation and save mode as in JVM Hudi; docs/data-source.md.

A `Save` is made of the options, checked against the table before any row is written, and run with the rows. The data
source runs it with staged rows, a registered session with the DataFrame.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.config import compaction, writes
from hoodie.engine import Dataset, TaskContext
from hoodie.errors import HoodieWarning, InvalidConfigError
from hoodie.files.table_properties import read_table_config
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store
from hoodie.table.handle import Table
from hoodie.view.listing import list_files
from hoodie.view.table_state import TableState
from hoodie.write.create_by_options import TableOptions
from hoodie.write.delete_partitions import partitions_of
from hoodie.write.drop_table import drop_table
from hoodie.write.jobs import key_source_of, preparation_of
from hoodie.write.result import WriteResult
from hoodie.write.setup import check_write

_DELETES: Final = ("delete", "delete_partition")
_REPLACES: Final = ("insert_overwrite_table", "insert_overwrite")
OPERATIONS: Final = ("upsert", "insert", "bulk_insert", *_DELETES, *_REPLACES)
ASYNC_COMPACTION: Final = "hoodie.datasource.compaction.async.enable"
_DROPS_DUPLICATES: Final = "hoodie.datasource.write.insert.drop.duplicates"
_REPLACED: Final = (
    "mode overwrite deleted the table with its history, and created it anew, because the options or the columns define "
    "another table"
)
_PARTITIONS: Final = "hoodie.datasource.write.partitions.to.delete"


def inline_services(config: TableConfig, options: Mapping[str, str]) -> dict[str, str]:
    """Return the services that JVM Hudi's data source and SQL turn on unless options or the table's properties do.

    A merge-on-read table is compacted inline, unless the options leave that to another process.
    """
    chosen = (compaction.COMPACT_INLINE.key, compaction.COMPACT_SCHEDULE_INLINE.key)
    is_chosen = any(key in options or key in config.raw for key in chosen)
    if config.table_type is not TableType.MERGE_ON_READ or is_chosen:
        return {}
    return {} if options.get(ASYNC_COMPACTION, "").strip().lower() == "true" else {chosen[0]: "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """One write by options. `operation`: a value of `OPERATIONS`; empty: upsert if there are record keys, else insert.

    `properties`: the other `hoodie.*` options. `partitions`: of `delete_partition`; None: those of the rows. Of
    `insert_overwrite`: those that are replaced by no rows too.
    `is_new`: mode overwrite gives the table another definition, so that the table is created anew.
    `has_inline_services`: the write runs `inline_services`.
    """

    table: TableOptions
    operation: str
    overwrites: bool
    properties: Mapping[str, str]
    partitions: tuple[str, ...] | None = None
    is_new: bool = False
    has_inline_services: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str], *, overwrites: bool, defaults: Mapping[str, str] | None = None) -> Save:
        """Parse the options; `overwrites`: the save mode is overwrite. `defaults`: properties of tables it creates.

        With `defaults`, which JVM Hudi's data source has, the write has its services too.

        Raises: InvalidConfigError for an operation that is unknown, or that the mode does not have; as
            `TableOptions.split`.
        """
        given = dict(options)
        partitions = given.pop(_PARTITIONS, None)
        table, rest = TableOptions.split(given)
        operation = rest.pop("operation", "")
        if operation and operation not in OPERATIONS:
            raise InvalidConfigError(f"operation={operation!r}: expected one of {', '.join(OPERATIONS)}")
        if overwrites and operation in _DELETES:
            raise InvalidConfigError(f"operation={operation!r} takes the mode 'append' only: it replaces no rows")
        if partitions is not None and operation != "delete_partition":
            raise InvalidConfigError(f"{_PARTITIONS} belongs to operation='delete_partition', not to {operation!r}")
        if operation == "insert" and options.get(_DROPS_DUPLICATES, "").strip().lower() == "true":
            rest.setdefault(writes.COMBINE_BEFORE_INSERT.key, "true")  # those of the data are dropped too
        return cls(
            table=replace(table, defaults=defaults or {}),
            operation=operation,
            overwrites=overwrites,
            properties=table.of_calls | {name: value for name, value in rest.items() if name.startswith("hoodie.")},
            partitions=None if partitions is None else tuple(part.strip() for part in partitions.split(",")),
            has_inline_services=bool(defaults),
        )

    def checked(self, store: Store, schema: pa.Schema, rows: Dataset) -> Save:
        """Return the save with what depends on the table. A table that does not exist is created.

        `rows` has the columns of the data, and no row.

        Raises: TableNotFoundError for a table that the options do not define; the errors that the write would raise
            before it changes anything.
        """
        replaces = self.overwrites and self.operation != "insert_overwrite_table"
        may_create = self.operation not in _DELETES
        is_created = self.table.ensure(store, schema, self.properties, may_create=may_create, compares=not replaces)
        found = self._for_table(store, schema, is_replaced=replaces and not is_created)
        if found.is_new:
            found._check(found.table.scratch(schema, self.properties), rows)
        else:
            found._check(store, rows)
        return found

    def _for_table(self, store: Store, schema: pa.Schema, *, is_replaced: bool) -> Save:
        """Return the save with an operation, and with what mode overwrite does to this table."""
        is_new = is_replaced and not self.table.defines(store, schema, self.properties)
        config = read_table_config(self.table.scratch(schema, self.properties) if is_new else store)
        has_keys, names_rows = bool(config.record_key_fields), RECORD_KEY in schema.names
        operation = self.operation or ("upsert" if has_keys or names_rows else "insert")
        if operation == "upsert" and not has_keys and (not names_rows or self.overwrites):
            operation = "insert"  # there are no keys to find records by; JVM Hudi inserts too
        services = inline_services(config, self.all_properties) if self.has_inline_services else {}
        properties = {**self.properties, **services}
        if not is_replaced or is_new:
            return replace(self, operation=operation, is_new=is_new, properties=properties)
        properties.pop(writes.INSERT_DUP_POLICY.key, None)  # the rows that it compares with are replaced
        if operation == "upsert":
            properties[writes.COMBINE_BEFORE_INSERT.key] = "true"
        return replace(self, operation="insert_overwrite_table", properties=properties)

    def _check(self, store: Store, rows: Dataset) -> None:
        setup = check_write(self._call(store), None if self.operation in _DELETES else rows)
        if self.operation != "delete_partition":
            preparation_of(setup)

    def _call(self, store: Store) -> Call:
        return Call(state=TableState(store).for_call(self.properties), properties=self.properties)

    @property
    def all_properties(self) -> dict[str, str]:
        """The options of the write, and those without effect, which its result names."""
        return {**self.properties, **self.table.idle}

    def run(self, table: Table, rows: Any, *, staged: str | None = None) -> WriteResult | None:
        """Write the rows as one commit; None if there was nothing to do. `staged`: the folder of staged rows.

        Rows that replace a table by another one are read twice: keys, partition paths and types of all rows are
        checked before the old table is deleted. A note of the result reports the replacement.

        Raises: as the method of `Table` for the operation; as `drop_table`.
        """
        if self.operation == "delete_partition":
            return self._delete_partitions(table, rows)
        if self.is_new:
            state = table._context.state
            self._check_rows(rows)
            drop_table(state, kept=staged, properties=self.properties)
            self.table.ensure(state.store, rows.schema, self.properties, may_create=True)
        named = {} if self.partitions is None else {"partitions": self.partitions}
        result: WriteResult = getattr(table, self.operation)(rows, properties=self.all_properties, **named)
        return replace(result, notes=(_REPLACED, *result.notes)) if self.is_new else result

    def _check_rows(self, rows: Dataset) -> None:
        """Raise the errors of wrong rows, which a write finds when it stages them: keys, partition paths, values."""
        setup = check_write(self._call(self.table.scratch(rows.schema, self.properties)), rows)
        operation = WriteOperation.UPSERT if self.operation == "upsert" else WriteOperation.INSERT
        preparation = preparation_of(setup, key_source=key_source_of(setup, operation))
        setup.call.engine.process(rows, preparation, preparation.prepared_schema, _drop)

    def _delete_partitions(self, table: Table, rows: Any) -> WriteResult | None:
        view = table.view()
        known = set(list_files(view))
        wanted = set(partitions_of(view, rows, self.properties) if self.partitions is None else self.partitions)
        if unknown := sorted(wanted - known):
            text = f"delete_partition: {table.path} has no partitions {unknown[:10]}; nothing was deleted of them"
            warnings.warn(text, HoodieWarning, stacklevel=4)
        found = sorted(wanted & known)
        return table.delete_partitions(found, properties=self.all_properties) if found else None


def _drop(batches: Iterator[pa.RecordBatch], _context: TaskContext) -> list[None]:
    for _ in batches:
        pass
    return []
