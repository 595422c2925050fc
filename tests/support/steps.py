"""Do something at a named step of a write or a table service: another writer acts, or the process dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoodie.commit.steps import Step, watching
from hoodie.config import concurrency
from hoodie.errors import HoodieError
from hoodie.storage import Store
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


class SleepingWrite:
    """A write in a thread of its own, which stops at a step until `wake`; its `error`, if it is one of the library."""

    def __init__(self, store: Store, write: Callable[[Table], object], step: Step) -> None:
        self.error: HoodieError | None = None
        self._asleep, self._awake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(store, write, step), daemon=True)
        self._thread.start()
        assert self._asleep.wait(60)

    def wake(self) -> None:
        """Let the write go on, and wait until it ends."""
        self._awake.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self, store: Store, write: Callable[[Table], object], step: Step) -> None:
        def sleep() -> None:
            self._asleep.set()
            assert self._awake.wait(60)

        try:
            with once_at(step, sleep):
                write(Table(store))
        except HoodieError as error:
            self.error = error
