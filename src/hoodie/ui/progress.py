"""A progress bar while a table is written; nothing where the console is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from hoodie.progress import Progress, listening
from hoodie.ui.console import errors


class ProgressBar:
    """A bar over the tasks of what runs now, and one over all steps once it is known how many there are."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._title = ""
        self._begun = 0
        self._current = bars.add_task("", total=None)
        self._overall: TaskID | None = None

    def expect(self, steps: int) -> None:
        """Say how many steps there are in all."""
        self._overall = self._bars.add_task("all steps", total=steps, completed=self._begun)

    def begin(self, title: str) -> None:
        """Name the step that begins; the one before it is done."""
        self._title = title
        if self._overall is not None:
            self._bars.update(self._overall, completed=self._begun)
        self._begun += 1
        self._bars.reset(self._current, description=title, total=None)

    def show(self, report: Progress) -> None:
        """Take a report of the library."""
        title = f"{self._title} · {report.phase}" if report.phase else self._title
        self._bars.update(
            self._current, description=title, completed=report.tasks_done, total=report.tasks_total or None
        )


@contextmanager
def progress_bar(title: str, *, console: Console | None = None) -> Iterator[ProgressBar]:
    """Show the progress of the writes in the body; the bar goes away with its end. Default is standard error."""
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
        bar.begin(title)
        with listening(bar.show):
            yield bar
