"""`spark.read.format("hoodie").load(path)`: hoodie tables as a Python data source of PySpark 4, classic and Connect.

Python workers read the rows of the data source. `hoodie.open(path).read()` is faster, because Spark scans the files
itself. The data source is for programs that can only pass a format and a path, and for stores that Spark cannot read.
PySpark 3.5 has no Python data sources.

Spark evaluates the filters of a query on the rows that it gets. The data source takes no filters from Spark: Spark 4.1
to 4.3 plan a loaded DataFrame once and use the partitions of its first query for its later queries, whatever their
filters are. The option `where` prunes partitions and files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.read.local import SliceScan
from hoodie.read.plan import SNAPSHOT, ScanPlan, plan_scan
from hoodie.read.slice_groups import balanced
from hoodie.records.condition import Condition
from hoodie.spark.merged import SliceReader
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.view.still_there import planned_again
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
else:
    try:
        from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    except ImportError:
        DataSource = DataSourceReader = InputPartition = object

_OPTIONS = ("as_of", "where", "columns", "view")
_STORAGE = "storage."
_PARTITION_BYTES = 64 * 1024 * 1024


def register(session: Any) -> None:
    """Register `format("hoodie")` in a session.

    Options: `as_of`, `where` and `view` as for `Table.read`; `columns`, separated by commas; `storage.<option>` for the
    object store.

    Raises: UnsupportedError on PySpark 3.5.
    """
    if not hasattr(session, "dataSource"):
        raise UnsupportedError(
            "PySpark 3.5 has no data sources in Python: use hoodie.open(path).read(), which returns a DataFrame too"
        )
    session.dataSource.register(TableSource)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a `spark.read` call."""

    store: StoreSpec
    as_of: str | None
    where: Condition | None
    columns: tuple[str, ...] | None
    view: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TableOptions:
        """Parse the options of a reader; the case of option names is ignored.

        Raises: InvalidConfigError for an unknown option, or without a path.
        """
        found = {name.lower(): value for name, value in options.items()}
        storage = {name.removeprefix(_STORAGE): value for name, value in found.items() if name.startswith(_STORAGE)}
        unknown = [name for name in found if name not in {*_OPTIONS, "path"} and not name.startswith(_STORAGE)]
        if unknown or "path" not in found:
            what = f"unknown options {sorted(unknown)}" if unknown else "no path"
            raise InvalidConfigError(f"{what}: load(path) takes the options {', '.join(_OPTIONS)} and {_STORAGE}<name>")
        names = tuple(name.strip() for name in found["columns"].split(",")) if "columns" in found else None
        store = open_store(found["path"], storage).spec
        where = Condition.parse_optional(found.get("where") or None)
        return cls(store, found.get("as_of"), where, names, found.get("view", SNAPSHOT))

    def plan(self, columns: Sequence[str] | None = None) -> ScanPlan:
        """Plan the scan on the newest commit, or `as_of`. Raises: as `plan_scan`."""
        state = TableState(open_store(self.store))
        chosen = self.columns if columns is None else columns
        return planned_again(
            lambda: TableView.load(state),
            lambda view: plan_scan(view, columns=chosen, where=self.where, as_of=self.as_of, kind=self.view),
        )


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

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Refuse to write: each write operation has its own method of `Table`.

        Raises: UnsupportedError.
        """
        raise UnsupportedError("format('hoodie') reads only: write with hoodie.open(path).upsert(df), insert, ...")


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
