"""`table.alter`: change the columns and the stored properties of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hoodie.arguments import check_methods, shown
from hoodie.errors import InvalidConfigError
from hoodie.format.schema.alterations import (
    AddColumn,
    AllowNull,
    Alteration,
    ChangeType,
    DropColumn,
    MoveColumn,
    Place,
    RenameColumn,
    SetComment,
)
from hoodie.format.schema.table_schema import normalise
from hoodie.table.context import TableContext, Text
from hoodie.write.alter import alter, store_options
from hoodie.write.result import AlterResult


@check_methods
class TableAlter:
    """A handle that changes the columns and stored options of one table. A change of columns is one commit.

    Columns, fields of structs (`s.y`), of the values of maps (`m.value.u`) and of the items of lists (`l.element.v`)
    are named by paths. The columns of the record key, the partition path and the ordering keep their names and types.

    Files are read by the names of columns until a column is renamed or dropped, or gets a type that data would not give
    it. That change gives all columns ids; JVM Hudi then needs `hoodie.schema.on.read.enable=true`, and a note names it.
    """

    def __init__(self, context: TableContext) -> None:
        """Read nothing until a method is called."""
        self._context = context

    def add_column(
        self,
        name: str,
        type: Any,
        *,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
        properties: Text | None = None,
    ) -> AlterResult:
        """Add a column, or a field of a struct. It is null in all rows that the table has; it has no default.

        `type`: a type of Spark SQL as text, or a pyarrow DataType. `after` or `first`: its place; by default
        it is the last one, in front of partition columns at the end.

        Raises: SchemaMismatchError if the column is there already, or its struct is not; as `alter`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-add-column", {"id": ["a"], "fare": [1.0]}, record_key="id")
        >>> t.alter.add_column("city", "string", after="id").changes
        ('column city added: string',)
        >>> t.schema.names
        ['id', 'city', 'fare']
        """
        added = AddColumn(name, type_of(name, type), comment, _place(first, after))
        return self.run([added], properties=properties)

    def rename_column(self, name: str, new_name: str, *, properties: Text | None = None) -> AlterResult:
        """Give a column, or a field of a struct, another name. `new_name` has no path.

        Raises: SchemaMismatchError if the column is not there, or the new name is; as `alter`.

        >>> import hoodie
        >>> rows = {"id": ["a"], "fare": [1.0]}
        >>> t = hoodie.create("memory://doc-rename-column", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.alter.rename_column("fare", "price").changes
        ('column fare renamed to price',)
        >>> t.to_arrow(columns=["id", "price"]).to_pylist()
        [{'id': 'a', 'price': 1.0}]
        """
        return self.run([RenameColumn(name, new_name)], properties=properties)

    def drop_column(self, name: str, *, properties: Text | None = None) -> AlterResult:
        """Drop a column, or a field of a struct. Files keep its values; a later column of its name does not get them.

        Raises: SchemaMismatchError if the column is not there, or is the last one; as `alter`.

        >>> import hoodie
        >>> rows = {"id": ["a"], "fare": [1.0]}
        >>> t = hoodie.create("memory://doc-drop-column", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.alter.drop_column("fare").changes
        ('column fare dropped',)
        >>> t.schema.names
        ['id']
        """
        return self.run([DropColumn(name)], properties=properties)

    def change_type(self, name: str, type: Any, *, properties: Text | None = None) -> AlterResult:
        """Change the type of a column, a field, the items of a list (`l.element`) or the values of a map (`m.value`).

        `type`: as for `add_column`. Stored values are converted when they are read. A note warns of rounding.

        Raises: SchemaMismatchError for types that the values do not fit; as `alter`.

        >>> import hoodie
        >>> rows = {"id": ["a"], "n": [1]}
        >>> t = hoodie.create("memory://doc-change-type", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.alter.change_type("n", "string").changes
        ('column n: int64 -> string',)
        >>> t.to_arrow(columns=["n"]).to_pylist()
        [{'n': '1'}]
        """
        return self.run([ChangeType(name, type_of(name, type))], properties=properties)

    def set_comment(self, name: str, comment: str | None, *, properties: Text | None = None) -> AlterResult:
        """Set the comment of a column, or of a field of a struct; None removes it.

        `t.schema.field(name).metadata` has it as `doc`.

        Raises: SchemaMismatchError if the column is not there.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-comment", {"id": ["a"], "fare": [1.0]}, record_key="id")
        >>> t.alter.set_comment("fare", "in dollars").changes
        ('comment of column fare: in dollars',)
        >>> t.schema.field("fare").metadata
        {b'doc': b'in dollars'}
        """
        return self.run([SetComment(name, comment)], properties=properties)

    def allow_null(self, name: str, *, properties: Text | None = None) -> AlterResult:
        """Allow null in a column, a field, the items of a list or the values of a map (SQL: DROP NOT NULL).

        Raises: SchemaMismatchError if the column is not there.

        >>> import hoodie, pyarrow as pa
        >>> schema = pa.schema([("id", pa.string()), pa.field("n", pa.int64(), nullable=False)])
        >>> t = hoodie.create("memory://doc-allow-null", schema, record_key="id")
        >>> t.alter.allow_null("n").changes
        ('column n: not null -> nullable',)
        """
        return self.run([AllowNull(name)], properties=properties)

    def move_column(
        self, name: str, *, after: str | None = None, first: bool = False, properties: Text | None = None
    ) -> AlterResult:
        """Move a column, or a field of a struct: to the first place, or after another one of the table or the struct.

        Raises: InvalidConfigError without a place; SchemaMismatchError if a column is not there.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-move-column", {"id": ["a"], "n": [1], "x": [2]}, record_key="id")
        >>> moved = t.alter.move_column("x", after="id")
        >>> t.schema.names
        ['id', 'x', 'n']
        """
        place = _place(first, after)
        if not place:
            raise InvalidConfigError("move_column: expected after= a column, or first=True")
        return self.run([MoveColumn(name, place)], properties=properties)

    def set_property(self, key: str, value: Any) -> AlterResult:
        """Store an option that every call takes unless it has its own, such as `hoodie.clean.commits.retained`.

        Calls that run keep the option of before.

        Raises: InvalidConfigError for an unknown option, a value that does not parse, and what is fixed when the table
            is created or belongs to an index or the lock.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-set-property", {"id": ["a"]}, record_key="id")
        >>> t.alter.set_property("hoodie.clean.commits.retained", 20).changes
        ('hoodie.clean.commits.retained: not set -> 20',)
        """
        return self.set_properties({key: value})

    def set_properties(self, properties: Text) -> AlterResult:
        """Store several options, as `set_property`; all of them or none.

        Raises: as `set_property`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-set-properties", {"id": ["a"]}, record_key="id")
        >>> len(t.alter.set_properties({"hoodie.keep.min.commits": 40, "hoodie.keep.max.commits": 50}).changes)
        2
        """
        return store_options(self._context.state, dict(properties))

    def unset_property(self, key: str) -> AlterResult:
        """Remove an option that the table stores; without one, add a note. Raises: as `set_property`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-unset-property", {"id": ["a"]}, record_key="id")
        >>> t.alter.unset_property("hoodie.clean.commits.retained").notes
        ('hoodie.clean.commits.retained is not stored',)
        """
        return self.unset_properties([key])

    def unset_properties(self, keys: Sequence[str]) -> AlterResult:
        """Remove several options, as `unset_property`.

        Raises: as `set_property`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-unset-properties", {"id": ["a"]}, record_key="id")
        >>> stored = t.alter.set_property("hoodie.keep.max.commits", 50)
        >>> len(t.alter.unset_properties(["hoodie.keep.max.commits"]).changes)
        1
        """
        return store_options(self._context.state, dict.fromkeys(keys))

    def run(self, alterations: Any, *, properties: Text | None = None) -> AlterResult:
        """Make several changes in one commit, in their order: a list of what `hoodie.format.schema.alterations` has.

        Raises: as `hoodie.write.alter.alter`.

        >>> import hoodie
        >>> from hoodie.format.schema.alterations import DropColumn, RenameColumn
        >>> t = hoodie.create("memory://doc-alter-run", {"id": ["a"], "x": [1], "y": [2]}, record_key="id")
        >>> changed = t.alter.run([RenameColumn("x", "z"), DropColumn("y")])
        >>> t.schema.names
        ['id', 'z']
        """
        changes: list[Alteration] = list(alterations) if isinstance(alterations, Sequence) else []
        if not isinstance(alterations, Sequence) or not all(isinstance(found, Alteration) for found in changes):
            raise InvalidConfigError(
                f"alterations: expected a list of changes, found {shown(alterations)}; write for example "
                'alterations=[RenameColumn("a", "b")]'
            )
        return alter(self._context.service(properties), changes)


def type_of(name: str, given: Any) -> pa.DataType:
    """Return the type that a table stores for a type of the caller: a text of Spark SQL, or an Arrow type.

    Raises: InvalidConfigError for anything else; SchemaMismatchError, UnsupportedError for types without a form here.
    """
    if isinstance(given, str):
        from hoodie.records.sql.types import type_named

        given = type_named(given)
    if not isinstance(given, pa.DataType):
        raise InvalidConfigError(
            f"type: expected a type of Spark SQL as text, or a pyarrow DataType, found {shown(given)}; write for "
            'example type="bigint"'
        )
    return normalise(pa.schema([pa.field(name, given)])).field(0).type


def _place(first: bool, after: str | None) -> Place:
    if first and after is not None:
        raise InvalidConfigError(f"expected one of first=True and after={after!r}, found both")
    return Place(first=first, after=after)
