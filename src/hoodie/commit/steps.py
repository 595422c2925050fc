"""Name the steps of a pending instant, at which a test can pause it.

By default there is no watcher, and a step does nothing. A watcher belongs to the thread (more exactly, to the
`contextvars` context) that set it, so it is called at the steps of every instant of that thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class Step(StrEnum):
    """A step of a pending instant, in the order in which an instant reaches them."""

    PREPARED = "prepared"
    """The write is prepared; an upsert or delete staged its changes. The timeline has no trace of the write yet."""
    REQUESTED = "requested"
    """Under the table's lock: the requested file is the only trace of the instant."""
    BEGUN = "begun"
    """The instant is inflight and its heartbeat is fresh. The table's lock is free."""
    WRITTEN = "written"
    """The data files are written."""
    LOCATED = "located"
    """The index files are written. The following steps run under the table's lock."""
    CHECKED = "checked"
    """Under the lock: this process still owns the instant, and there is no conflict."""
    RECORDED = "recorded"
    """Under the lock: the metadata table has the instant; the completed file is next."""


Watcher = Callable[[Step], None]

_watcher: ContextVar[Watcher | None] = ContextVar("hoodie_step_watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` at each step of every instant of this thread while the body runs.

    If `watcher` raises an error, the instant fails with it.

    >>> import hoodie, pyarrow as pa
    >>> from hoodie.commit.steps import watching
    >>> rows = pa.table({"id": ["a", "b"]})
    >>> t = hoodie.create("memory://doc-steps", rows.schema, record_key="id")
    >>> steps = []
    >>> with watching(steps.append):
    ...     inserted = t.upsert(rows).inserted
    >>> [step.value for step in steps]
    ['prepared', 'requested', 'begun', 'written', 'located', 'checked', 'recorded']
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def reached(step: Step) -> None:
    """Call the watcher, if there is one, with the step that the instant of this thread reached."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(step)
