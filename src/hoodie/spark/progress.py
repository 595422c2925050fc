"""Notify the listener of `hoodie.progress` of finished tasks of Spark jobs; without a listener nothing runs here.

This is the only module that uses the `sparkContext` of a classic session, because DataFrames have no progress of their
job. Connect sessions have progress handlers from Spark 4.0 on.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from hoodie import progress

_POLL_SECONDS = 0.2


@contextmanager
def watched(session: Any) -> Iterator[None]:
    """Notify the listener how many tasks of the session's active stages are done while the body runs its job."""
    if not progress.is_heard():
        yield
    elif "connect" not in type(session).__module__:
        with _polled(session.sparkContext.statusTracker()):
            yield
    elif hasattr(session, "registerProgressHandler"):

        def handle(stages: Iterable[Any] | None, **_: object) -> None:
            _report((stage.num_completed_tasks, stage.num_tasks) for stage in stages or ())

        session.registerProgressHandler(handle)
        try:
            yield
        finally:
            session.removeProgressHandler(handle)
    else:
        yield


@contextmanager
def _polled(tracker: Any) -> Iterator[None]:
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_POLL_SECONDS):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            _report((info.numCompletedTasks, info.numTasks) for info in infos if info is not None)

    # The thread runs in a copy of this context, so it notifies this context's listener, with this context's phase.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(poll,), name="hoodie progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _report(stages: Iterable[tuple[int, int]]) -> None:
    counts = list(stages)
    if counts:
        progress.report(sum(done for done, _ in counts), sum(total for _, total in counts))
