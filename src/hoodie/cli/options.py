"""Arguments and options that several commands share, and the frame of a command on a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any

import typer

import hoodie
from hoodie.cli.terminal import print_answer, progress_bar
from hoodie.results import Report, ServiceResult

DIFFERENT = 1
"""Exit code of a check that found differences."""
FOUND = 3
"""Exit code of a check that found errors, and of a repair that left some."""


def _noted(context: typer.Context, path: str) -> str:
    """Keep the path for messages, whose commands name the table."""
    context.find_root().obj = path
    return path


TablePath = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="Folder or URI of the table.", show_default=False, callback=_noted),
]
InputFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Parquet, CSV or JSON lines files; may be compressed (.csv.gz).", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
StorageOptions = Annotated[
    list[str] | None, typer.Option("--storage-option", metavar="KEY=VALUE", help="Setting of the object store.")
]
Properties = Annotated[list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="A `hoodie.*` option.")]
Execute = Annotated[
    bool,
    typer.Option(
        "--execute/--dry-run",
        "--no-dry-run",
        help="Do it, or only print what would be done (default).",
        show_default=False,
    ),
]
RecordKey = Annotated[
    list[str] | None, typer.Option("--key", "-k", help="Record key column; may be repeated. Default: automatic keys.")
]
Ordering = Annotated[
    list[str] | None,
    typer.Option("--ordering", "-o", help="Column whose greater value marks the newer version of a record."),
]
TableType = Annotated[str, typer.Option("--type", help="Table type.")]
TableName = Annotated[str | None, typer.Option("--name", help="Name; default is the last folder of the path.")]
Full = Annotated[bool, typer.Option("--full", help="Read every file, every key and the record index too.")]
TableVersion = Annotated[
    int | None,
    typer.Option("--table-version", help="9 (default), 8 for Hudi 1.0, or 6 for Hudi 0.14 and 0.15; a table keeps it."),
]
NullTexts = Annotated[
    list[str] | None, typer.Option("--null", metavar="TEXT", help="Text that is null in CSV, for example `NA`.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", "--columns", "-c", metavar="NAMES", help="Columns to print, as in a,b; may be repeated."),
]
Where = Annotated[str | None, typer.Option("--where", "-w", help="Condition in Spark SQL.", show_default=False)]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Read the table as of this instant (inclusive), ISO date or datetime; without a zone it is local time. "
        "requested:TIME counts by request.",
    ),
]


def names_of(texts: Sequence[str] | None) -> list[str] | None:
    """Split repeated options of names with commas; None if there are none.

    >>> names_of(["id,fare", "city"])
    ['id', 'fare', 'city']
    """
    names = [name.strip() for text in texts or () for name in text.split(",")]
    return [name for name in names if name] or None


def pairs(texts: Sequence[str] | None) -> dict[str, str]:
    """Parse repeated `KEY=VALUE` options.

    Raises: typer.BadParameter for a text without `=`.

    >>> pairs(["aws_region=eu-west-1"])
    {'aws_region': 'eu-west-1'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise typer.BadParameter(f"expected KEY=VALUE, found {text!r}")
        found[name] = value
    return found


@dataclass(frozen=True)
class Call:
    """One call of a command on a table."""

    path: str
    storage_options: Sequence[str] | None
    as_json: bool

    @functools.cached_property
    def table(self) -> hoodie.Table:
        """The table. It is opened when it is first used: errors of the arguments are raised before."""
        return hoodie.open(self.path, storage_options=pairs(self.storage_options), spark=False)


def table_command(
    title: str | None = None, *, own: bool = False, failed: int = DIFFERENT
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a command of a function of a `Call` that returns a result, a table, an `Answer`, or None: nothing to print.

    The command has the arguments of the function, TABLE, --storage-option and --json. `title`: a progress bar with it
    is shown while the function runs. `own` as for `print_table`. `failed`: exit code for a report of problems.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(function)
        def command(path: str, storage_option: list[str] | None, as_json: bool, **arguments: Any) -> None:
            with nullcontext() if title is None else progress_bar(title):
                found = function(Call(path, storage_option, as_json), **arguments)
            if found is not None:
                print_answer(found, as_json, own=own, table=path)
            if isinstance(found, Report | ServiceResult) and not found.ok:
                raise typer.Exit(failed)

        _, *given = inspect.signature(function, eval_str=True).parameters.values()
        kind = Parameter.POSITIONAL_OR_KEYWORD
        parameters = (
            Parameter("path", kind, annotation=TablePath),
            *given,
            Parameter("storage_option", kind, annotation=StorageOptions, default=None),
            Parameter("as_json", kind, annotation=AsJson, default=False),
        )
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return command

    return decorate
