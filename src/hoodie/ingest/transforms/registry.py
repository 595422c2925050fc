"""The kinds of transforms, by the names that job files and `hoodie.ingest` use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError
from hoodie.ingest.code import function_of
from hoodie.ingest.latest import latest
from hoodie.ingest.options import check_types, made, require
from hoodie.ingest.transforms.cast import Cast
from hoodie.ingest.transforms.columns import Drop, Flatten, Rename
from hoodie.ingest.transforms.sql import Sql
from hoodie.ingest.transforms.transform import Context, Transform, frame_or_arrow


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
