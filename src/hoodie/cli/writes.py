"""`hoodie create`, and the commands that change rows, each in one commit: `upsert`, `insert`, `update`, `delete`,
`delete-partitions` and `sql`.
"""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import infers_types, open_files
from hoodie.cli.options import (
    AsJson,
    Call,
    InputFiles,
    NullTexts,
    Ordering,
    Properties,
    RecordKey,
    StorageOptions,
    TableName,
    TablePath,
    TableType,
    TableVersion,
    Where,
    pairs,
    table_command,
)
from hoodie.cli.terminal import print_answer, print_json
from hoodie.engine import ArrowDataset
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.format.avro.schema import META_FIELDS
from hoodie.ingest.rows.rules import InputOptions
from hoodie.write.result import WriteResult

_META = [pa.field(name, pa.string()) for name in META_FIELDS]


def create(
    path: TablePath,
    like: Annotated[str | None, typer.Option("--like", metavar="FILE", help="Use the columns of this file.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", "-c", metavar="NAME:TYPE", help="A column, or another type for a column of the --like file."
        ),
    ] = None,
    key: RecordKey = None,
    partition_by: Annotated[
        list[str] | None, typer.Option("--partition-by", "-p", help="Partition column; may be repeated.")
    ] = None,
    ordering: Ordering = None,
    table_type: TableType = "copy_on_write",
    index: Annotated[
        str | None,
        typer.Option(
            "--index",
            help="record (default), partitioned_record, simple (default without --key), global_simple, bloom, "
            "global_bloom, bucket, hbase.",
        ),
    ] = None,
    name: TableName = None,
    table_version: TableVersion = None,
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
        table_version=table_version,
        properties=pairs(option),
        storage_options=pairs(storage_option),
        exist_ok=exist_ok,
    )
    if as_json:
        print_json({"path": table.path, "columns": {field.name: str(field.type) for field in table.schema}})
    else:
        columns = (f"{one.name} {one.type}{'' if one.nullable else ' not null'}" for one in table.schema)
        typer.echo(f"{table.path}: {', '.join(columns)}")


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
    from hoodie.records.sql.types import field_named

    name, separator, definition = text.partition(":")
    if not separator or not name:
        raise typer.BadParameter(f"--column: expected NAME:TYPE, found {text!r}")
    try:
        return field_named(name, definition)
    except HoodieError as error:
        raise InvalidConfigError(f"column {name!r}: {error}") from error


@table_command("upsert")
def upsert(call: Call, files: InputFiles, null: NullTexts = None, option: Properties = None) -> WriteResult:
    """Insert records with new keys and merge records with known keys."""
    properties = pairs(option)
    return call.table.upsert(_rows(call.table, files, null), properties=properties)


@table_command("insert")
def insert(
    call: Call,
    files: InputFiles,
    bulk: Annotated[bool, typer.Option("--bulk", help="Write new files only, in one pass.")] = False,
    sort: Annotated[
        list[str] | None, typer.Option("--sort", help="With --bulk: none, partition, global, or columns.")
    ] = None,
    null: NullTexts = None,
    option: Properties = None,
) -> WriteResult:
    """Add records without looking up their keys."""
    if sort and not bulk:
        raise typer.BadParameter("--sort requires --bulk")
    properties = pairs(option)
    rows = _rows(call.table, files, null)
    if bulk:
        order = sort[0] if sort and len(sort) == 1 else sort
        return call.table.bulk_insert(rows, order, properties=properties)
    return call.table.insert(rows, properties=properties)


@table_command("delete")
def delete(
    call: Call,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...]", help="Files with the key and partition columns of the records to delete."),
    ] = None,
    where: Where = None,
    null: NullTexts = None,
    option: Properties = None,
) -> WriteResult:
    """Delete the records whose keys are in files, or the records that match a condition."""
    if bool(files) == (where is not None):
        raise typer.BadParameter("pass either files with keys, or --where")
    properties = pairs(option)
    if where is not None:
        return call.table.delete_where(where, properties=properties)
    return call.table.delete(_keys(call.table, files or [], null), properties=properties)


def _rows(table: hoodie.Table, files: list[str], null: list[str] | None) -> ArrowDataset:
    types = pa.schema([*table.schema, *_META])
    keys = table.view().config.record_key_fields
    required = frozenset(keys if len(keys) == 1 else ())  # a key column of several may have nulls
    rows = open_files(files, InputOptions(types=types, required=required, null_texts=tuple(null or ())))
    untyped = rows.schema.names if any(map(infers_types, files)) else ()
    return ArrowDataset(rows, untyped=frozenset(untyped))


def _keys(table: hoodie.Table, files: list[str], null: list[str] | None) -> pa.RecordBatchReader:
    """Open files with key and partition columns; other columns may be missing and are ignored."""
    config = table.view().config
    names = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    types = pa.schema([*(field for field in table.schema if field.name in names), *_META])
    nulls = tuple(null or ())
    return open_files(files, InputOptions(types=types, ignores_others=True, omits_missing=True, null_texts=nulls))


@table_command("update")
def update(
    call: Call,
    assignment: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=EXPRESSION", help="New value in Spark SQL; may be repeated."),
    ],
    where: Where = None,
    option: Properties = None,
) -> WriteResult:
    """Set columns of all records, or of the records that match a condition."""
    return call.table.update(pairs(assignment), where, properties=pairs(option))


@table_command()
def delete_partitions(
    call: Call,
    partitions: Annotated[list[str], typer.Argument(metavar="PARTITION...", help="Partition paths, as in city=sf.")],
    option: Properties = None,
) -> WriteResult:
    """Remove whole partitions from the table."""
    return call.table.delete_partitions(partitions, properties=pairs(option))


def sql(
    statement: Annotated[
        str, typer.Argument(help="MERGE INTO, UPDATE, DELETE FROM or CALL; hoodie.`/path` is a table.")
    ],
    table: Annotated[list[str] | None, typer.Option("--table", "-t", help="A name for a table: NAME=PATH.")] = None,
    data: Annotated[
        list[str] | None, typer.Option("--data", "-d", help="A name for rows, the source of a MERGE: NAME=FILE.")
    ] = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run one SQL statement; `hoodie sql "CALL help()"` lists the procedures."""
    sources = {name: open_files([path], InputOptions()).read_all() for name, path in pairs(data).items()}
    result = hoodie.sql(
        None,
        statement,
        tables={**pairs(table), **sources},
        properties=pairs(option),
        storage_options=pairs(storage_option),
    )
    if result is not None:  # a statement without an answer, such as CREATE INDEX
        print_answer(result, as_json, whole=True)
