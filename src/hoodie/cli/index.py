"""`hoodie index build`, `drop`, `switch`, `rebuild`, `verify` and `compare`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, open_files
from hoodie.cli.options import AsJson, NullTexts, Properties, StorageOptions, TablePath, pairs
from hoodie.cli.terminal import print_json, progress_bar
from hoodie.services.results import Report, ServiceResult

DIFFERENT = 1
"""Exit code of a check that found differences."""

app = typer.Typer(
    help="Switch indexes; build, drop, check and compare the record index and column statistics.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


RECORD = "record"
Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="record, hbase, column_stats, partition_stats or bloom_filters.")
]


class Comparable(StrEnum):
    """Indexes that can be compared."""

    RECORD = "record"
    SIMPLE = "simple"
    GLOBAL_SIMPLE = "global_simple"
    BLOOM = "bloom"
    GLOBAL_BLOOM = "global_bloom"
    BUCKET = "bucket"


@app.command("build")
def build(
    path: TablePath,
    name: Name = RECORD,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", help="A column to cover; repeat it. Default: the first 32."),
    ] = None,
    buckets: Annotated[
        int | None,
        typer.Option(
            "--buckets",
            min=1,
            help="Number of index file groups; default: one for each million keys, with room for growth.",
        ),
    ] = None,
    option: Properties = None,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for JVM writes that began before.")] = 600.0,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Build the record index, HBase index (with --option) or column statistics. Repeat it after a crash."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("index build"):
        properties = pairs(option)
        result = table.index.build(name, buckets=buckets, columns=columns, properties=properties, wait_seconds=wait)
    _print_result(result, as_json)


@app.command("drop")
def drop(
    path: TablePath,
    name: Name = RECORD,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Drop the record or HBase index (the table then finds records by `global_simple`), or column statistics."""
    _print_result(hoodie.open(path, storage_options=pairs(storage_option)).index.drop(name), as_json)


@app.command("switch")
def switch(
    path: TablePath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new index, such as record, simple or bucket.")],
    buckets: Annotated[int | None, typer.Option("--buckets", min=1, help="bucket: the number of buckets.")] = None,
    hash_field: Annotated[
        str | None, typer.Option("--hash-field", help="bucket: columns of the record key, separated by commas.")
    ] = None,
    key_keeps_partition: Annotated[
        bool,
        typer.Option("--key-keeps-partition", help="Assert that no later row gives a stored key another partition."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check whether the table can be switched.")] = False,
    wait: Annotated[float, typer.Option("--wait", help="Seconds to wait for JVM writes that began before.")] = 600.0,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Switch to another index, after a check that keys stay unique; writers can run. Repeat it after a crash."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("index switch"):
        result = table.index.switch(
            name, buckets=buckets, hash_field=hash_field, key_keeps_partition=key_keeps_partition, dry_run=dry_run,
            wait_seconds=wait,
        )  # fmt: skip
    _print_result(result, as_json)


@app.command("rebuild")
def rebuild(path: TablePath, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Build a damaged metadata table anew, with its record index; it holds derived data only."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("index rebuild"):
        result = table.index.rebuild()
    _print_result(result, as_json)


@app.command("verify")
def verify(
    path: TablePath,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="As for build; default: the table's index of its keys.")
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Check the record index, HBase index or column statistics against the data; exit code 1 if they differ."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("index verify"):
        report = table.index.verify(name)
    _print_report(report, as_json)


@app.command("compare")
def compare(
    path: TablePath,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE...]", help="Files with the key columns of the records to look up."),
    ] = None,
    first: Annotated[Comparable, typer.Option("--first", help="The first index.")] = Comparable.RECORD,
    second: Annotated[Comparable, typer.Option("--second", help="The second index.")] = Comparable.SIMPLE,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Check the entries of commits that completed after this instant or time."
        ),
    ] = None,
    null: NullTexts = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Look up keys in two indexes, or check the entries of commits since an instant; exit code 1 if they differ."""
    if bool(files) == (since is not None):
        raise typer.BadParameter("pass either files with keys, or --since")
    table = hoodie.open(path, storage_options=pairs(storage_option))
    with progress_bar("index compare"):
        rows = _keys(table, files, null) if files else None
        report = table.index.compare(first.value, second.value, data=rows, since=since)
    _print_report(report, as_json)


def _keys(table: hoodie.Table, files: list[str], null: list[str] | None) -> pa.RecordBatchReader:
    """Open files with key columns; other columns may be missing and are ignored."""
    names = {name.split(".")[0] for name in table.view().config.record_key_fields}
    types = pa.schema([field for field in table.schema if field.name in names])
    return open_files(files, InputOptions(types=types, null_texts=tuple(null or ())))


def _print_result(result: ServiceResult, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))


def _print_report(report: Report, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if not report.ok:
        raise typer.Exit(DIFFERENT)
