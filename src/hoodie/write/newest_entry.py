"""Find the newest commit whose extra metadata has an entry: of a batch of a stream, or of the place of an ingestion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from hoodie.timeline import Action, Instant
from hoodie.view.table_view import TableView

T = TypeVar("T")
_ARCHIVED_READ: Final = 64
"""Archived commits that are read at once."""


def newest_entry(
    view: TableView, parse: Callable[[Mapping[str, str], str], T | None], *, after: str = ""
) -> tuple[Instant, T] | None:
    """Return the newest completed commit for which `parse` finds an entry, and the entry; None without one.

    `parse` gets the entries of a commit, and a name of the commit for errors. `after` (exclusive): a completion time;
    older commits do not count. The archived timeline is read if no active commit has an entry, from its newest commits
    on; and where savepoints keep old commits active, so that archived ones can be newer.

    Raises: as `parse`; CorruptFileError if the archive is damaged.
    """
    active = None
    for instant in reversed(view.completed_writes()):
        if view.order_time(instant) <= after:
            break
        found = parse(view.commit_facts(instant).sink, view.path_of(instant))
        if found is not None:
            active = (instant, found)
            break
    has_savepoints = any(instant.action is Action.SAVEPOINT for instant in view.timeline)
    if (active is not None and not has_savepoints) or not view.has_archived_instants():
        return active
    return _newest_archived(view, parse, after if active is None else view.order_time(active[0])) or active


def _newest_archived(
    view: TableView, parse: Callable[[Mapping[str, str], str], T | None], after: str
) -> tuple[Instant, T] | None:
    left = list(view.archived_writes(after))
    while left:
        some, left = left[-_ARCHIVED_READ:], left[:-_ARCHIVED_READ]
        extra = {instant: commit.extra_metadata for instant, commit in view.archived_commits(some)}
        for instant in reversed(some):
            found = parse(extra[instant], f"{instant} in the archived timeline")
            if found is not None:
                return instant, found
    return None
