"""The kinds of transforms, by the names that job files and `hoodie.ingest` use; `sql`, `function` and `deduplicate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError
from hoodie.ingest.code import function_of
from hoodie.ingest.latest import latest
from hoodie.ingest.options import check_types, made, require
from hoodie.ingest.run_sql import StreamView, query_in_process, query_on_spark
from hoodie.ingest.transforms.cast import Cast
from hoodie.ingest.transforms.columns import Drop, Flatten, Rename
from hoodie.ingest.transforms.transform import Context, Transform, frame_or_arrow
from hoodie.table.sessions import is_spark, spark_room

_NAME: Final = "source"
_JVM_NAME: Final = "<SRC>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A query over the table `source`; `<SRC>` stands for it too, as in HoodieStreamer.

    On Spark it is Spark SQL, in this process DuckDB's SQL. Their functions differ. Sums and counts of integers are
    64-bit integers in both; sums and products of decimals may have another precision. Text that is no number is an
    error of DuckDB's `CAST`, as in Spark with ANSI mode. The write converts the columns to the types of the table, if
    no value changes.
    """

    query: str

    def __post_init__(self) -> None:
        check_types(self, "transform sql, ")
        require(bool(self.query.strip()), "transform sql, query", "a query over source", self.query)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows of the query. In process they are a stream, if `rows` is a reader.

        Memory in process: what DuckDB needs for the query, and all rows of a reader that the query reads twice.
        """
        query = self.query.replace(_JVM_NAME, _NAME)
        if context.spark is not None and not is_spark(rows):
            rows = spark_room().from_arrow(context.spark, rows if isinstance(rows, pa.Table) else rows.read_all())
        if is_spark(rows):
            return query_on_spark(rows.sparkSession, query, {_NAME: rows})
        changed = query_in_process(query, {_NAME: StreamView(rows)}, context.schema)
        return changed.read_all() if isinstance(rows, pa.Table) else changed


@dataclass(frozen=True)
class Function:
    """Calls a function with the rows; it returns the changed rows.

    `call`: a function, or `package.module:name`. The function gets a Spark DataFrame if the batch is one, otherwise an
    Arrow table or reader, and returns data of any kind that `Table.upsert` accepts.
    """

    call: Any

    def __post_init__(self) -> None:
        function_of(self.call, "transform function, call")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return what the function returns. Raises: its errors; InvalidConfigError if it returns None."""
        changed = function_of(self.call, "transform function, call")(frame_or_arrow(rows))
        if changed is None:
            raise InvalidConfigError(
                f"transform function {self.call!r} returned None: expected the rows, changed or not"
            )
        return frame_or_arrow(changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicate:
    """Keeps the row of each key that has the greatest values in the columns `by`; null and NaN are the least.

    Rows with a null in a key column are all kept: the write refuses them.
    """

    keys: str | Sequence[str]
    by: str | Sequence[str]

    def __post_init__(self) -> None:
        check_types(self, "transform deduplicate, ")
        for name, columns in (("keys", self.keys), ("by", self.by)):
            require(bool(columns), f"transform deduplicate, {name}", "at least one column", columns)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return one row of each key. Memory in process: all rows. Raises: as `latest`."""
        keys, by = ([one] if isinstance(one, str) else list(one) for one in (self.keys, self.by))
        return latest(rows, keys, by)


KINDS: Final[Mapping[str, Any]] = {
    "sql": Sql,
    "function": Function,
    "flatten": Flatten,
    "cast": Cast,
    "rename": Rename,
    "drop": Drop,
    "deduplicate": Deduplicate,
}


def transforms_of(given: Any) -> tuple[Transform, ...]:
    """Return the transforms of an option: None, one of them, or a list, whose members follow each other.

    A transform is a query over `source`, a function, which gets the rows and returns rows, options such as
    `{"kind": "sql", "query": "…"}`, or an object of one of the kinds.

    Raises: InvalidConfigError for anything else, and as the class of the transform.
    """
    if given is None:
        return ()
    return tuple(_transform_of(one) for one in (given if isinstance(given, list | tuple) else (given,)))


def _transform_of(given: Any) -> Transform:
    found: Transform
    if type(given) in KINDS.values():
        found = given
    elif callable(given):
        found = Function(call=given)
    elif isinstance(given, str):
        found = Sql(query=given)
    elif isinstance(given, Mapping):
        found = made(given, KINDS, "transform")
    else:
        raise InvalidConfigError(
            'transform: expected a query, a function, or options such as {"kind": "sql", "query": "…"}, found '
            f"{shown(given)}"
        )
    return found
