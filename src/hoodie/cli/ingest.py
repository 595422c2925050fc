"""`hoodie ingest JOB`: run the flows of a job file; their status; job files made of properties of HoodieStreamer."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from hoodie.cli.options import AsJson
from hoodie.cli.signals import interrupted
from hoodie.cli.terminal import Answer, going_on, print_answer, print_error, print_json, print_note
from hoodie.cli.words import result_in_words
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.ingest.flow import Flow
from hoodie.ingest.job import BESIDE, OFF, Job, job_of
from hoodie.ingest.metrics import metrics_served
from hoodie.ingest.properties import job_text
from hoodie.ingest.result import BatchResult, IngestResult
from hoodie.ingest.runner import FlowState, Runner
from hoodie.ingest.services import ServicesBeside, switch_off
from hoodie.ingest.status import FlowStatus, status_of
from hoodie.results import ServiceResult
from hoodie.table.sessions import active_session, spark_room

FAILED: Final = 1
_RUN, _FROM_PROPERTIES = "run", "from-properties"
_PORT_MAX: Final = 65_535
_STATUS_THREADS: Final = 8


class _RunsByDefault(TyperGroup):
    """A group whose command `run` needs no name: `hoodie ingest JOB` is `hoodie ingest run JOB`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command, if the arguments begin with none."""
        option = f"--{_FROM_PROPERTIES}"
        given = [text for one in args for text in (one.split("=", 1) if one.startswith(f"{option}=") else [one])]
        if option in given:
            at = given.index(option)  # its file goes first: the options of HoodieStreamer are not parsed here
            args = [_FROM_PROPERTIES, *given[at + 1 : at + 2], *given[:at], *given[at + 2 :]]
        elif args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="Run the flows of a job file: `hoodie ingest JOB` is `hoodie ingest run JOB`.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=_RunsByDefault,
)
JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="Job file (TOML).", show_default=False)]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Only this flow; may be repeated.")]
InSpark = Annotated[bool, typer.Option("--spark", help="Run all flows in Spark, whatever the job file has.")]


@app.command(_RUN)
def run(
    job_file: JobFile,
    continuous: Annotated[
        bool | None,
        typer.Option(
            "--continuous/--once", help="For ever, or until the sources have nothing new; default: the job's."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the next batch of each flow, and print what it would change.")
    ] = False,
    only: Only = None,
    as_json: AsJson = False,
    max_batches: Annotated[int | None, typer.Option("--max-batches", min=1, help="Most batches of each flow.")] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=_PORT_MAX, help="Port for metrics (Prometheus); 0: a free one."),
    ] = None,
    spark: InSpark = False,
) -> None:
    """Run the flows of a job file. SIGINT and SIGTERM end the command after the batches that run.

    The exit code is 1 if the last batch of a flow failed; the other flows go on.
    """
    job = _job(job_file, only, spark)
    if continuous is not None:
        job.set_pace(continuous=continuous)
    if max_batches is not None:
        job.set_pace(batches_max=max_batches)
    if metrics_port is not None:
        job.metrics_port = metrics_port
    with _session(job):
        failed = _preview(job, as_json) if dry_run else _run(job, StateFile.of_job(job_file), as_json)
    if failed:
        raise typer.Exit(FAILED)


@app.command("status")
def status(job_file: JobFile, only: Only = None, as_json: AsJson = False, spark: InSpark = False) -> None:
    """Print the place, the lag, the last commit and the last error of each flow.

    No rows are read. The exit code is 1 if the last batch of a flow failed, or if a source or table cannot be read.
    """
    job = _job(job_file, only, spark)
    state = StateFile.of_job(job_file)

    def status_now(flow: Flow) -> FlowStatus:
        text, at = state.last_error(flow.name)
        return status_of(flow, plans=job.missing_table(flow) is None, last_error=text, last_error_at=at)

    with ExitStack() as opened:
        if spark:
            opened.enter_context(_session(job))
        with ThreadPoolExecutor(_STATUS_THREADS) as pool:
            found = list(pool.map(status_now, job.flows))
    print_answer(Answer.of(*found), as_json)
    if any(one.last_error or one.problem for one in found):
        raise typer.Exit(FAILED)


@app.command(_FROM_PROPERTIES, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def from_properties(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Properties file of HoodieStreamer.", show_default=False)
    ],
) -> None:
    """Print a job file for a properties file of HoodieStreamer, and for its options (--source-class, --op, …).

    What has no equivalent here is a comment of the job file, with the reason.
    """
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidConfigError(f"{file}: expected a properties file in UTF-8: {error}") from error
    typer.echo(job_text(text, _options(context.args)), nl=False)


def _options(arguments: list[str]) -> dict[str, list[str]]:
    """Return the values of options that HoodieStreamer has; of an option without a value it is `true`."""
    found: dict[str, list[str]] = {}
    waiting = list(arguments)
    while waiting:
        name, has_value, value = waiting.pop(0).partition("=")
        if not name.startswith("--"):
            raise typer.BadParameter(f"expected an option of HoodieStreamer, found {name!r}")
        if not has_value:
            value = waiting.pop(0) if waiting and not waiting[0].startswith("--") else "true"
        found.setdefault(name, []).append(value)
    return found


def _job(path: Path, only: list[str] | None, spark: bool) -> Job:
    """Read a job file. Raises: InvalidConfigError for anything wrong in it."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfigError(f"{path}: expected a TOML file: {error}") from error
    folder = path.resolve().parent
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for functions that the job names
    job = job_of(document, folder=str(folder), environment=os.environ, all_in_spark=spark)
    for note in job.notes:
        print_note(note)
    return job.only(only) if only else job


@contextmanager
def _session(job: Job) -> Iterator[None]:
    """Give flows that use Spark a session: the active one, or a new one, which stops at the end of the body."""
    if not any(flow.needs_spark for flow in job.flows):
        yield
        return
    session: Any = active_session()
    is_new = session is None
    if is_new:
        session = spark_room().open_session("hoodie ingest", job.spark)
    try:
        job.use_session(session)
        yield
    finally:
        if is_new:
            session.stop()


@dataclass(slots=True)
class StateFile:
    """The last errors of the flows of a job, in a file beside the job file: `trips.toml` has `trips.state.json`.

    The process that runs the job writes the file by one thread, and `hoodie ingest status` reads it. No table and no
    place depends on it.
    """

    path: Path
    is_writable: bool = True
    _errors: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_job(cls, job: Path) -> StateFile:
        """Return the file of a job file. A file that does not exist, or is damaged, has no errors."""
        found = cls(job.with_name(f"{job.stem}.state.json"))
        found._errors = found._stored()
        return found

    def last_error(self, flow: str) -> tuple[str | None, str | None]:
        """Return the text and the time (ISO, UTC) of the last error of a flow; None after a success."""
        entry = self._errors.get(flow, {})
        return entry.get("last_error"), entry.get("last_error_at")

    def take_down(self, state: FlowState) -> None:
        """Store the error of a flow that failed, or forget it after a success; a file that cannot be written is a note.

        Errors that other processes stored for other flows stay.
        """
        if not state.failures and state.name not in self._errors:
            return
        self._errors = self._stored()
        self._errors.pop(state.name, None)
        if state.failures and state.last_error_at is not None:
            at = datetime.fromtimestamp(state.last_error_at, UTC).isoformat(timespec="seconds")
            self._errors[state.name] = {
                "last_error": state.last_error,
                "last_error_at": at,
                "failures": state.failures,
            }
        self._write()

    def _stored(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_text("utf-8"))["flows"].items()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return dict(self._errors)
        return {name: entry for name, entry in found if isinstance(entry, dict)}

    def _write(self) -> None:
        if not self.is_writable:
            return
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            part.write_text(json.dumps({"flows": self._errors}, indent=1), "utf-8")
            part.replace(self.path)
        except OSError as error:
            self.is_writable = False
            print_note(f"the errors of flows are not stored for `hoodie ingest status`: {error}")


def _preview(job: Job, as_json: bool) -> bool:
    """Print what the next batch of each flow would change; return whether a flow failed."""
    failed = False
    for flow in job.flows:
        missing = job.missing_table(flow)
        try:
            found = None if missing else flow.preview()
        except Exception as error:  # also of code of the user: the other flows are shown
            failed = True
            print_error(HoodieError(f"{flow.name}: {error}"))
            continue
        if found is not None:
            print_answer(Answer(str(result_in_words(found, None)), [{"event": "preview", **found.to_dict()}]), as_json)
        else:
            about = f"waits for {missing}, which an earlier flow creates" if missing else "nothing new"
            event = {"event": "preview", "flow": flow.name, "rows": 0, "waits_for": missing}
            print_answer(Answer(f"{flow.name} (dry run): {about}", [event]), as_json)
    return failed


def _run(job: Job, state: StateFile, as_json: bool) -> bool:
    lines = _Lines(as_json)
    runner = Runner(flows=job.flows, pace=job.pace, report=lines.batch, on_error=lines.error, on_change=state.take_down)
    beside = None
    if job.services == BESIDE:
        beside = ServicesBeside(
            flows=job.flows, interval=job.services_interval, report=lines.service, on_error=lines.error
        )
    elif job.services == OFF:
        switch_off(job.flows)
    with ExitStack() as opened:
        stopped = opened.enter_context(interrupted())
        if job.metrics_port is not None:
            host = job.metrics_host
            port = opened.enter_context(metrics_served(runner.states, job.metrics_port, host))
            print_note(f"metrics: http://{host}:{port}/metrics")
        if beside is not None and job.pace.continuous:
            opened.enter_context(beside)
        results = runner.run(stopped)
        if beside is not None and not job.pace.continuous and not stopped.is_set():
            beside.run_once()
    for result in results:
        lines.result(result)
    return any(result.error is not None for result in results)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Prints a line for each batch, error and flow; JSON lines have the key `event`.

    If the reader of the lines is gone, the job goes on without them.
    """

    as_json: bool

    @going_on()
    def batch(self, flow: str, found: BatchResult) -> None:
        """Print a batch in one line; its notes go to standard error."""
        write, left = found.write, found.lag_rows
        counts = {"inserted": write.inserted, "updated": write.updated, "deleted": write.deleted or 0}
        changed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        bad = f", {found.bad_rows:,} bad" if found.bad_rows else ""
        behind = f"; {left:,} rows left" if left else ""
        seconds = write.seconds.get("total", 0.0)
        text = f"{flow}: {write.operation} at {write.instant}: {changed}{bad} in {seconds:.2f} s{behind}"
        self._print(text, "batch", {"flow": flow, **found.to_dict()})
        if not self.as_json:
            for note in (*write.notes, *found.notes):
                print_note(f"{flow}: {note}")

    @going_on()
    def service(self, path: str, found: ServiceResult) -> None:
        self._print(f"{path}: {result_in_words(found, path)}", "service", {"table": path, **found.to_dict()})

    @going_on()
    def error(self, name: str, error: Exception) -> None:
        """Print an error on standard error, and as JSON on standard output too."""
        print_error(HoodieError(f"{name}: {error}"))
        if self.as_json:
            print_json({"event": "error", "flow": name, "error": str(error) or type(error).__name__})

    @going_on()
    def result(self, found: IngestResult) -> None:
        self._print(str(result_in_words(found, None)), "result", found.to_dict())

    def _print(self, text: str, event: str, values: Mapping[str, Any]) -> None:
        print_answer(Answer(text, [{"event": event, **values}]), self.as_json)
