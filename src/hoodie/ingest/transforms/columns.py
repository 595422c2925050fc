"""The transforms `rename`, `drop` and `flatten`: other columns, with the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.ingest.latest import column_at
from hoodie.ingest.options import check_types, require
from hoodie.ingest.transforms.transform import Context, each_batch, found_names, names_of
from hoodie.records.sql.quoting import quoted
from hoodie.table.sessions import is_spark

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Gives columns new names: `columns` are new names by old ones."""

    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        check_types(self, "transform rename, ")
        require(all(self.columns.values()), "transform rename, columns", "new names by old ones", self.columns)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the renamed rows. Raises: InvalidConfigError for unknown columns, and for two of one name."""
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
        check_types(self, "transform drop, ")
        require(bool(self.columns), "transform drop, columns", "at least one column", self.columns)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the rows without the columns. Raises: InvalidConfigError for unknown columns, and if none is left."""
        known = names_of(rows)
        gone = {*found_names(self.columns, known, "drop")}
        left = [((name,), name) for name in known if name not in gone]
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
        check_types(self, "transform flatten, ")
        require(self.depth >= 0, "transform flatten, depth", "a number from 0", self.depth)

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return the flat rows. Raises: SchemaMismatchError for two columns of one name."""
        paths = [path for child in rows.schema for path in self._paths((), child)]
        columns = [(path, self.separator.join(path)) for path in paths]
        _check_once([name for _, name in columns], "flatten", SchemaMismatchError)
        return _with_columns(rows, columns)

    def _paths(self, above: _Path, child: Any) -> Iterator[_Path]:
        """Yield the paths of a field of Arrow or Spark, or of all fields in it."""
        path = (*above, child.name)
        fields = _fields_of(child.type if isinstance(child, pa.Field) else child.dataType)
        if not fields or (self.depth and len(path) > self.depth):
            yield path
            return
        for below in fields:
            yield from self._paths(path, below)


def _fields_of(kind: Any) -> Sequence[Any]:
    """Return the fields of a struct of Arrow or Spark; none of another type."""
    is_struct = kind.typeName() == "struct" if is_spark(kind) else pa.types.is_struct(kind)
    return kind.fields if is_struct else ()


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
        return pa.table([column_at(table, path) for path, _ in columns], names=[name for _, name in columns])

    return each_batch(rows, change)
