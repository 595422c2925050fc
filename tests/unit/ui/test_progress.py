"""The progress bar shows steps and tasks, and is silent where there is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from hoodie.progress import Progress
from hoodie.ui.progress import ProgressBar, progress_bar


def _tasks(bars: Bars) -> list[tuple[str, float, float | None]]:
    return [(task.description, task.completed, task.total) for task in bars.tasks]


def test_steps_and_tasks_are_counted_apart() -> None:
    bars = Bars(disable=True)
    bar = ProgressBar(bars)
    bar.begin("load")
    bar.expect(3)
    bar.begin("upsert")
    assert _tasks(bars) == [("all steps", 1, 3), ("upsert", 0, None)]
    bar.show(Progress("tag", 1, 4))
    bar.show(Progress("write"))
    assert _tasks(bars) == [("all steps", 1, 3), ("upsert · write", 0, None)]
    bar.show(Progress("write", 2, 5))
    assert _tasks(bars)[1] == ("upsert · write", 2, 5)
    bar.begin("read")
    assert _tasks(bars) == [("all steps", 2, 3), ("read", 0, None)]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_sees_the_bar(is_terminal: bool) -> None:
    sink = io.StringIO()
    with progress_bar("upsert", console=Console(file=sink, force_terminal=is_terminal, width=80)) as bar:
        bar.show(Progress("write", 1, 2))
    assert ("upsert" in sink.getvalue()) == is_terminal
