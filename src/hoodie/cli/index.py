"""`hoodie index build`, `drop`, `switch`, `rebuild`, `verify` and `compare`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.input import InputOptions, open_files
from hoodie.cli.options import Call, NullTexts, Properties, pairs, table_command
from hoodie.results import Report, ServiceResult

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
@table_command("index build")
def build(
    call: Call,
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
) -> ServiceResult:
    """Build the record index, HBase index (with --option) or column statistics. Repeat it after a crash."""
    index = call.table.index
    return index.build(name, buckets=buckets, columns=columns, properties=pairs(option), wait_seconds=wait)


@app.command("drop")
@table_command()
def drop(call: Call, name: Name = RECORD) -> ServiceResult:
    """Drop the record or HBase index (the table then finds records by `global_simple`), or column statistics."""
    return call.table.index.drop(name)


@app.command("switch")
@table_command("index switch")
def switch(
    call: Call,
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
) -> ServiceResult:
    """Switch to another index, after a check that keys stay unique; writers can run. Repeat it after a crash."""
    return call.table.index.switch(
        name, buckets=buckets, hash_field=hash_field, key_keeps_partition=key_keeps_partition, dry_run=dry_run,
        wait_seconds=wait,
    )  # fmt: skip


@app.command("rebuild")
@table_command("index rebuild")
def rebuild(call: Call) -> ServiceResult:
    """Build a damaged metadata table anew, with its record index; it holds derived data only."""
    return call.table.index.rebuild()


@app.command("verify")
@table_command("index verify")
def verify(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="As for build; default: the table's index of its keys.")
    ] = None,
) -> Report:
    """Check the record index, HBase index or column statistics against the data; exit code 1 if they differ."""
    return call.table.index.verify(name)


@app.command("compare")
@table_command("index compare")
def compare(
    call: Call,
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
) -> Report:
    """Look up keys in two indexes, or check the entries of commits since an instant; exit code 1 if they differ."""
    if bool(files) == (since is not None):
        raise typer.BadParameter("pass either files with keys, or --since")
    rows = _keys(call.table, files, null) if files else None
    return call.table.index.compare(first.value, second.value, data=rows, since=since)


def _keys(table: hoodie.Table, files: list[str], null: list[str] | None) -> pa.RecordBatchReader:
    """Open files with key columns; other columns may be missing and are ignored."""
    names = {name.split(".")[0] for name in table.view().config.record_key_fields}
    types = pa.schema([field for field in table.schema if field.name in names])
    return open_files(files, InputOptions(types=types, null_texts=tuple(null or ())))
