"""Do something at a named step of a write or a table service: another writer acts, or the process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoodie.commit.steps import Step, watching
from hoodie.config import concurrency

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
