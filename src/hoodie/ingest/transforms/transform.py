"""What a transform is: it gets the rows of a batch and returns other rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from hoodie.arguments import shown
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
        """Return the changed rows: a DataFrame for a Spark DataFrame, otherwise Arrow data."""
        ...


def arrow_rows(rows: Any) -> pa.Table | pa.RecordBatchReader:
    """Return rows of this process as an Arrow table or reader. Raises: as `dataset_of`."""
    if isinstance(rows, pa.Table | pa.RecordBatchReader):
        return rows
    dataset = dataset_of(rows)
    source = getattr(dataset, "source", None)
    return source if isinstance(source, pa.RecordBatchReader) else table_in_memory(rows)


def each_batch(rows: Any, change: Callable[[pa.Table], pa.Table]) -> pa.Table | pa.RecordBatchReader:
    """Return the rows with a change of their columns: of a table at once, of a reader batch by batch.

    `change` returns the same columns for any rows, also for none.
    """
    found = arrow_rows(rows)
    if isinstance(found, pa.Table):
        return change(found)
    schema = change(found.schema.empty_table()).schema
    batches = (out for batch in found for out in change(pa.Table.from_batches([batch])).to_batches())
    return reader_of(schema, batches)


def names_of(rows: Any) -> list[str]:
    """Return the names of the columns of a DataFrame or of Arrow data."""
    return list(rows.columns) if is_spark(rows) else list(rows.schema.names)


def found_names(names: list[str], known: list[str], transform: str) -> list[str]:
    """Return names of columns as the rows spell them; the case may differ.

    Raises: InvalidConfigError if there is no such column: the names are options.
    """
    schema = pa.schema([pa.field(name, pa.null()) for name in known])
    found = spelled(names, schema)
    missing = [name for name, column in zip(names, found, strict=True) if column is None]
    if missing:
        raise InvalidConfigError(f"transform {transform}: the rows have no column {missing}; they have {known}")
    return [name for name in found if name is not None]


def checked_texts(value: Any, option: str, *, is_needed: bool = True) -> list[str]:
    """Return an option that is a text or a list of texts as a list. Raises: InvalidConfigError for another value."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        raise InvalidConfigError(f"{option}: expected the names of columns, found {shown(value)}")
    if is_needed and not texts:
        raise InvalidConfigError(f"{option}: expected at least one column, found none")
    return list(texts)


def checked_mapping(value: Any, option: str, example: str) -> dict[str, str]:
    """Return an option that has texts by columns. Raises: InvalidConfigError for another value."""
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and text for pair in value.items() for text in pair
    ):
        raise InvalidConfigError(f"{option}: expected texts by column such as {example}, found {shown(value)}")
    return dict(value)
