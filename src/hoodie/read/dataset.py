"""A snapshot of a table as a dataset of pyarrow: DuckDB and Polars hand it columns and filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.compute import Expression

from hoodie.arguments import check_methods
from hoodie.engine.ahead import reader_of
from hoodie.errors import InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.files.slices import BaseFile
from hoodie.read.arrow_filter import columns_of, shown, translated
from hoodie.read.chosen_columns import checked_columns
from hoodie.read.local import SliceScan, count_rows, first_of, read_batches
from hoodie.read.plan import ScanPlan, plan_scan, scan_schema
from hoodie.read.times import When
from hoodie.view.table_view import TableView


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot of a table, which later commits do not change: its scans are planned anew.

    `schema` has the five `_hoodie_*` columns, then the table's columns. `left_out` are base files of slices without log
    files, whose rows the scans do not have.
    """

    view: TableView
    as_of: When | None
    kind: str
    schema: pa.Schema
    left_out: frozenset[BaseFile] = frozenset()

    @classmethod
    def of(cls, view: TableView, as_of: When | None, kind: str) -> Snapshot:
        """Create the newest snapshot of a view, or the snapshot of a time. Raises: as `scan_schema`."""
        return cls(view=view, as_of=as_of, kind=kind, schema=scan_schema(view, as_of=as_of, kind=kind))

    def planned(self, filter: Expression | None = None, columns: Sequence[str] | None = None) -> ScanPlan:
        """Return the scan of the partitions and file groups that a filter leaves.

        The filter is read as SQL, in which NaN is greater than all numbers; the scan need not filter all rows.

        Raises: as `plan_scan`; SchemaMismatchError for a filter that does not fit the columns.
        """
        where = None
        if filter is not None:
            try:
                self.schema.empty_table().filter(filter)
            except (pa.ArrowException, ValueError, TypeError) as error:
                expected = f"expected an expression over {self.schema.names}"
                raise SchemaMismatchError(f"filter={shown(filter)}: {expected} ({error})") from error
            from hoodie.records.condition import Condition

            wanted = {*(columns or self.schema.names), *columns_of(filter, self.schema)}
            # In the order of the schema: a filter may have the number of a column.
            columns = [name for name in self.schema.names if name in wanted]
            text, _ = translated(filter, self.schema)
            # SQL has limits that pyarrow has not, such as the depth of a condition: then nothing is pruned.
            with suppress(InvalidConfigError):
                where = None if text is None else Condition.parse(text)
        plan = plan_scan(self.view, columns=columns, where=where, as_of=self.as_of, kind=self.kind)
        if not self.left_out:
            return plan
        kept = (found for found in plan.slices if found.log_files or found.base_file not in self.left_out)
        return replace(plan, slices=tuple(kept))


@check_methods
class TableDataset(ds.Dataset):  # type: ignore[misc]
    """The rows of one snapshot of a table, which later commits do not change.

    It plans each scan: partitions, file groups and row groups that a filter excludes are not read. It has no fragments.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        # pyarrow's class has no constructor: its methods that need one are overridden below.
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return f"<TableDataset of {self._snapshot.view.store.uri('')}>"

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows: the five `_hoodie_*` columns, then the table's columns."""
        return self._snapshot.schema

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
        plan = self._snapshot.planned(filter, kept)
        scan = SliceScan.of(plan)
        if filter is not None:
            scan = replace(scan, columns=kept, exact=None, also=filter)
        return TableScanner(plan, scan, names, batch_size)

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
