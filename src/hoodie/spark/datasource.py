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

from hoodie.engine.selection import table_in_memory
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.read.changes import plan_changes
from hoodie.read.local import SliceScan
from hoodie.read.lookup import plan_lookup
from hoodie.read.plan import SNAPSHOT, ScanPlan, plan_scan
from hoodie.read.slice_groups import balanced
from hoodie.records.condition import Condition
from hoodie.spark.datasource_writer import TableWriter
from hoodie.spark.merged import SliceReader
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.table.context import TableContext

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
else:
    try:
        from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    except ImportError:
        DataSource = DataSourceReader = InputPartition = object

_OF_SNAPSHOTS = ("as_of", "where", "view")
_OF_CHANGES = ("since", "until", "mode")
_OF_READS = (*_OF_SNAPSHOTS, "columns", "keys", *_OF_CHANGES)
_OF_WRITES = ("columns", "operation")
_HUDI = "hoodie."
_OF_CATALOGS = ("location", "owner", "provider", "comment", "external", "is_managed_location", "collation")
"""Properties that Spark's catalog adds to the options of a table; it repeats the others as `option.<name>`."""
_STORAGE = "storage."
_PARTITION_BYTES = 64 * 1024 * 1024


def register(session: Any) -> None:
    """Register `format("hoodie")` in a session whose server did not find it.

    Spark finds it in the package `pyspark_hoodie` where its server can import that; then this call is not needed,
    and Spark's log says that a data source was replaced.

    Options: `as_of`, `where` and `view` as for `Table.read`; `since`, `until` and `mode` (`latest`) as for
    `Table.changes`; `keys`
    as for `Table.read_keys`, as a list in JSON; `columns`, separated by commas; `storage.<option>` for the object
    store.

    Raises: UnsupportedError on PySpark 3.5.
    """
    if not hasattr(session, "dataSource"):
        raise UnsupportedError(
            "PySpark 3.5 has no data sources in Python: use hoodie.open(path).read(), which returns a DataFrame too"
        )
    session.dataSource.register(TableSource)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a `spark.read` call. `keys` are the values of a list in JSON."""

    store: StoreSpec
    as_of: str | None = None
    where: Condition | None = None
    columns: tuple[str, ...] | None = None
    view: str = SNAPSHOT
    keys: tuple[Any, ...] | None = None
    changes: Mapping[str, str] | None = None

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
            changes={name: found[name] for name in reads[2]} or None,
        )

    def plan(self, columns: Sequence[str] | None = None) -> ScanPlan:
        """Plan the scan on the newest commit, or `as_of`. Raises: as the plans of the reads of `Table`."""
        context = TableContext(open_store(self.store), spark=False)
        chosen = self.columns if columns is None else columns
        if self.changes is not None:
            since, until, mode = (self.changes.get(name) for name in _OF_CHANGES)
            if mode not in (None, "latest"):
                raise UnsupportedError(f"mode={mode!r}: the data source has 'latest' only; use t.changes(mode='cdc')")
            plan = context.planned(lambda view: plan_changes(view, since, until))
            return plan.with_columns(chosen)
        if self.keys is not None:
            view = context.view()
            wanted = table_in_memory(context.keys(list(self.keys), view))
            return context.planned(lambda view: plan_lookup(view, wanted), view).with_columns(chosen)
        return context.planned(
            lambda view: plan_scan(view, columns=chosen, where=self.where, as_of=self.as_of, kind=self.view)
        )


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
        return spark_schema_of(TableOptions.parse(self.options).plan().output_schema)

    def reader(self, schema: Any) -> TableReader:
        """Return a reader of rows of this schema."""
        return TableReader(TableOptions.parse(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> TableWriter:
        """Return a writer of rows of this schema, after a check of the table, the options and the columns.

        Raises: as `TableWriter.of`.
        """
        store, found = store_and_options(self.options, _OF_WRITES, with_hudi=True)
        return TableWriter.of(store, found, schema, overwrite=overwrite)


@dataclass(frozen=True)
class SlicesPartition(InputPartition):
    """The file slices of one task, and their reader."""

    reader: SliceReader
    slices: tuple[FileSlice, ...]


class TableReader(DataSourceReader):
    """Plan the read in one Python process, then read in the workers."""

    def __init__(self, options: TableOptions, schema: Any) -> None:
        self._options = options
        self._schema = arrow_schema_of(schema)

    def partitions(self) -> Sequence[Any]:
        """Return the file slices in groups of about 64 MiB, one Spark partition for each group.

        Partitions of the table are pruned.
        """
        plan = self._options.plan(self._schema.names)
        reader = SliceReader(plan.view.store.spec, SliceScan.of(plan), self._schema)
        groups = balanced(plan.slices, _PARTITION_BYTES) or [()]
        return [SlicesPartition(reader, group) for group in groups]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of a partition's slices; runs in a worker. Memory: as `SliceScan.batches` of one slice."""
        pa.set_cpu_count(1)
        yield from partition.reader.batches(partition.slices)
