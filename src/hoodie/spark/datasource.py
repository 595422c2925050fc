"""`format("hoodie")`: hoodie tables as a Python data source of PySpark 4, classic and Connect.

Python workers read the rows of the data source. `hoodie.open(path).read()` is faster, because Spark scans the files
itself. The data source is for programs that can only pass a format and a path, and for stores that Spark cannot read.
PySpark 3.5 has no Python data sources.

Spark evaluates the filters of a query on the rows that it gets. The data source takes no filters from Spark: Spark 4.1
to 4.3 plan a loaded DataFrame once and use the partitions of its first query for its later queries, whatever their
filters are. The option `where` prunes partitions and files. docs/data-source.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException

from hoodie.engine.inputs import table_in_memory
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.read.cdc import cdc_schema
from hoodie.read.cdc_plan import CdcPlan, plan_cdc
from hoodie.read.changes import plan_changes
from hoodie.read.lookup import plan_lookup
from hoodie.read.plan import SNAPSHOT, ScanPlan, plan_scan
from hoodie.records.condition import Condition
from hoodie.spark.datasource_writer import StreamTableWriter, TableWriter
from hoodie.spark.merged import SlicesPartition, change_partitions, slice_partitions
from hoodie.spark.stream_source import OF_STREAMS, StreamOptions, TableStreamReader, is_of_streams, stream_schema
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.table.context import TableContext
from hoodie.write.create_by_options import CREATION

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, DataSourceReader
else:
    try:
        from pyspark.sql.datasource import DataSource, DataSourceReader
    except ImportError:
        DataSource = DataSourceReader = object

_OF_SNAPSHOTS = ("as_of", "where", "view")
_OF_CHANGES = ("since", "until", "mode", "flat")
_OF_READS = (*_OF_SNAPSHOTS, "columns", "keys", *_OF_CHANGES)
_OF_WRITES = ("columns", "operation", *CREATION)
_OF_STREAMS = ("operation", *CREATION, "checkpointlocation", "queryname")
_HUDI = "hoodie."
_OF_CATALOGS = ("location", "owner", "provider", "comment", "external", "is_managed_location", "collation")
"""Properties that Spark's catalog adds to the options of a table; it repeats the others as `option.<name>`."""
_STORAGE = "storage."
_WIDER = frozenset({(pa.int32(), pa.int64()), (pa.float32(), pa.float64())})


def register(session: Any) -> None:
    """Register `format("hoodie")` in a session whose server did not find it.

    Spark finds it in the package `pyspark_hoodie` where its server can import that; then this call is not needed,
    and Spark's log says that a data source was replaced. PySpark 4.0 replaces none: it keeps the one that it found.

    Options: `as_of`, `where` and `view` as for `Table.read`; `since`, `until`, `mode` and `flat` as for
    `Table.changes`; `keys` as for `Table.read_keys`, as a list in JSON; `columns`, separated by commas;
    `storage.<option>` for the object store.

    Raises: UnsupportedError on PySpark 3.5.
    """
    if not hasattr(session, "dataSource"):
        raise UnsupportedError(
            "PySpark 3.5 has no data sources in Python: use hoodie.open(path).read(), which returns a DataFrame too"
        )
    try:
        session.dataSource.register(TableSource)
    except AnalysisException as error:
        is_found = session.version.startswith("4.0.") and error.getCondition() == "DATA_SOURCE_ALREADY_EXISTS"
        if not is_found:
            raise


@dataclass(frozen=True, slots=True)
class Span:
    """The options of a read of changes. `cdc`: each change of each commit, otherwise each changed row once."""

    since: str | None
    until: str | None
    cdc: bool
    flat: bool

    @classmethod
    def parse(cls, found: Mapping[str, str], columns: Sequence[str] | None) -> Span:
        """Parse the options. Raises: InvalidConfigError for unknown values, and for columns of change data."""
        mode, flat = found.get("mode", "latest"), found.get("flat", "false").lower()
        if mode not in ("latest", "cdc") or flat not in ("true", "false") or (mode == "latest" and flat == "true"):
            raise InvalidConfigError(
                f"mode={mode!r}, flat={flat!r}: expected mode 'latest', or 'cdc' with or without flat 'true'"
            )
        if mode == "cdc" and columns is not None:
            raise InvalidConfigError("mode='cdc' has all columns of the table: select columns of the loaded DataFrame")
        return cls(found.get("since"), found.get("until"), mode == "cdc", flat == "true")

    def plan_cdc(self, context: TableContext) -> CdcPlan:
        """Plan a read of change data. Raises: as `plan_cdc`."""
        return context.planned(lambda view: plan_cdc(view, self.since, self.until))

    def rows_of(self, plan: CdcPlan) -> pa.Schema:
        """Return the schema of change data of the plan."""
        return cdc_schema(plan.schema, flat=self.flat)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a `spark.read` call. `keys` are the values of a list in JSON."""

    store: StoreSpec
    as_of: str | None = None
    where: Condition | None = None
    columns: tuple[str, ...] | None = None
    view: str = SNAPSHOT
    keys: tuple[Any, ...] | None = None
    changes: Span | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TableOptions:
        """Parse the options of a reader; the case of option names is ignored.

        Raises: InvalidConfigError for an unknown option, options of different reads, or without a path.
        """
        store, found = store_and_options(options, _OF_READS)
        names = tuple(name.strip() for name in found["columns"].split(",")) if "columns" in found else None
        reads = [[name for name in own if name in found] for own in (_OF_SNAPSHOTS, ("keys",), _OF_CHANGES)]
        if len([own for own in reads if own]) > 1:
            given = " and ".join("/".join(own) for own in reads if own)
            raise InvalidConfigError(f"options {given} belong to different reads: filter the loaded DataFrame instead")
        return cls(
            store=store,
            as_of=found.get("as_of"),
            where=Condition.parse_optional(found.get("where") or None),
            columns=names,
            view=found.get("view", SNAPSHOT),
            keys=_keys(found["keys"]) if "keys" in found else None,
            changes=Span.parse(found, names) if reads[2] else None,
        )

    def schema(self) -> pa.Schema:
        """Return the schema of the rows. Raises: as the plans of the reads of `Table`.

        That of changes until now plans no changes: a stream asks for it whose checkpoint is behind `since`.
        """
        if self.changes is not None and self.changes.until is None:
            return stream_schema(self._context(), cdc=self.changes.cdc, flat=self.changes.flat, columns=self.columns)
        if self.changes is not None and self.changes.cdc:
            return self.changes.rows_of(self.changes.plan_cdc(self._context()))
        return self.plan().output_schema

    def partitions(self, schema: pa.Schema) -> list[SlicesPartition]:
        """Plan the read of rows of this schema: one Spark partition for about 64 MiB of files, at least one.

        Raises: as the plans of the reads of `Table`; as `check_schema`.
        """
        if self.changes is not None and self.changes.cdc:
            changes = self.changes.plan_cdc(self._context())
            check_schema(self.changes.rows_of(changes), schema)
            return change_partitions(changes, schema, flat=self.changes.flat)
        plan = self.plan(schema.names)
        check_schema(plan.output_schema, schema)
        return slice_partitions(self.store, plan, schema)

    def _context(self) -> TableContext:
        return TableContext(open_store(self.store), spark=False)

    def plan(self, columns: Sequence[str] | None = None) -> ScanPlan:
        """Plan the scan on the newest commit, or `as_of`. Raises: as the plans of the reads of `Table`."""
        context = self._context()
        chosen = self.columns if columns is None else columns
        if self.changes is not None:
            since, until = self.changes.since, self.changes.until
            plan = context.planned(lambda view: plan_changes(view, since, until))
            return plan.with_columns(chosen)
        if self.keys is not None:
            view = context.view()
            wanted = table_in_memory(context.keys(list(self.keys), view))
            return context.planned(lambda view: plan_lookup(view, wanted), view).with_columns(chosen)
        return context.planned(
            lambda view: plan_scan(view, columns=chosen, where=self.where, as_of=self.as_of, kind=self.view)
        )


def check_schema(found: pa.Schema, wanted: pa.Schema) -> None:
    """Check the schema of a read, which the caller may have given (`spark.read.schema`): no value may change by it.

    It may have some of the columns and nested fields, in any order, and int as long and float as double.

    Raises: SchemaMismatchError that names the first column that the rows do not have, or have with another type.
    """
    types = {field.name: field.type for field in arrow_schema_of(spark_schema_of(found))}
    for field in wanted:
        if field.name not in types or not _is_readable_as(types[field.name], field.type):
            there = f"has type {types[field.name]}" if field.name in types else f"is not in {', '.join(types)}"
            raise SchemaMismatchError(
                f"column {field.name!r} {there}, and the schema of this read expects {field.type}: load the table "
                "without a schema, or again if it was changed since, and cast the columns of the DataFrame"
            )


def _is_readable_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        known = {child.name: child.type for child in found.fields}
        return all(child.name in known and _is_readable_as(known[child.name], child.type) for child in wanted.fields)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _is_readable_as(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return bool(found.key_type == wanted.key_type) and _is_readable_as(found.item_type, wanted.item_type)
    return bool(found == wanted) or (found, wanted) in _WIDER


def store_and_options(
    options: Mapping[str, str], known: Sequence[str], *, with_hudi: bool = False
) -> tuple[StoreSpec, dict[str, str]]:
    """Return the store of the option `path`, and the other options with names in lower case.

    Raises: InvalidConfigError for an option that is not known, or without a path; `with_hudi`: options `hoodie.*` are
        known.
    """
    found = {name.lower(): value for name, value in options.items()}
    storage = {name.removeprefix(_STORAGE): value for name, value in found.items() if name.startswith(_STORAGE)}
    own = {
        name: value
        for name, value in found.items()
        if name not in ("path", *_OF_CATALOGS) and not name.startswith((_STORAGE, "option."))
    }
    unknown = sorted(name for name in own if name not in known and not (with_hudi and name.startswith(_HUDI)))
    if unknown or "path" not in found:
        no_path = "no path: call load(path) or save(path); in SQL, tables of the catalog need WITH (path = '...')"
        what = f"unknown options {unknown}" if unknown else no_path
        more = f", {_HUDI}<name>" if with_hudi else ""
        raise InvalidConfigError(f"{what}; the options are path, {', '.join(known)}{more} and {_STORAGE}<name>")
    return open_store(found["path"], storage).spec, own


def _keys(text: str) -> tuple[Any, ...]:
    """Parse the option `keys`. Raises: InvalidConfigError."""
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, list) or not keys:
        raise InvalidConfigError(f'keys={text!r}: expected a list of record keys in JSON, such as ["a", "b"]')
    return tuple(keys)


class TableSource(DataSource):
    """The data source `hoodie`. Spark creates one for every `load`, and requests its schema and its reader."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hoodie"

    def schema(self) -> Any:
        """Return the Spark schema of the chosen columns, as of the newest commit or `as_of`."""
        store, found = store_and_options(self.options, (*_OF_READS, *OF_STREAMS), with_hudi=True)
        if is_of_streams(found):
            options = StreamOptions.parse(store, found)
            context = TableContext(open_store(store), spark=False)
            found_schema = stream_schema(context, cdc=options.cdc, flat=options.flat, columns=options.columns)
            return spark_schema_of(found_schema)
        return spark_schema_of(TableOptions.parse(self.options).schema())

    def reader(self, schema: Any) -> TableReader:
        """Return a reader of rows of this schema."""
        return TableReader(TableOptions.parse(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> TableWriter:
        """Return a writer of rows of this schema, after a check of the table, the options and the columns.

        Raises: as `TableWriter.of`.
        """
        store, found = store_and_options(self.options, _OF_WRITES, with_hudi=True)
        return TableWriter.of(store, found, schema, overwrite=overwrite)

    def streamReader(self, schema: Any) -> TableStreamReader:
        """Return the reader of a stream of rows of this schema. Raises: InvalidConfigError."""
        store, found = store_and_options(self.options, (*_OF_READS, *OF_STREAMS), with_hudi=True)
        return TableStreamReader(StreamOptions.parse(store, found), schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamTableWriter:
        """Return a writer of one batch of a stream of rows of this schema, after the checks of `writer`.

        Raises: as `StreamTableWriter.of`.
        """
        store, found = store_and_options(self.options, _OF_STREAMS, with_hudi=True)
        return StreamTableWriter.of(store, found, schema, overwrite=overwrite)


class TableReader(DataSourceReader):
    """Plan the read in one Python process, then read in the workers."""

    def __init__(self, options: TableOptions, schema: Any) -> None:
        self._options = options
        self._schema = arrow_schema_of(schema)

    def partitions(self) -> Sequence[Any]:
        """Return one Spark partition for about 64 MiB of files. Partitions of the table are pruned."""
        return self._options.partitions(self._schema)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition; runs in a worker. Memory: as `SlicesPartition.batches`."""
        pa.set_cpu_count(1)
        yield from partition.batches()
