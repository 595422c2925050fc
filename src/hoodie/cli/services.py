"""`hoodie services run`: run table services in a separate process beside the writers; and `hoodie rollback`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

import hoodie
from hoodie.cli.compact import print_result
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, pairs
from hoodie.ui.console import print_error

app = typer.Typer(help="Run table services beside the writers.", no_args_is_help=True, rich_markup_mode=None)


def rollback(
    path: TablePath,
    instant: Annotated[str, typer.Argument(help="Requested time of a pending write or compaction.")],
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Roll back a pending write or compaction: delete its files, and its instant from the timeline."""
    print_result(hoodie.open(path, storage_options=pairs(storage_option)).rollback(instant), as_json)


@app.command("run")
def run(
    path: TablePath,
    compact: Annotated[bool, typer.Option("--compact", help="Compact log files.")] = False,
    interval: Annotated[float, typer.Option("--interval", min=0.01, help="Seconds between rounds.")] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Run one round, then exit.")] = False,
    schedule: Annotated[
        bool, typer.Option(help="Schedule compactions that are due; otherwise only execute the pending compactions.")
    ] = True,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT[/PATH]", help="Share the work with compactors on other machines through ZooKeeper."
        ),
    ] = None,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run services until interrupted; running work is finished first. Several processes can serve one table."""
    if not compact:
        raise typer.BadParameter("expected a service to run: pass --compact")
    table = hoodie.open(path, storage_options=pairs(storage_option))
    coordinator = None if zookeeper is None else f"zookeeper://{zookeeper}"
    compactor = table.compactor(
        interval=interval,
        schedule=schedule,
        coordinator=coordinator,
        properties=pairs(option),
        report=lambda result: print_result(result, as_json),
        on_error=print_error,
    )
    if once:
        compactor.run_once()
        return
    with _interrupted() as stopped, compactor:
        stopped.wait()


@contextmanager
def _interrupted() -> Iterator[threading.Event]:
    """Return an event that SIGINT or SIGTERM sets; the former signal handlers are restored at the end."""
    stopped = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in signals}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
