"""`hoodie upsert`, `insert`, `update`, `delete`, `delete-partitions` and `sql`: change rows, each in one commit."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, infers_types, open_files
from hoodie.cli.options import (
    AsJson,
    Call,
    InputFiles,
    NullTexts,
    Properties,
    StorageOptions,
    Where,
    pairs,
    table_command,
)
from hoodie.cli.terminal import print_answer
from hoodie.engine import ArrowDataset
from hoodie.format.avro.schema import META_FIELDS
from hoodie.write.result import WriteResult

OptionalFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...]", help="Files with the key and partition columns of the records to delete."),
]


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
    files: OptionalFiles = None,
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
    rows = open_files(files, InputOptions(types=types, required=_required(table), null_texts=tuple(null or ())))
    untyped = rows.schema.names if any(map(infers_types, files)) else ()
    return ArrowDataset(rows, untyped=frozenset(untyped))


def _required(table: hoodie.Table) -> frozenset[str]:
    """Return the only column of the record key; a column of several may have nulls."""
    keys = table.view().config.record_key_fields
    return frozenset(keys if len(keys) == 1 else ())


_META = [pa.field(name, pa.string()) for name in META_FIELDS]


def _keys(table: hoodie.Table, files: list[str], null: list[str] | None) -> pa.RecordBatchReader:
    """Open files with key and partition columns; other columns may be missing and are ignored."""
    config = table.view().config
    names = {name.split(".")[0] for name in (*config.record_key_fields, *config.partition_fields)}
    types = pa.schema([*(field for field in table.schema if field.name in names), *_META])
    return open_files(files, InputOptions(types=types, ignores_others=True, null_texts=tuple(null or ())))


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
    print_answer(result, as_json)
