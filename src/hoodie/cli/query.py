"""`hoodie query`: SELECT over tables by DuckDB."""

from __future__ import annotations

import contextlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer

import hoodie
from hoodie.cli.options import AsJson, StorageOptions, pairs
from hoodie.cli.terminal import print_answer, print_note, print_rows
from hoodie.errors import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_EXPLAIN = re.compile(r"^\s*EXPLAIN(\s+ANALYZE)?\s+", re.IGNORECASE)
_SHOWN_MAX = 100
"""Rows printed to a terminal; `--json` and `--csv` print all."""


def query(
    statement: Annotated[str, typer.Argument(help="SQL of DuckDB; tables by name, or by path: FROM 's3://…'.")],
    table: Annotated[list[str] | None, typer.Option("--table", "-t", help="A name for a table: NAME=PATH.")] = None,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="Tables as of this time.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Query tables by DuckDB, which reads the columns, rows and files that a query needs.

    A name is one of --table, or a folder with a table. DuckDB reads other files by itself: FROM 'x.parquet'.
    """
    if as_csv and as_json:
        raise typer.BadParameter("--csv and --json: choose one")
    try:
        import duckdb
    except ImportError:
        raise InvalidConfigError("hoodie query needs DuckDB: pip install 'hoodie[query]'") from None
    con: Any = duckdb.connect()
    stores = pairs(storage_option)
    for name, path in _tables_of(statement, pairs(table), stores).items():
        found = hoodie.open(path, storage_options=stores, spark=False)
        found.to_duckdb(con, as_of).create_view(name)

    def answer() -> None:
        result = con.sql(statement)
        if result is not None:
            # As in a subquery, further columns of one name have the names `name_1`, `name_2`, …
            found = result.select("*")
            if as_json:
                print_rows(_with_long_sums(found))
            else:
                _print(found.to_arrow_reader(), as_csv)

    try:
        _interruptible(con, answer)
    except duckdb.Error as error:
        raise InvalidConfigError(f"DuckDB: {error}") from error


def _interruptible(con: Any, answer: Callable[[], None]) -> None:
    """Call a function that runs a query, on a thread: Ctrl-C ends the query, also while DuckDB does not look for it."""
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(answer)
        try:
            running.result()
        except KeyboardInterrupt:
            con.interrupt()
            raise


def _with_long_sums(result: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows with integers for HUGEINT, the type of sums of integers; Arrow has them as decimals.

    A value of more than 64 bits stays a decimal, with the others of its column in the batch. Memory: one batch.
    """
    sums = [number for number, kind in enumerate(result.types) if str(kind) == "HUGEINT"]
    for batch in result.to_arrow_reader():
        columns = batch.columns
        for number in sums:
            with contextlib.suppress(pa.ArrowInvalid):
                columns[number] = columns[number].cast(pa.int64())
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _tables_of(statement: str, known: Mapping[str, str], stores: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of the tables that a statement names, in any case; other names are left to DuckDB."""
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    try:
        trees = [tree for tree in parse(_EXPLAIN.sub("", statement), dialect="duckdb") if tree is not None]
    except SqlglotError:
        return dict(known)  # DuckDB raises the error, or parses more SQL than sqlglot.
    given = {name.lower(): path for name, path in known.items()}
    found = {}
    for node in (node for tree in trees for node in tree.find_all(exp.Table)):
        name = node.name
        path = given.get(name.lower(), name)
        is_ours = name and node.db.lower() in ("", "main") and not node.catalog
        if is_ours and (name.lower() in given or hoodie.exists(path, storage_options=stores)):
            found[name] = path
    # DuckDB takes the spellings of a name for one table.
    first = {name.lower(): name for name in reversed(found)}
    return {name: found[name] for name in found if first[name.lower()] == name}


def _print(rows: pa.RecordBatchReader, as_csv: bool) -> None:
    if as_csv:
        from pyarrow import csv

        refused = [f"{field.name} ({field.type})" for field in rows.schema if not _fits_csv(field.type)]
        if refused:
            raise InvalidConfigError(
                f"CSV has no form for {', '.join(refused)}: CAST the column to VARCHAR, or take --json"
            )
        with csv.CSVWriter(sys.stdout.buffer, rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
    else:
        from hoodie.read.local import first_of

        found = first_of(rows, _SHOWN_MAX + 1)
        print_answer(found.slice(0, _SHOWN_MAX), False)
        if found.num_rows > _SHOWN_MAX:
            print_note(f"the first {_SHOWN_MAX} rows; --json and --csv print all")


def _fits_csv(kind: pa.DataType) -> bool:
    is_odd = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_interval(kind)
    return not (is_odd or pa.types.is_nested(kind) or pa.types.is_duration(kind))
