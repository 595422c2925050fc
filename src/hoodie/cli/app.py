"""The `hoodie` command: its subcommands and its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa
import typer

from hoodie.cli import compact, creation, demo, index, inspection, reads, services, writes
from hoodie.errors import HoodieError
from hoodie.ui.console import print_error

FAILED = 1

app = typer.Typer(
    name="hoodie",
    help="Apache Hudi tables from Python, without a JAR. Every command that prints data has --json (JSON lines).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("create")(creation.create)
app.command("upsert")(writes.upsert)
app.command("insert")(writes.insert)
app.command("delete")(writes.delete)
app.command("head")(reads.head)
app.command("count")(reads.count)
app.command("changes")(reads.changes)
app.command("timeline")(inspection.timeline)
app.command("show")(inspection.show)
app.command("inspect")(inspection.inspect)
app.command("compact")(compact.compact)
app.command("rollback")(services.rollback)
app.add_typer(index.app, name="index")
app.add_typer(services.app, name="services")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit; default is the command line of this process.

    Exit codes: 0 success, 1 failure with one line on standard error, 2 wrong usage.
    """
    try:
        app(args=None if arguments is None else list(arguments), prog_name="hoodie")
    except (HoodieError, pa.ArrowException, OSError) as error:
        # The messages of these errors describe the problem in the input or the table; a traceback adds nothing.
        print_error(error)
        sys.exit(FAILED)
    sys.exit(0)
