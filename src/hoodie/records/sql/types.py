"""Types of columns by their names in Spark SQL, nested ones too."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.avro.schema import DOC
from hoodie.format.schema.arrow_types import LIST_ITEM
from hoodie.records.sql.cast import arrow_type
from hoodie.records.sql.parse import parse_expression, to_sql


def type_named(text: str) -> pa.DataType:
    """Return the type of a text such as `bigint` or `struct<a: int, b: array<string>>`.

    Raises: InvalidConfigError for text that is no type; UnsupportedError for types without a form here.

    >>> type_named("map<string, decimal(10, 2)>")
    MapType(map<string, decimal128(10, 2)>)
    """
    field = field_named("x", text)
    if not field.nullable or field.metadata:
        raise _no_type(text)
    return field.type


def field_named(name: str, text: str) -> pa.Field:
    """Return a column of a text such as `bigint NOT NULL COMMENT 'in cents'`, as in CREATE TABLE.

    Raises: as `type_named`; UnsupportedError for other rules of a column, such as DEFAULT.

    >>> field_named("fare", "double NOT NULL")
    pyarrow.Field<fare: double not null>
    """
    try:
        node = parse_expression(f"CAST(NULL AS STRUCT<x: {text} >)")
    except InvalidConfigError as error:
        raise _no_type(text) from error
    fields = node.to.expressions if isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType) else []
    if len(fields) != 1 or text.rstrip().endswith(","):  # the parser passes over a comma behind the last field
        raise _no_type(text)
    return _field(fields[0]).with_name(name)


def _no_type(text: str) -> InvalidConfigError:
    return InvalidConfigError(f"expected a type of Spark SQL, such as bigint or struct<a: int>, found {text[:100]!r}")


def _type(node: exp.DataType) -> pa.DataType:
    below = node.expressions
    if node.this == exp.DataType.Type.STRUCT and below:
        return pa.struct([_field(child) for child in below])
    if node.this == exp.DataType.Type.ARRAY and len(below) == 1:
        return pa.list_(pa.field(LIST_ITEM, _type(below[0])))
    if node.this == exp.DataType.Type.MAP and len(below) == 2:
        if (keys := _type(below[0])) != pa.string():
            raise UnsupportedError(f"{to_sql(node)}: Hudi stores maps with keys of the type string, found {keys}")
        return pa.map_(pa.string(), pa.field("value", _type(below[1])))
    return arrow_type(node)


def _field(node: exp.Expression) -> pa.Field:
    """Return a field of a struct, with its comment."""
    if not isinstance(node, exp.ColumnDef) or not isinstance(node.args.get("kind"), exp.DataType):
        raise UnsupportedError(f"{to_sql(node)!r}: expected a name and a type in a struct")
    nullable, metadata = True, None
    for rule in (found.args["kind"] for found in node.args.get("constraints") or []):
        if isinstance(rule, exp.CommentColumnConstraint):
            metadata = {DOC: rule.this.name.encode()}
        elif isinstance(rule, exp.NotNullColumnConstraint) and not rule.args.get("allow_null"):
            nullable = False
        else:
            raise UnsupportedError(f"expected NOT NULL or COMMENT behind a type, found {to_sql(rule) or 'NULL'}")
    return pa.field(node.name, _type(node.args["kind"]), nullable=nullable, metadata=metadata)
