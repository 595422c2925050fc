"""The transforms `rename`, `drop` and `flatten`: other columns, with the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.arguments import shown
from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.ingest.transforms.transform import (
    Context,
    arrow_rows,
    checked_mapping,
    checked_texts,
    each_batch,
    found_names,
    names_of,
)
from hoodie.records.sql.quoting import quoted
from hoodie.table.sessions import is_spark

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Gives columns new names: `columns` are new names by old ones."""

    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        checked_mapping(self.columns, "transform rename, columns", '{old = "new"}')

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the renamed rows. Raises: InvalidConfigError for unknown columns, and for two of one name."""
        rows = rows if is_spark(rows) else arrow_rows(rows)
        known = names_of(rows)
        new = dict(zip(found_names([*self.columns], known, "rename"), self.columns.values(), strict=True))
        names = [new.get(name, name) for name in known]
        _check_once(names, "rename")
        return _with_columns(rows, [((old,), name) for old, name in zip(known, names, strict=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leaves out columns."""

    columns: str | Sequence[str]

    def __post_init__(self) -> None:
        checked_texts(self.columns, "transform drop, columns")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows without the columns. Raises: InvalidConfigError for unknown columns, and if none is left."""
        rows = rows if is_spark(rows) else arrow_rows(rows)
        known = names_of(rows)
        gone = set(found_names(checked_texts(self.columns, "transform drop, columns"), known, "drop"))
        left: list[tuple[_Path, str]] = [((name,), name) for name in known if name not in gone]
        if not left:
            raise InvalidConfigError("transform drop: no column is left")
        return _with_columns(rows, left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten:
    """Makes a column of each field of a struct: the field `b` of the struct `a` becomes `a_b`.

    `depth`: the most levels of structs that are flattened; 0 for all. Lists and maps stay as they are. The fields of a
    struct that is null are null.
    """

    separator: str = "_"
    depth: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise InvalidConfigError(f"transform flatten, separator: expected a text, found {shown(self.separator)}")
        if not isinstance(self.depth, int) or isinstance(self.depth, bool) or self.depth < 0:
            raise InvalidConfigError(f"transform flatten, depth: expected a number from 0, found {shown(self.depth)}")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the flat rows. Raises: SchemaMismatchError for two columns of one name."""
        rows = rows if is_spark(rows) else arrow_rows(rows)
        below = _fields_of_frame if is_spark(rows) else _fields_of_arrow
        paths = [path for name, fields in below(rows.schema) for path in self._paths((name,), fields)]
        columns = [(path, self.separator.join(path)) for path in paths]
        _check_once([name for _, name in columns], "flatten", SchemaMismatchError)
        return _with_columns(rows, columns)

    def _paths(self, path: _Path, fields: Callable[[], Iterator[Any]] | None) -> Iterator[_Path]:
        if fields is None or (self.depth and len(path) > self.depth):
            yield path
            return
        for name, below in fields():
            yield from self._paths((*path, name), below)


def _fields_of_arrow(kind: Any) -> Iterator[Any]:
    """Yield the names of the fields, and for structs a function that yields theirs."""
    for child in kind:
        inside = child.type
        yield child.name, (lambda one=inside: _fields_of_arrow(one.fields)) if _has_fields(inside) else None


def _has_fields(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and kind.num_fields > 0


def _fields_of_frame(kind: Any) -> Iterator[Any]:
    """As `_fields_of_arrow`, of a type of Spark."""
    for child in kind.fields:
        inside = child.dataType
        has_fields = inside.typeName() == "struct" and len(inside.fields) > 0
        yield child.name, (lambda one=inside: _fields_of_frame(one)) if has_fields else None


def _check_once(names: Sequence[str], transform: str, kind: type[Exception] = InvalidConfigError) -> None:
    # Spark and tables do not distinguish names by their case.
    twice = [name for name, count in Counter(name.lower() for name in names).items() if count > 1]
    if twice:
        raise kind(f"transform {transform}: expected columns of different names, found {twice} more than once")


def _with_columns(rows: Any, columns: Sequence[tuple[_Path, str]]) -> Any:
    """Return rows with columns that are columns or fields of `rows`, under new names."""
    if is_spark(rows):
        return rows.selectExpr(*(f"{'.'.join(map(quoted, path))} AS {quoted(name)}" for path, name in columns))

    def change(table: pa.Table) -> pa.Table:
        found = [
            table[path[0]] if len(path) == 1 else pc.struct_field(table[path[0]], list(path[1:])) for path, _ in columns
        ]
        return pa.table(found, names=[name for _, name in columns])

    return each_batch(rows, change)
