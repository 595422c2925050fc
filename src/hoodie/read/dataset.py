"""A snapshot of a table as a dataset of pyarrow: DuckDB and Polars hand it columns and filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.compute import Expression

from hoodie.arguments import check_methods
from hoodie.engine import LocalEngine, TaskContext
from hoodie.engine.ahead import reader_of
from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.read.arrow_filter import columns_of, translated
from hoodie.read.batches import read_batches
from hoodie.read.chosen_columns import checked_columns
from hoodie.read.local import SliceScan, count_rows, first_of
from hoodie.read.plan import ScanPlan, plan_scan, scan_schema
from hoodie.read.times import When
from hoodie.view.table_view import TableView

_PLAIN_FILES_MAX: Final = 64
"""Of more files, other readers read each footer in each query; our plans leave out whole files without reading them."""
_PATTERN: Final = frozenset("*?[]{}\\")


@check_methods
class TableScanner:
    """Rows of a `TableDataset`: some columns, and the rows that match a filter. Each call reads them anew."""

    def __init__(self, plan: ScanPlan, scan: SliceScan, columns: Sequence[str], batch_rows: int | None) -> None:
        self._plan, self._scan, self._columns, self._batch_rows = plan, scan, list(columns), batch_rows

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the rows."""
        return pa.schema([self._plan.schema.field(name) for name in self._columns])

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, in no defined order. Memory and errors: as `read_batches`."""
        found = read_batches(self._plan, self._batch_rows, scan=self._scan)
        if self._columns:
            return found
        return reader_of(pa.schema([]), (batch.select([]) for batch in found))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows batch by batch, as `to_reader`."""
        return iter(self.to_reader())

    def to_table(self) -> pa.Table:
        """Return all rows. Memory: all of them."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as an Arrow C stream; libraries that take one call it. Memory and errors: as `to_reader`."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return at most `num_rows` rows; the read stops when it has them."""
        return first_of(self.to_reader(), num_rows)

    def count_rows(self) -> int:
        """Return the number of rows; without a filter it comes from the footers of base files."""
        if self._scan.filters_rows:
            return sum(batch.num_rows for batch in self.to_batches())
        return count_rows(self._plan)


@check_methods
class TableDataset(ds.Dataset):  # type: ignore[misc]
    """The rows of one snapshot of a table, which later commits do not change.

    It plans each scan: partitions, file groups and row groups that a filter excludes are not read. It has no fragments.
    """

    def __init__(self, view: TableView, *, as_of: When | None = None, kind: str = "snapshot") -> None:
        # pyarrow's class has no constructor: its methods that need one are overridden below.
        self._view, self._as_of, self._kind = view, as_of, kind
        self._schema = scan_schema(view, as_of=as_of, kind=kind)

    def __repr__(self) -> str:
        return f"<TableDataset of {self._view.store.uri('')}>"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows: the five `_hoodie_*` columns, then the table's columns."""
        return self._schema

    def scanner(
        self,
        columns: str | Sequence[str] | None = None,
        filter: Expression | None = None,
        batch_size: int | None = None,
        **others: Any,
    ) -> TableScanner | ds.Scanner:
        """Return a scan.

        Args:
            columns: names of columns, in order; default all.
            filter: an expression over any columns. Comparisons of columns with values, IN, IS NULL, AND, OR and NOT
                prune partitions, file groups and row groups; every part filters rows.
            batch_size: the most rows of a batch.

        Other arguments of pyarrow's method say how it reads files; they have no effect here. A call with `use_threads`
        alone, as of `pyarrow.dataset.write_dataset`, returns a scanner of pyarrow, which reads the rows once.

        Raises: SchemaMismatchError for unknown columns, and a filter that does not fit them; InvalidConfigError for
        columns that are expressions.
        """
        if set(others) == {"use_threads"} and columns is filter is batch_size is None:
            return ds.Scanner.from_batches(self.scanner().to_reader())
        no_columns = columns is not None and not columns
        names = () if no_columns else checked_columns(self.schema, columns)
        # A scan has at least one column: batches without columns are made of it.
        kept = names or tuple(self.schema.names[:1])
        plan = self._planned(filter, kept)
        scan = SliceScan.of(plan)
        if filter is not None:
            scan = replace(scan, columns=kept, exact=None, also=filter)
        return TableScanner(plan, scan, names, batch_size)

    def may_match(
        self, filter: Expression | None, columns: Sequence[str], batch_rows: int | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows of the partitions, file groups and row groups that the filter leaves; rows are not filtered.

        `filter` is read as SQL, in which NaN is greater than all numbers.
        """
        plan = self._planned(filter, columns)
        return read_batches(plan, batch_rows, scan=replace(SliceScan.of(plan), columns=tuple(columns), exact=None))

    def plain_files(self) -> list[str] | None:
        """Return the paths of the files if readers of Parquet may read them without us; else None.

        They may if the files are local and few, no log file changes their rows, and their columns are those of the
        table, in its order, with its types, and not nested: readers differ in older forms of lists. DuckDB and Polars
        read files two to five times as fast as batches; they do not compare checksums of pages.

        Lists the files of a local table without nested columns, and reads the footer of each, if they are few. Raises:
        as `plan_scan`; MissingFileError, CorruptFileError.
        """
        folder = self._view.store.spec.uri
        schema = scan_schema(self._view, as_of=self._as_of, kind=self._kind)
        if not folder.startswith("/") or any(pa.types.is_nested(child.type) for child in schema):
            return None
        plan = plan_scan(self._view, as_of=self._as_of, kind=self._kind)
        if plan.merged or not 0 < len(plan.slices) <= _PLAIN_FILES_MAX:
            return None
        paths = [f"{folder}/{file.path}" for file in plan.files]
        if any(_PATTERN & set(path) for path in paths):
            return None
        return paths if _all_as_table(plan, plan.files) else None

    def _planned(self, filter: Expression | None, columns: Sequence[str]) -> ScanPlan:
        where = None
        if filter is not None:
            try:
                self.schema.empty_table().filter(filter)
            except (pa.ArrowException, ValueError, TypeError) as error:
                expected = f"expected an expression over {self.schema.names}"
                raise SchemaMismatchError(f"filter={filter}: {expected} ({error})") from error
            from hoodie.records.condition import Condition

            columns = list(dict.fromkeys([*columns, *columns_of(filter, self.schema)]))
            text = translated(filter, self.schema).where
            where = None if text is None else Condition.parse(text)
        return plan_scan(self._view, columns=columns, where=where, as_of=self._as_of, kind=self._kind)

    def to_batches(self, *args: Any, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows batch by batch; arguments as `scanner`."""
        return self.scanner(*args, **kwargs).to_batches()

    def to_table(self, *args: Any, **kwargs: Any) -> pa.Table:
        """Return all rows; arguments as `scanner`. Memory: all of them."""
        return self.scanner(*args, **kwargs).to_table()

    def head(self, num_rows: int, *args: Any, **kwargs: Any) -> pa.Table:
        """Return at most `num_rows` rows; other arguments as `scanner`."""
        return self.scanner(*args, **kwargs).head(num_rows)

    def count_rows(self, filter: Expression | None = None, **_: Any) -> int:
        """Return the number of rows that match."""
        return self.scanner([], filter).count_rows()

    def _without_fragments(self, *_: Any, **__: Any) -> NoReturn:
        """Raises: UnsupportedError."""
        raise UnsupportedError("a dataset of a Hudi table has no fragments: use scanner, to_batches or to_table")

    get_fragments = take = filter = join = join_asof = sort_by = replace_schema = __reduce__ = _without_fragments
    partition_expression = property(_without_fragments)


def _all_as_table(plan: ScanPlan, files: Sequence[BaseFile]) -> bool:
    """Return whether each file has the table's columns."""
    expected = [(child.name, child.type) for child in plan.schema]

    def is_same(file: BaseFile, context: TaskContext) -> bool:
        with open_base_file(plan.view.store, file) as (parquet, _):
            return [(child.name, child.type) for child in parquet.schema_arrow] == expected

    return all(LocalEngine().run(is_same, files))
