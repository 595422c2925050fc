"""The columns that a read returns: columns of the table, and fields of structs by their dotted names.

As in Spark, a field of a struct is returned under its own name: `select("st.a")` has the column `a`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidConfigError, SchemaMismatchError
from hoodie.format.schema.table_schema import spelled

_Found = TypeVar("_Found")
Path = tuple[str, ...]
"""The names of a column, or of a field from its column on."""
WHOLE: Final[tuple[Path, ...]] = ()
"""No fields are chosen: whole columns are returned."""


def checked_columns(schema: pa.Schema, columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the chosen columns as the schema spells them; all for None.

    Raises: InvalidConfigError for no columns, and for a column that is named twice; SchemaMismatchError for unknown
    ones.
    """
    if columns is None:
        return tuple(schema.names)
    wanted = (columns,) if isinstance(columns, str) else tuple(columns)
    if not wanted:
        raise InvalidConfigError("columns=[] selects no columns; name at least one, or omit columns to read all")
    found = tuple(_known(wanted, spelled(wanted, schema), schema))
    _refuse_repeated(wanted, found)
    return found


def _refuse_repeated(wanted: Sequence[str], returned: Sequence[str]) -> None:
    """Refuse two results of one name: most formats of rows hold only one."""
    repeated = [name for name, count in Counter(returned).items() if count > 1]
    if repeated:
        raise InvalidConfigError(
            f"columns={list(wanted)}: {repeated} would be returned twice, as the case of names does not matter and a "
            "field of a struct is returned under its own name; name each column once, and choose a field whose name "
            "another result has in another read"
        )


def _known(names: Sequence[str], found: Sequence[_Found | None], schema: pa.Schema) -> list[_Found]:
    unknown = [name for name, column in zip(names, found, strict=True) if column is None]
    if unknown:
        raise SchemaMismatchError(f"columns {unknown} are not in the table; the table has {schema.names}")
    return [column for column in found if column is not None]


def chosen_columns(schema: pa.Schema, columns: str | Sequence[str] | None) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Return the columns to read, and the fields to return; `WHOLE` if no field of a struct is chosen.

    A column whose name has a dot takes precedence over a field of that name. The case of names does not matter.

    Raises: as `checked_columns`; InvalidConfigError for two results of one name.

    >>> nested = pa.schema([("id", pa.int32()), ("st", pa.struct([("a", pa.int32()), ("b", pa.int32())]))])
    >>> chosen_columns(nested, ["id", "ST.a"])
    (('id', 'st'), (('id',), ('st', 'a')))
    """
    wanted = (columns,) if isinstance(columns, str) else tuple(columns or ())
    if not any("." in name for name in wanted):
        return checked_columns(schema, columns), WHOLE
    found = tuple(_known(wanted, [_path_of(name, schema) for name in wanted], schema))
    _refuse_repeated(wanted, [path[-1] for path in found])
    if all(len(path) == 1 for path in found):
        return tuple(path[0] for path in found), WHOLE
    return tuple(dict.fromkeys(path[0] for path in found)), found


def _path_of(name: str, schema: pa.Schema) -> Path | None:
    """Return the path of a column or a field, as the schema spells it; None if there is none."""
    (column,) = spelled([name], schema)
    if column is not None:
        return (column,)
    path: Path = ()
    level = schema
    for part in name.split("."):
        (found,) = spelled([part], level)
        if found is None:
            return None
        path, data_type = (*path, found), level.field(found).type
        level = pa.schema(list(data_type)) if pa.types.is_struct(data_type) else pa.schema([])
    return path


def returned_schema(schema: pa.Schema, names: Iterable[str], paths: Sequence[Path]) -> pa.Schema:
    """Return the schema of the rows that a read returns; `names` and `paths` as from `chosen_columns`.

    Each field has its own name; it is nullable if a struct around it is.
    """
    return pa.schema([_field(schema, path) for path in paths or [(name,) for name in names]])


def _field(schema: pa.Schema, path: Path) -> pa.Field:
    child = schema.field(path[0])
    nullable = child.nullable
    for name in path[1:]:
        child = child.type.field(name)
        nullable |= child.nullable
    return child.with_nullable(nullable)


def picked(rows: pa.Table, paths: Iterable[Path], schema: pa.Schema) -> pa.Table:
    """Return the fields of the rows, null where a struct around them is null; `schema` as `returned_schema`."""
    arrays = [rows[path[0]] if len(path) == 1 else pc.struct_field(rows[path[0]], list(path[1:])) for path in paths]
    return pa.Table.from_arrays(arrays, schema=schema)


def narrowed(schema: pa.Schema, paths: Collection[Path]) -> pa.Schema:
    """Return the schema with only those fields of structs that the paths need; `WHOLE` needs all.

    A column that no path names stays whole.
    """
    fields = [_narrowed(child, [path[1:] for path in paths if path[0] == child.name]) for child in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _narrowed(child: pa.Field, below: Sequence[Path]) -> pa.Field:
    if not below or () in below:
        return child
    kept = {path[0] for path in below}
    fields = [
        _narrowed(one, [path[1:] for path in below if path[0] == one.name]) for one in child.type if one.name in kept
    ]
    return child.with_type(pa.struct(fields))
