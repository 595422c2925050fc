"""`hoodie create`: create a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, open_files
from hoodie.cli.options import AsJson, NullTexts, Properties, StorageOptions, TablePath, pairs
from hoodie.cli.terminal import print_json
from hoodie.errors import InvalidConfigError

if TYPE_CHECKING:
    from sqlglot import exp


def create(
    path: TablePath,
    like: Annotated[str | None, typer.Option("--like", metavar="FILE", help="Use the columns of this file.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", "-c", metavar="NAME:TYPE", help="A column, or another type for a column of the --like file."
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", help="Record key column; may be repeated. Default: automatic keys."),
    ] = None,
    partition_by: Annotated[
        list[str] | None, typer.Option("--partition-by", "-p", help="Partition column; may be repeated.")
    ] = None,
    ordering: Annotated[
        list[str] | None,
        typer.Option("--ordering", "-o", help="Column whose greater value marks the newer version of a record."),
    ] = None,
    table_type: Annotated[str, typer.Option("--type", help="Table type.")] = "copy_on_write",
    index: Annotated[
        str | None,
        typer.Option(
            "--index",
            help="record (default), partitioned_record, simple (default without --key), global_simple, bloom, "
            "global_bloom, bucket, hbase.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name; default is the last folder of the path.")] = None,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Keep an existing table unchanged instead of failing.")
    ] = False,
    null: NullTexts = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create a table with the columns of a file, or with the columns of --column options."""
    schema = _schema(like, column or [], tuple(null or ()))
    table = hoodie.create(
        path,
        schema,
        record_key=key,
        partition_by=partition_by or (),
        ordering=ordering,
        type=table_type,
        index=index,
        name=name,
        properties=pairs(option),
        storage_options=pairs(storage_option),
        exist_ok=exist_ok,
    )
    if as_json:
        print_json({"path": table.path, "columns": {field.name: str(field.type) for field in table.schema}})
    else:
        typer.echo(f"{table.path}: " + ", ".join(f"{field.name} {field.type}" for field in table.schema))


def _schema(like: str | None, columns: list[str], null_texts: tuple[str, ...]) -> pa.Schema:
    if like is None and not columns:
        raise typer.BadParameter("columns are missing: pass --like FILE, or --column NAME:TYPE for each column")
    fields: dict[str, pa.Field] = {}
    if like is not None:
        fields = {field.name: field for field in open_files([like], InputOptions(null_texts=null_texts)).schema}
    for text in columns:
        field = _field(text)
        fields[field.name] = field
    return pa.schema(fields.values())


def _field(text: str) -> pa.Field:
    # sqlglot is loaded only for the option that needs it.
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    name, separator, type_name = text.partition(":")
    if not separator or not name:
        raise typer.BadParameter(f"--column: expected NAME:TYPE, found {text!r}")
    try:
        return pa.field(name, _type(exp.DataType.build(type_name, dialect="spark")))
    except SqlglotError as error:
        raise InvalidConfigError(
            f"column {name!r}: expected a type of Spark SQL such as bigint, found {type_name!r}"
        ) from error


def _type(node: exp.DataType) -> pa.DataType:
    """Convert a parsed type name to an Arrow type; nested types are converted too."""
    from sqlglot import exp

    from hoodie.records.sql.cast import arrow_type

    parts = node.expressions
    wanted = {exp.DataType.Type.ARRAY: 1, exp.DataType.Type.MAP: 2}
    if len(parts) < wanted.get(node.this, 0):
        raise InvalidConfigError(f"expected a type with its elements, such as array<string>, found {node.sql('spark')}")
    if node.this == exp.DataType.Type.STRUCT:
        return pa.struct([(part.name, _type(part.args["kind"])) for part in parts])
    if node.this == exp.DataType.Type.ARRAY:
        return pa.list_(_type(parts[0]))
    if node.this == exp.DataType.Type.MAP:
        return pa.map_(_type(parts[0]), _type(parts[1]))
    return arrow_type(node)
