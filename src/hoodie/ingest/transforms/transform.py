"""What a transform is: it gets the rows of a batch and returns other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hoodie.engine.ahead import reader_of
from hoodie.engine.inputs import dataset_of, table_in_memory
from hoodie.errors import InvalidConfigError
from hoodie.format.schema.table_schema import spelled
from hoodie.table.sessions import is_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a transform runs: the Spark session of the flow, and the Arrow schema of its table; None without them."""

    spark: Any = None
    schema: pa.Schema | None = None


class Transform(Protocol):
    """Returns the rows of a batch, changed. The order of rows may change."""

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the changed rows: a DataFrame for a Spark DataFrame, an Arrow table or reader for one of these."""
        ...


def frame_or_arrow(rows: Any) -> Any:
    """Return a DataFrame of Spark as it is, other rows as an Arrow table or reader. Raises: as `dataset_of`."""
    if is_spark(rows) or isinstance(rows, pa.Table | pa.RecordBatchReader):
        return rows
    source = getattr(dataset_of(rows), "source", None)
    return source if isinstance(source, pa.RecordBatchReader) else table_in_memory(rows)


def each_batch(rows: pa.Table | pa.RecordBatchReader, change: Callable[[pa.Table], pa.Table]) -> Any:
    """Return the rows with a change of their columns: of a table at once, of a reader batch by batch.

    `change` returns the same columns for any rows, also for none.
    """
    if isinstance(rows, pa.Table):
        return change(rows)
    schema = change(rows.schema.empty_table()).schema
    batches = (out for batch in rows for out in change(pa.Table.from_batches([batch])).to_batches())
    return reader_of(schema, batches)


def names_of(rows: Any) -> list[str]:
    """Return the names of the columns of a DataFrame or of Arrow data."""
    return list(rows.columns) if is_spark(rows) else list(rows.schema.names)


def found_names(names: str | Sequence[str], known: list[str], transform: str) -> list[str]:
    """Return names of columns as the rows spell them; the case may differ.

    Raises: InvalidConfigError if there is no such column: the names are options.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    found = spelled(wanted, pa.schema([pa.field(name, pa.null()) for name in known]))
    if missing := [name for name, column in zip(wanted, found, strict=True) if column is None]:
        raise InvalidConfigError(f"transform {transform}: the rows have no column {missing}; they have {known}")
    return [name for name in found if name is not None]
