"""A write that was requested early and completes late: others are requested after it and complete before it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hoodie.commit.steps import Step, watching

_SECONDS = 60


def held_before_commit(act: Callable[[], object]) -> Callable[[], None]:
    """Run `act` in a thread until its files are written; return the function that lets it commit and waits for it."""
    ready, go = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def watch(reached: Step) -> None:
        if reached is Step.LOCATED:
            ready.set()
            assert go.wait(_SECONDS)

    def run() -> None:
        try:
            with watching(watch):
                act()
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(_SECONDS)

    def finish() -> None:
        go.set()
        thread.join(_SECONDS)
        assert not failed, failed
        assert not thread.is_alive()

    return finish
