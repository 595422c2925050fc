"""Named steps in the life of a pending instant, at which a test can pause it.

By default nobody watches, and nothing is done. A watcher belongs to the thread (more exactly, the context) that opened
it, so it sees the steps of every instant of that thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class Step(StrEnum):
    """A step of a pending instant, in the order in which an instant reaches them."""

    PREPARED = "prepared"
    """A write staged what it changes; the timeline has no trace of it yet."""
    REQUESTED = "requested"
    """Under the table's lock: the requested file is the only trace of the instant."""
    BEGUN = "begun"
    """The instant is inflight and its heartbeat is fresh. The table's lock is free."""
    WRITTEN = "written"
    """The data files are written."""
    LOCATED = "located"
    """The index files are written. What follows happens under the table's lock."""
    CHECKED = "checked"
    """Under the lock: the instant is still ours and has no conflict."""
    TOLD = "told"
    """Under the lock: the metadata table has the instant; the completed file is next."""


Watcher = Callable[[Step], None]

_watcher: ContextVar[Watcher | None] = ContextVar("hoodie_step_watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` at each step of every instant of this thread while the body runs. An error of it ends the instant.

    >>> import hoodie, pyarrow as pa
    >>> from hoodie.commit.steps import watching
    >>> rows = pa.table({"id": ["a", "b"]})
    >>> t = hoodie.create("memory://doc-steps", rows.schema, record_key="id")
    >>> steps = []
    >>> with watching(steps.append):
    ...     inserted = t.upsert(rows).inserted
    >>> [step.value for step in steps]
    ['prepared', 'requested', 'begun', 'written', 'located', 'checked', 'told']
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def reached(step: Step) -> None:
    """Tell the watcher, if there is one, that the instant of this thread reached the step."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(step)
