"""Which snapshots still have all their files: what cleans deleted, and what savepoints keep.

docs/format/table.md §9.4 and §9.5.
"""

from __future__ import annotations

from operator import attrgetter

from hoodie.errors import CorruptFileError
from hoodie.format.instants.service_metadata import CleanerPlan, CleanMetadata, SavepointMetadata
from hoodie.timeline import Action, Instant, read_instant
from hoodie.view.commit_cache import CleanFacts, Savepoint
from hoodie.view.table_view import TableView

_NAMES_KEPT = 100_000
_UNDO = frozenset({Action.RESTORE, Action.ROLLBACK})
_requested = attrgetter("requested_time")


def oldest_readable_instant(view: TableView) -> str:
    """Return the requested time of the oldest instant whose snapshot has all its files; empty if all have them.

    Pending cleans count too: their files may be deleted already. Of the completed cleans, those are read, each once,
    that completed after the instant that is returned. A restore or rollback to an older savepoint removes the instant
    that a clean retained; then the savepoint is the oldest such instant. If the active timeline has no clean, the
    newest archived one counts.

    Raises: CorruptFileError if a clean does not parse, or the archive is damaged.
    """
    cleans = [found for found in (*view.timeline, *view.completed_later) if found.action is Action.CLEAN]
    if not cleans and view.has_archived_instants():
        cleans = [found for found in view.archive().completed() if found.action is Action.CLEAN][-1:]
    oldest = ""
    for found in reversed(cleans):
        # A clean sees only instants from before its own completion: an older clean than the bound cannot raise it.
        if found.completion_time is None or found.completion_time > oldest:
            oldest = max(oldest, _bound(view, found))
    return oldest


def stable_since(view: TableView, earliest: str) -> str:
    """Return the requested time of the oldest instant as of whose completion no clean up to `earliest` took a file.

    It is `earliest`, unless a write that was requested before it completed after it: the state between the two needs
    files from before that write, and a clean goes by requested times.
    """
    writes = [found for found in (*view.timeline, *view.completed_later) if found.action.writes_data]
    begun = [found for found in writes if found.is_completed and found.requested_time <= earliest]
    return max(begun, key=view.order_time).requested_time if begun else earliest


def oldest_to_ask_for(view: TableView, as_of: str | None, earliest: str | None = None) -> str:
    """Return the oldest instant that a read can ask for by the same rule: by requested time with `as_of`.

    `earliest`: `oldest_readable_instant`, if the caller has read it.
    """
    earliest = oldest_readable_instant(view) if earliest is None else earliest
    return earliest if as_of is not None else stable_since(view, earliest)


def may_delete_before(view: TableView, clean: Instant, superseding: str) -> bool:
    """Return whether the clean may delete files that the write requested at `superseding` replaced.

    A clean that keeps commits deletes files replaced by writes before the earliest one; a clean that keeps versions,
    files replaced by any write up to its last completed commit. Raises: CorruptFileError if the clean does not parse.
    """
    facts = _facts(view, clean)
    return superseding < facts.earliest if facts.earliest else superseding <= facts.last_completed


def _bound(view: TableView, clean: Instant) -> str:
    """Return the clean's bound, or the newest write before the clean if the instant that it retained was undone.

    In a view of the past, the instants that completed later count too: the bound does not depend on the view.
    """
    bound = _facts(view, clean).bound
    instants = (*view.timeline, *view.completed_later)
    undone = [found for found in instants if found.action in _UNDO]
    if not any(found.requested_time > clean.requested_time for found in undone):
        return bound
    writes = (found for found in instants if found.is_completed and found.action.writes_data)
    newest = max((time for time in map(_requested, writes) if time < clean.requested_time), default=bound)
    if newest >= bound:
        return bound
    # An active commit that its savepoint keeps may be older than archived writes.
    archived = (found.requested_time for found in view.archived_instants() if found.action.writes_data)
    return bound if any(newest < time < clean.requested_time for time in archived) else newest


def last_clean(view: TableView) -> CleanFacts | None:
    """Return the facts of the newest completed clean on the active timeline; None if there is none."""
    cleans = [found for found in view.timeline.completed() if found.action is Action.CLEAN]
    return _facts(view, cleans[-1]) if cleans else None


def _facts(view: TableView, clean: Instant) -> CleanFacts:
    """Return the facts of a clean: from its metadata if it is completed, else from its plan.

    A clean without a plan deletes nothing: the process that requested it died.

    Raises: CorruptFileError if they do not parse.
    """
    if not clean.is_completed:
        return _planned_facts(view, clean)
    known = view.state.commits.cleans.get(clean.requested_time)
    if known is None:
        known = _completed_facts(view, clean) or _planned_facts(view, clean)
        view.state.commits.cleans[clean.requested_time] = known
    return known


def _completed_facts(view: TableView, clean: Instant) -> CleanFacts | None:
    """Return the facts of a completed clean; None if its file is empty because its writer died."""
    content = view.content_of(clean)
    if not content:
        return None
    done = CleanMetadata.parse(content, path=view.path_of(clean))
    policy = next((found.policy for found in done.partition_metadata.values()), "none")
    earliest, completed = done.earliest_commit_to_retain, done.last_completed_commit_timestamp
    return CleanFacts(clean.requested_time, earliest.strip(), completed, policy, done.extra_metadata or {})


def _planned_facts(view: TableView, clean: Instant) -> CleanFacts:
    content = view.pending_content(clean)
    if not content:
        return CleanFacts(clean.requested_time, "", "", "", {})
    return CleanFacts.of_plan(clean.requested_time, CleanerPlan.parse(content, path=view.path_of(clean)))


def savepointed_instants(view: TableView) -> tuple[str, ...]:
    """Return the requested times of the commits that have a completed savepoint, in ascending order."""
    completed = view.whole_timeline().completed()
    return tuple(found.requested_time for found in completed if found.action is Action.SAVEPOINT)


def savepoints(view: TableView) -> tuple[Savepoint, ...]:
    """Return the completed savepoints in the order of their commits; one read for each that was not read before.

    Memory: the names of the files of all savepoints; at most 100,000 of them stay in memory for later calls.

    Raises: CorruptFileError if a savepoint does not parse.
    """
    found = (view.timeline.get(time, Action.SAVEPOINT) for time in savepointed_instants(view))
    saved = {instant: read_savepoint(view, instant) for instant in found if instant is not None}
    kept, names = dict[Instant, Savepoint](), 0
    for instant, savepoint in saved.items():
        names += sum(map(len, savepoint.files.values()))
        if names <= _NAMES_KEPT:
            kept[instant] = savepoint
    view.state.commits.savepoints = kept
    return tuple(saved.values())


def readable_savepoints(view: TableView, before: str | None = None) -> tuple[str, ...]:
    """Return the commits with a savepoint that are older than `before`; their snapshots stay readable behind cleans.

    `before` is a requested time; by default the oldest readable instant. Raises: as `oldest_readable_instant`.
    """
    bound = oldest_readable_instant(view) if before is None else before
    return tuple(time for time in savepointed_instants(view) if time < bound)


def read_savepoint(view: TableView, instant: Instant) -> Savepoint:
    """Return a completed savepoint; it is read if `savepoints` did not read it. Raises: CorruptFileError."""
    known = view.state.commits.savepoints.get(instant)
    if known is not None:
        return known
    content = read_instant(view.store, view.layout, instant)
    path = view.path_of(instant)
    if not content:
        raise CorruptFileError(
            f"expected the files of the savepoint, found 0 bytes: its writer died. Delete it with "
            f"t.delete_savepoint('{instant.requested_time}'), and create it again",
            path=path,
        )
    saved = SavepointMetadata.parse(content, path=path)
    return Savepoint(
        instant=instant.requested_time,
        user=saved.savepointed_by,
        comment=saved.comments,
        created_at_ms=saved.savepointed_at,
        files={name: part.savepoint_data_file for name, part in saved.partition_metadata.items()},
    )
