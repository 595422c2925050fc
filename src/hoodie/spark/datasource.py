"""`spark.read.format("hoodie").load(path)`: hoodie tables as a Python data source of PySpark 4, classic and Connect.

Rows pass through Python workers, so `hoodie.open(path).read()`, which Spark scans by itself, is faster; a data source
is for programs that know a format and a path only, and for stores that Spark cannot reach. PySpark 3.5 has no such
interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.errors import HoodieError, InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.read.local import SliceScan
from hoodie.read.plan import SNAPSHOT, ScanPlan, plan_scan
from hoodie.read.slice_groups import balanced
from hoodie.records.condition import Condition
from hoodie.spark.merged import SliceReader
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
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
_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def register(session: Any) -> None:
    """Make `format("hoodie")` known to a session.

    Options: `as_of`, `where`, `view` as of `Table.read`; `columns`, separated by commas; `storage.<option>` for the
    object store.

    Raises: UnsupportedError on PySpark 3.5.
    """
    if not hasattr(session, "dataSource"):
        raise UnsupportedError(
            "PySpark 3.5 has no data sources in Python: use hoodie.open(path).read(), which gives a DataFrame too"
        )
    session.dataSource.register(TableSource)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What a caller of `spark.read` asked for."""

    store: StoreSpec
    as_of: str | None
    where: Condition | None
    columns: tuple[str, ...] | None
    view: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TableOptions:
        """Options of a reader, whose names have no case. Raises: InvalidConfigError."""
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

    def plan(self, columns: Sequence[str] | None = None, also: Sequence[Condition] = ()) -> ScanPlan:
        """The scan as of now; `also` are further conditions. Raises: as `plan_scan`."""
        where = Condition.all_of([*([] if self.where is None else [self.where]), *also])
        view = TableView.load(TableState(open_store(self.store)))
        chosen = self.columns if columns is None else columns
        return plan_scan(view, columns=chosen, where=where, as_of=self.as_of, kind=self.view)


class TableSource(DataSource):
    """The data source `hoodie`. Spark makes one for every `load`, and asks it for a schema and a reader."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "hoodie"

    def schema(self) -> Any:
        """Spark schema of the chosen columns, as of the newest commit or `as_of`."""
        return spark_schema_of(TableOptions.parse(self.options).plan().output_schema)

    def reader(self, schema: Any) -> TableReader:
        """A reader of rows of this schema."""
        return TableReader(TableOptions.parse(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Raises: UnsupportedError; tables are written by their own methods, which say what happens to old rows."""
        raise UnsupportedError("format('hoodie') reads only: write with hoodie.open(path).upsert(df), insert, ...")


@dataclass(frozen=True)
class SlicesPartition(InputPartition):
    """A few file slices for one task, and how to read them."""

    reader: SliceReader
    slices: tuple[FileSlice, ...]


class TableReader(DataSourceReader):
    """Plans in one Python process, then reads in the workers."""

    def __init__(self, options: TableOptions, schema: Any) -> None:
        self._options = options
        self._schema = arrow_schema_of(schema)
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Take the filters that are plain comparisons; Spark evaluates the others (and asks from 4.1 on only)."""
        for condition in filters:
            text = sql_of(condition)
            parsed = None if text is None else self._with_arrow_form(text)
            if parsed is None:
                yield condition
            else:
                self._conditions.append(parsed)

    def _with_arrow_form(self, text: str) -> Condition | None:
        """The parsed condition; None if it has no Arrow form, so that Spark has to evaluate it."""
        try:
            condition = Condition.parse(text)
            condition.row_filter(self._schema)
        except HoodieError:
            return None
        return condition

    def partitions(self) -> Sequence[Any]:
        """File slices in groups of about 64 MiB, one Spark partition each; partitions of the table are pruned."""
        plan = self._options.plan(self._schema.names, self._conditions)
        reader = SliceReader(plan.view.store.spec, SliceScan.of(plan), self._schema)
        groups = balanced(plan.slices, _PARTITION_BYTES) or [()]
        return [SlicesPartition(reader, group) for group in groups]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Rows of the partition's slices. Memory: as `SliceScan.batches` of one. Runs in a worker."""
        pa.set_cpu_count(1)
        yield from partition.reader.batches(partition.slices)


def sql_of(condition: Any) -> str | None:
    """A pushed filter as Spark SQL; None for a kind or a value that is not certain to mean the same."""
    name = type(condition).__name__
    attribute = getattr(condition, "attribute", None)
    if attribute is None or any("`" in part for part in attribute):
        return None
    column = ".".join(f"`{part}`" for part in attribute)
    if name in ("IsNull", "IsNotNull"):
        return f"{column} IS {'NOT ' if name == 'IsNotNull' else ''}NULL"
    if name == "In":
        values = [_literal(value) for value in condition.value]
        return None if not values or None in values else f"{column} IN ({', '.join(str(value) for value in values)})"
    value = _literal(condition.value) if name in _COMPARISONS else None
    return None if value is None else f"{column} {_COMPARISONS[name]} {value}"


def _literal(value: object) -> str | None:
    """An SQL literal; None for types whose text depends on settings, and for texts with escapes."""
    match value:
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case str() if "\\" not in value:
            return "'" + value.replace("'", "''") + "'"
        case date() if type(value) is date:
            return f"DATE '{value.isoformat()}'"
        case _:
            return None
