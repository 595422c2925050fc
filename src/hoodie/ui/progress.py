"""A progress bar for writes; it is shown only if the console is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from hoodie.progress import Progress, listening
from hoodie.ui.console import errors


class ProgressBar:
    """A bar for the tasks of the current step, and a bar for all steps as soon as their number is known."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._title = ""
        self._begun = 0
        self._overall: TaskID | None = None
        self._current: TaskID | None = None

    def expect(self, steps: int) -> None:
        """Set the number of all steps; the steps begun so far count as done."""
        self._overall = self._bars.add_task("all steps", total=steps, completed=self._begun)

    def begin(self, title: str) -> None:
        """Begin a step with this title; the step before it counts as done."""
        self._title = title
        if self._overall is not None:
            self._bars.update(self._overall, completed=self._begun)
        self._begun += 1
        self._restart(title)

    def show(self, report: Progress) -> None:
        """Show a progress notification of the library."""
        if self._current is None or not report.tasks_total:
            self._restart(f"{self._title} · {report.phase}" if report.phase else self._title)
        else:
            self._bars.update(self._current, completed=report.tasks_done, total=report.tasks_total)

    def _restart(self, description: str) -> None:
        """Replace the task of the bar with a new task, because rich keeps the total of an old task."""
        if self._current is not None:
            self._bars.remove_task(self._current)
        self._current = self._bars.add_task(description, total=None)


@contextmanager
def progress_bar(title: str | None = None, *, console: Console | None = None) -> Iterator[ProgressBar]:
    """Show the progress of the writes in the body; the bar is removed at the end of the body.

    The default console is standard error.
    """
    console = errors() if console is None else console
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = ProgressBar(bars)
        if title is not None:
            bar.begin(title)
        with listening(bar.show):
            yield bar
