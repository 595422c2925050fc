"""`hoodie ui`: pages of tables in a browser, or of one table as a file; `hoodie report`: findings as an exit code."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie.cli.options import FOUND, Call, Full, StorageOptions, pairs, table_command
from hoodie.cli.terminal import print_answer, print_note, progress_bar
from hoodie.errors import UnsupportedError
from hoodie.results import Severity

if TYPE_CHECKING:
    from hoodie.web.places import Tables
    from hoodie.web.server import Server

_PORT_MAX = 65_535
_PARTS_OF_THE_EXTRA = frozenset({"starlette", "uvicorn", "anyio", "h11"})


def ui(
    places: Annotated[
        list[str], typer.Argument(metavar="PLACE...", help="Tables, or folders with tables below.", show_default=False)
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=_PORT_MAX, help="Port; 0: a free one.")] = 0,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, as requests name it.")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    data: Annotated[
        bool | None, typer.Option("--data/--no-data", help="Show rows; default: yes, in a file no.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write one table to a file of HTML instead.")
    ] = None,
    storage_option: StorageOptions = None,
) -> None:
    """Show tables in the browser: timeline, files, schema, rows, findings; Ctrl-C ends it. Nothing is changed."""
    from hoodie.web.places import Tables

    tables = Tables(places, pairs(storage_option))
    if export is not None:
        _export(tables, export, shows_data=bool(data))
        return
    server = _server(tables, host, port, shows_data=data is not False)
    typer.echo(server.gate.address)
    if browser:
        _open_browser(server.gate.address_for_once())
    server.serve_until_stopped()
    if server.site.is_busy:
        # Reads of slow storage, and checks, would hold the process until they end. They change nothing.
        sys.stdout.flush()
        os._exit(0)


def _server(tables: Tables, host: str, port: int, *, shows_data: bool) -> Server:
    try:
        from hoodie.web.server import Server, Site
    except ModuleNotFoundError as error:
        if error.name not in _PARTS_OF_THE_EXTRA:
            raise
        raise UnsupportedError(
            f"`hoodie ui` requires {error.name}, which is not installed: pip install 'hoodie[ui]'"
        ) from error
    return Server(Site.of(tables, shows_data=shows_data), host=host, port=port)


def _open_browser(address: str) -> None:
    """Open the browser of a desktop, or `BROWSER`; a browser of texts would take over this terminal."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return
    if type(found) is not webbrowser.GenericBrowser or "BROWSER" in os.environ:
        threading.Thread(target=found.open, args=(address,), daemon=True).start()


def _export(tables: Tables, file: Path, *, shows_data: bool) -> None:
    from hoodie.web.export import export

    with progress_bar("report"):
        html, notes = export(tables, shows_data=shows_data)
    file.write_text(html, encoding="utf-8", errors="backslashreplace")
    for note in notes:
        print_note(note)
    typer.echo(f"{file}: {file.stat().st_size:,} bytes")


@table_command()
def report(
    call: Call,
    fail_on: Annotated[Severity, typer.Option("--fail-on", help="Least severity that fails.")] = Severity.ERROR,
    full: Full = False,
) -> None:
    """Print the findings of `verify` for a pipeline. Exit code 0: none of this severity; 3: there are some."""
    with progress_bar("report"):
        found = call.table.verify(full)
    print_answer(found, call.as_json, table=call.path)
    if not found.ok or (fail_on is Severity.WARNING and any(found.warnings.values())):
        raise typer.Exit(FOUND)
