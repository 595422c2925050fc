"""Do something at a named step of a write or a table service: another writer acts, or the process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoodie.commit.steps import Step, watching
from hoodie.config import concurrency
from hoodie.table import Table
from hoodie.timeline import Action, create_inflight, create_requested

ONE_TRY = {concurrency.CONFLICT_RETRIES.key: "0"}
"""Options of a write that a test sees conflict, instead of being retried."""


@contextmanager
def once_at(step: Step, act: Callable[[], object]) -> Iterator[None]:
    """Run `act` when an instant of the body reaches the step for the first time; fail if none does.

    What `act` does itself reaches steps too, and is left alone.
    """
    acted: list[Step] = []

    def watch(reached: Step) -> None:
        if reached is step and not acted:
            acted.append(reached)
            act()

    with watching(watch):
        yield
    assert acted, f"nothing reached the step {step}"


def begin(
    table: Table, action: Action, content: bytes = b"", *, at: str | None = None, only_requested: bool = False
) -> str:
    """Begin an instant as a process without a heartbeat does; return its time, by default the present."""
    view = table.view()
    instant_time = at or view.clock.next_time(view.timeline)
    create_requested(view.store, view.layout, instant_time, action, content)
    if not only_requested:
        create_inflight(view.store, view.layout, instant_time, action)
    return instant_time
