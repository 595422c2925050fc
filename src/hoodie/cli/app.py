"""The `hoodie` command: its subcommands and its exit codes.

A call loads the module of its own command only, because the modules of all commands take longer to load than most
commands run. Help and shell completion load all of them.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

import hoodie
from hoodie.cli.terminal import drop_output, print_error, print_note
from hoodie.cli.words import INTERRUPTED, in_words
from hoodie.errors import HoodieError, HoodieWarning
from hoodie.table.operations import LOOK, MAINTAIN, MEND, OPERATIONS

FAILED = 1
_HELP_CHARS_MIN, _HELP_CHARS_DEFAULT = 30, 78

_OPERATIONS: Final = "operations"
"""The module whose commands are made of the table of operations."""


def _rows(section: str) -> dict[str, str]:
    return {row.name: row.command or _OPERATIONS for row in OPERATIONS if row.section == section}


SECTIONS: Final = MappingProxyType(
    {
        "Begin": {"demo": "demo", "create": "writes", "adopt": "adopt"},
        "Write": {
            "upsert": "writes",
            "insert": "writes",
            "delete": "writes",
            "update": "writes",
            "delete-partitions": "writes",
        },
        "Read": {
            "head": "reads",
            "count": "reads",
            "get": "reads",
            "changes": "reads",
            "sql": "writes",
            "query": "query",
        },
        LOOK: {
            "info": "reads",
            "schema": "reads",
            "timeline": "reads",
            "show": "reads",
            "inspect": "reads",
            **_rows(LOOK),
            "report": "ui",
            "ui": "ui",
        },
        MEND: _rows(MEND),
        MAINTAIN: {"compact": "services", "cluster": "services", **_rows(MAINTAIN)},
    }
)
"""The commands by what they are for, as help lists them, each with its module."""
MODULE_OF: Final = MappingProxyType({name: module for section in SECTIONS.values() for name, module in section.items()})
"""The module of each command; a command is the function of its name there, with `_` for `-`, or a
row of the table of operations."""
GROUPS: Final = MappingProxyType(
    {"ingest": "ingest", "index": "index", "savepoint": "recovery", "services": "services"}
)
"""The module of each group of commands; the group is the `app` there."""


class _Commands(TyperGroup):
    """The group of all commands: turns errors that need no traceback into one line and an exit code."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in {**SECTIONS, "Groups of commands": GROUPS}.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
            with formatter.section(title):
                formatter.write_dl([(name, found.get_short_help_str(width)) for name, found in commands if found])

    def invoke(self, ctx: Any) -> Any:
        if ctx.invoked_subcommand != "demo":
            _hide_pandas()
        try:
            with _warnings_as_notes(ctx):
                result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            print_error(
                KeyboardInterrupt(
                    "interrupted; a write that was not yet committed changed nothing: t.timeline shows which instants "
                    "are completed"
                ),
                table=_table(ctx),
            )
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(0) from None
        except Exception as error:
            if not isinstance(error, HoodieError | OSError) and type(error).__module__ != "pyarrow.lib":
                raise
            # The messages of these errors describe the problem in the input or the table; a traceback adds nothing.
            print_error(error, table=_table(ctx))
            raise typer.Exit(FAILED) from None
        return result


@contextmanager
def _warnings_as_notes(ctx: Any) -> Iterator[None]:
    """Print a `HoodieWarning` of the body as one line, without the place in the code."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, HoodieWarning):
                print_note(in_words(str(message), _table(ctx)))
            else:
                show(message, category, *place, **more)

        warnings.simplefilter("always", HoodieWarning)
        warnings.showwarning = note
        yield


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit; default is the command line of this process.

    Exit codes: 0 success (even if the reader of the output closed it), 1 failure with one line on standard error,
    2 wrong usage, 130 Ctrl-C.
    """
    _prepare_output()
    given = sys.argv[1:] if arguments is None else list(arguments)
    build_app(given)(args=given, prog_name="hoodie")
    sys.exit(0)


def _prepare_output() -> None:
    """Write letters that the output's encoding lacks as `\\xdf`; refuse a standard output that is closed."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  (open until the process ends)
    if sys.stdout is None:
        print("hoodie: standard output is closed: nothing was done", file=sys.stderr)
        sys.exit(FAILED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _help_width() -> dict[str, int]:
    """Return the settings by which help fits a narrow terminal: without them its lines have at least 50 characters."""
    columns = shutil.get_terminal_size().columns - 2
    return {"terminal_width": max(columns, _HELP_CHARS_MIN)} if columns < _HELP_CHARS_DEFAULT else {}


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """Build the commands that this call can need: one if the first argument names it, otherwise all."""
    app = typer.Typer(
        name="hoodie",
        help="Apache Hudi tables from Python, without a JAR. Every command that prints data has --json (JSON lines).",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=_help_width(),
        rich_markup_mode=None,
        cls=_Commands,
    )
    app.callback()(_common)
    names = {*MODULE_OF, *GROUPS}
    wanted = {*arguments[:1]} & names
    if not wanted and [*arguments] != ["--version"]:
        wanted = names
    for name, module in MODULE_OF.items():
        if name in wanted:
            app.command(name)(_function(name, module))
    for name, module in GROUPS.items():
        if name in wanted:
            app.add_typer(importlib.import_module(f"hoodie.cli.{module}").app, name=name)
    return app


def _function(name: str, module: str) -> Callable[..., Any]:
    found = importlib.import_module(f"hoodie.cli.{module}")
    if module == _OPERATIONS:
        command: Callable[..., Any] = found.command_of(next(row for row in OPERATIONS if row.name == name))
    else:
        command = getattr(found, name.replace("-", "_"))
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hoodie {hoodie.__version__}")
        raise typer.Exit(0)


def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Options of the command `hoodie` itself."""


def _table(ctx: Any) -> str | None:
    return ctx.obj if isinstance(ctx.obj, str) else None


def _hide_pandas() -> None:
    """Keep pyarrow from importing pandas, which takes longer than most commands. No command uses pandas objects."""
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow as pa

        pa.array([0])  # pyarrow looks for pandas once, here
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    """A finder by which pandas is not installed."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Refuse pandas; let the other finders find all other modules."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"{fullname} is hidden from this command", name=fullname)
