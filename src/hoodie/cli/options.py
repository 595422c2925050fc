"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer


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
        help="Read the table as of this instant (inclusive), ISO date or datetime; requested:TIME counts by request.",
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
