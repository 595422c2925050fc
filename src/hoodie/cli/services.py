"""`hoodie services run`: run table services in a separate process beside the writers; `clean` and others by hand."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import hoodie
from hoodie.cli.compact import print_result
from hoodie.cli.options import AsJson, Properties, StorageOptions, TablePath, pairs
from hoodie.format.table.call_options import check_call_options
from hoodie.ui.console import print_error

_LOOK_SECONDS = 1.0
"""How often the command looks whether its thread still runs."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; tell what would be deleted.")]

app = typer.Typer(help="Run table services beside the writers.", no_args_is_help=True, rich_markup_mode=None)


def rollback(
    path: TablePath,
    instant: Annotated[str, typer.Argument(help="Requested time of a write or compaction, pending or completed.")],
    chain: Annotated[bool, typer.Option("--chain", help="Roll back all later commits too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rolled back.")] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Roll back a write or compaction: delete its files, and its instant from the timeline."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.rollback(instant, chain=chain, dry_run=dry_run), as_json)


def restore(
    path: TablePath,
    savepoint: Annotated[str, typer.Argument(help="Requested time of a savepoint, or of another completed commit.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be rolled back.")] = False,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Restore the table to a savepoint: roll back everything after it. Completes a restore whose process died."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.restore(savepoint, dry_run=dry_run), as_json)


def clean(
    path: TablePath,
    dry_run: DryRun = False,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete the files that no retained snapshot needs; pending cleans are finished first."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    result = table.clean(dry_run, properties=pairs(option))
    print_result(result, as_json)
    if not as_json:
        _print_names(result.files)
        if result.oldest_readable is not None:
            typer.echo(f"  snapshots from {result.oldest_readable} on stay readable")
        for saved in result.readable_savepoints:
            typer.echo(f"  the snapshot of {saved} stays readable: it has a savepoint")


def archive(
    path: TablePath,
    dry_run: DryRun = False,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Move the oldest instants of the timeline to its archive, if there are more than hoodie.keep.max.commits."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    print_result(table.archive(dry_run, properties=pairs(option)), as_json)


def expire_partitions(
    path: TablePath,
    dry_run: DryRun = False,
    option: Properties = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete the partitions whose time to live is over, in one commit."""
    table = hoodie.open(path, storage_options=pairs(storage_option))
    result = table.expire_partitions(dry_run, properties=pairs(option))
    print_result(result, as_json)
    if not as_json:
        for partition, since in result.partitions.items():
            typer.echo(f"  {partition}  since {since}")


def _print_names(files: Mapping[str, Sequence[str]]) -> None:
    for partition, names in files.items():
        for name in names:
            typer.echo(f"  {partition}/{name}" if partition else f"  {name}")


def _service(name: str, text: str) -> Any:
    return typer.Option(f"--{name}", help=text)


@app.command("run")
def run(
    path: TablePath,
    compact: Annotated[bool, _service("compact", "Compact log files.")] = False,
    log_compact: Annotated[bool, _service("log-compact", "Fold many small log blocks into one.")] = False,
    cluster: Annotated[bool, _service("cluster", "Sort rows, and join small files.")] = False,
    ttl: Annotated[bool, _service("ttl", "Delete expired partitions.")] = False,
    clean: Annotated[bool, _service("clean", "Delete files that no retained snapshot needs.")] = False,
    archive: Annotated[bool, _service("archive", "Move old instants out of the active timeline.")] = False,
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
    """Run the services that are due until interrupted; running work is finished first.

    Without a service, those run that are on in the table's properties. Several processes can serve one table. The exit
    code is 1 if a service of the last round failed.
    """
    flags = {
        "compact": compact,
        "log-compact": log_compact,
        "cluster": cluster,
        "ttl": ttl,
        "clean": clean,
        "archive": archive,
    }
    names = [name for name, is_wanted in flags.items() if is_wanted]
    properties = pairs(option)
    check_call_options(properties)
    table = hoodie.open(path, storage_options=pairs(storage_option))
    runner = table.services(
        names or None,
        interval=interval,
        schedule=schedule,
        coordinator=None if zookeeper is None else f"zookeeper://{zookeeper}",
        properties=properties,
        report=lambda result: print_result(result, as_json),
        on_error=lambda name, error: print_error(hoodie.HoodieError(f"{name}: {error}")),
    )
    if once:
        if runner.run_once().errors:
            raise typer.Exit(1)
        return
    with _interrupted() as stopped, runner:
        while runner.is_running and not stopped.wait(_LOOK_SECONDS):
            pass
    if runner.errors or not stopped.is_set():
        raise typer.Exit(1)


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
