"""A snapshot of a table as a LazyFrame of Polars, which hands over columns, its filter and a number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.compute import Expression

from hoodie.read.dataset import TableDataset

if TYPE_CHECKING:
    import polars as pl


def lazy_frame(dataset: TableDataset) -> pl.LazyFrame:
    """Return the rows as a frame. Polars reads plain files on its own; it gets other rows in batches, and filters them.

    Raises: as `TableDataset.plain_files`.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    empty: Any = pl.from_arrow(dataset.schema.empty_table())
    files = dataset.plain_files()
    if files is not None:
        own = pl.scan_parquet(files, glob=False, hive_partitioning=False)
        if own.collect_schema() == empty.schema:
            return own

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, rows_max: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        return _rows(dataset, columns, predicate, rows_max, batch_rows)

    return register_io_source(rows, schema=empty.schema, is_pure=True)


def _rows(
    dataset: TableDataset,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows_max: int | None,
    batch_rows: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows that match. `rows_max` counts rows before the predicate."""
    import polars as pl

    wanted = list(dataset.schema.names if columns is None else columns)
    needed = list(dict.fromkeys([*wanted, *([] if predicate is None else predicate.meta.root_names())]))
    # Polars orders NaN, and pyarrow does not: what pyarrow understands of the predicate chooses files only.
    chosen = None if predicate is None or rows_max is not None else _in_arrow(predicate, dataset.schema)
    left = rows_max
    for batch in dataset.may_match(chosen, needed or dataset.schema.names[:1], batch_rows):
        rows: Any = pl.from_arrow(batch if left is None else batch.slice(0, left))
        left = None if left is None else left - rows.height
        yield (rows if predicate is None else rows.filter(predicate)).select(wanted)
        if left == 0:
            return


def _in_arrow(predicate: pl.Expr, schema: pa.Schema) -> Expression | None:
    """Return what Polars hands of a predicate to a dataset of pyarrow; None for nothing, or what pyarrow refuses."""
    import polars as pl

    asked = _Asked(schema)
    pl.scan_pyarrow_dataset(asked).filter(predicate).collect()
    try:
        schema.empty_table().filter(asked.filter)
    except (pa.ArrowException, TypeError):
        return None
    return asked.filter


class _Asked(ds.Dataset):  # type: ignore[misc]
    """A dataset without rows that keeps the filter of a scan."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.filter: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self._schema

    def to_batches(self, filter: Expression | None = None, **_: Any) -> Iterator[pa.RecordBatch]:
        """Keep the filter; there are no batches."""
        self.filter = filter
        return iter(())
