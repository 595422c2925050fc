"""`hoodie upsert`, `insert`, `update`, `delete`, `delete-partitions` and `sql`: change rows, each in one commit."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, infers_types, open_files
from hoodie.cli.options import AsJson, InputFiles, NullTexts, Properties, StorageOptions, TablePath, Where, pairs
from hoodie.cli.terminal import output, print_json, print_rows, print_table, progress_bar
from hoodie.engine import ArrowDataset
from hoodie.format.avro.schema import META_FIELDS
from hoodie.write.result import WriteResult

OptionalFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE...]", help="Files with the key and partition columns of the records to delete."),
]


def upsert(
    path: TablePath,
    files: InputFiles,
    null: NullTexts = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Insert records with new keys and merge records with known keys."""
    properties = pairs(option)
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("upsert"):
        result = table.upsert(_rows(table, files, null), properties=properties)
    print_result(result, as_json)


def insert(
    path: TablePath,
    files: InputFiles,
    bulk: Annotated[bool, typer.Option("--bulk", help="Write new files only, in one pass.")] = False,
    sort: Annotated[
        list[str] | None, typer.Option("--sort", help="With --bulk: none, partition, global, or columns.")
    ] = None,
    null: NullTexts = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Add records without looking up their keys."""
    if sort and not bulk:
        raise typer.BadParameter("--sort requires --bulk")
    properties = pairs(option)
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("insert"):
        rows = _rows(table, files, null)
        if bulk:
            order = sort[0] if sort and len(sort) == 1 else sort
            result = table.bulk_insert(rows, order, properties=properties)
        else:
            result = table.insert(rows, properties=properties)
    print_result(result, as_json)


def delete(
    path: TablePath,
    files: OptionalFiles = None,
    where: Where = None,
    null: NullTexts = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete the records whose keys are in files, or the records that match a condition."""
    if bool(files) == (where is not None):
        raise typer.BadParameter("pass either files with keys, or --where")
    properties = pairs(option)
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("delete"):
        if where is not None:
            result = table.delete_where(where, properties=properties)
        else:
            result = table.delete(_keys(table, files or [], null), properties=properties)
    print_result(result, as_json)


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


def print_result(result: WriteResult, as_json: bool) -> None:
    """Print the result of a write."""
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))


def update(
    path: TablePath,
    assignment: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=EXPRESSION", help="New value in Spark SQL; may be repeated."),
    ],
    where: Where = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Set columns of all records, or of the records that match a condition."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("update"):
        result = table.update(pairs(assignment), where, properties=pairs(option))
    print_result(result, as_json)


def delete_partitions(
    path: TablePath,
    partitions: Annotated[list[str], typer.Argument(metavar="PARTITION...", help="Partition paths, as in city=sf.")],
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Remove whole partitions from the table."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.delete_partitions(partitions, properties=pairs(option)), as_json)


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
    if not isinstance(result, pa.Table):
        print_result(result, as_json)
    elif as_json:
        print_rows(result.to_batches())
    else:
        print_table(output(), result)
