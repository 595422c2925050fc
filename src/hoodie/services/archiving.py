"""Archive a table's oldest instants under its lock: `t.archive()`, and the archiving that follows a write.

The oldest instants are chosen that no reader, writer or table service looks for on the active timeline, by the rules of
JVM Hudi (docs/format/table.md §2.7, §9.6), and three more. The commits that make the next clustering due stay. A commit
that completed after the oldest pending instant began stays, because the conflict check of that instant looks for it. A
replace commit stays while a file of a file group that it replaced exists, because readers would show that file again.

Instants are added to the archive first, then deleted from the active timeline. So each step can be repeated, and a
reader finds each instant in one of both places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from hoodie.commit.call import Call, Occasion
from hoodie.config import clustering, compaction, concurrency, retention
from hoodie.format.filenames import parse_data_file
from hoodie.format.table.call_options import effective_options
from hoodie.format.table.table_config import TableType
from hoodie.metadata.folder import MetadataFolder
from hoodie.progress import PhaseTimes
from hoodie.results import OnResult, ServiceResult
from hoodie.services.cleaning.partitions import CleanOptions
from hoodie.services.cleaning.plan import earliest_to_retain
from hoodie.services.clustering.clustering import INLINE_CLUSTERING
from hoodie.services.clustering.plan import Trigger, last_clustering, writes_since
from hoodie.services.recovery.savepoint import how_to_finish
from hoodie.services.service import TableService
from hoodie.timeline import Action, ArchiveLimits, Instant, archive_instants
from hoodie.view.commit_cache import ArchivingHold
from hoodie.view.listing import list_files
from hoodie.view.table_view import TableView

_BESIDE = frozenset({Action.CLEAN, Action.ROLLBACK})
"""Actions whose instants are archived together with the commits around them."""
_COUNTING_TRIGGERS = frozenset({"num_commits", "num_and_time"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRules:
    """How many commits stay on the active timeline, and which bounds apply.

    Archiving is due with more than `commits_max` completed commits, and keeps `commits_min`. `deltas_to_compact` are
    the delta commits that make a compaction due; None if the trigger does not count them. `commits_to_cluster` are the
    commits that make a clustering after a write due; None if that is off. `earliest_to_retain` is the
    requested time of the oldest commit that a clean would retain.
    """

    commits_min: int = retention.KEEP_COMMITS_MIN.default
    commits_max: int = retention.KEEP_COMMITS_MAX.default
    commits_to_cluster: int | None = None
    beyond_savepoint: bool = False
    deltas_to_compact: int | None = compaction.COMPACT_DELTA_COMMITS.default
    earliest_to_retain: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str], earliest_to_retain: str | None = None) -> ArchiveRules:
        """Return the rules that these properties define.

        Raises: InvalidConfigError if a value does not parse, or the minimum is not below the maximum.
        """
        least, most = retention.kept_commits(properties)
        counts = compaction.COMPACT_TRIGGER.get(properties) in _COUNTING_TRIGGERS
        return cls(
            commits_min=least,
            commits_max=most,
            commits_to_cluster=Trigger.of(properties).commits if INLINE_CLUSTERING.is_on(properties) else None,
            beyond_savepoint=retention.ARCHIVE_BEYOND_SAVEPOINT.get(properties),
            deltas_to_compact=compaction.COMPACT_DELTA_COMMITS.get(properties) if counts else None,
            earliest_to_retain=earliest_to_retain,
        )

    def limits(self, commits: Sequence[Instant]) -> tuple[int, int]:
        """Return the minimum and the maximum for these commits: both grow if a clean would retain more commits."""
        if self.earliest_to_retain is None:
            return self.commits_min, self.commits_max
        needed = sum(found.requested_time > self.earliest_to_retain for found in commits) + 2
        more = max(needed - self.commits_min, 0)
        return self.commits_min + more, self.commits_max + more


@dataclass(frozen=True, slots=True, order=True)
class _Bound:
    """Instants from `requested_time` on stay on the active timeline, because of `reason`."""

    requested_time: str
    reason: str = field(compare=False)


def is_archiving_due(view: TableView, rules: ArchiveRules) -> bool:
    """Return whether the active timeline has more commits than the maximum."""
    commits = view.timeline.writes().completed().instants
    return len(commits) > rules.limits(commits)[1]


def hold_of(view: TableView, rules: ArchiveRules) -> ArchivingHold:
    """Return what can hold instants back in this view, in which archiving is due; reads no file.

    The hold changes with the oldest pending instant that commits to archive precede, the first savepoint and the rules.
    What else holds instants back, such as files that a clean deletes, ends with further commits: as many as lie between
    the minimum and the maximum.
    """
    commits = view.timeline.writes().completed().instants
    last = commits[-rules.limits(commits)[0] - 1].requested_time
    pending = [found for found in view.timeline.pending().instants[:1] if found.requested_time < last]
    saved = next((found for found in view.timeline if found.action is Action.SAVEPOINT), None)
    counted = replace(rules, earliest_to_retain=None)
    return ArchivingHold(
        causes=(*pending, saved, counted),
        commits=len(commits),
        step=rules.commits_max - rules.commits_min,
    )


def plan_archiving(view: TableView, rules: ArchiveRules) -> tuple[list[Instant], str]:
    """Return the instants to archive, by requested time, and what keeps more of them on the active timeline.

    No instants are returned if archiving is not due.

    Files are read only if instants remain after the rules that need none: the contents of commits, the metadata table's
    timeline, and the listings of partitions in which a replace commit replaced file groups.

    Raises: CorruptFileError.
    """
    commits = view.timeline.writes().completed().instants
    least, most = rules.limits(commits)
    if len(commits) <= most:
        return [], ""
    candidates = list(commits)
    held_back = ""
    # First the bounds that read no file.
    bounds = (_timeline_bounds(view, rules), _clustering_bound(view, rules), _metadata_bound(view), _schema_bound(view))
    for bound in chain(*bounds, _replaced_bound(view, candidates)):
        kept = [found for found in candidates if found.requested_time < bound.requested_time]
        if len(kept) < len(candidates) and len(kept) < len(commits) - least:
            held_back = bound.reason
        candidates = kept
        if not candidates:
            return [], held_back
    saved = {found.requested_time for found in view.timeline if found.action is Action.SAVEPOINT}
    chosen = [found for found in candidates if found.requested_time not in saved][: len(commits) - least]
    if not chosen:
        return [], held_back
    last = chosen[-1].requested_time
    beside = [found for found in view.timeline.completed() if found.action in _BESIDE and found.requested_time < last]
    return sorted((*chosen, *beside), key=lambda found: (found.requested_time, found.action)), held_back


def _timeline_bounds(view: TableView, rules: ArchiveRules) -> Iterator[_Bound]:
    """Yield the bounds that follow from the instants of the timeline."""
    yield from _pending_bounds(view)
    if not rules.beyond_savepoint:
        saved = next((found for found in view.timeline if found.action is Action.SAVEPOINT), None)
        if saved is not None:
            yield _Bound(
                saved.requested_time,
                f"the savepoint {saved.requested_time}: delete it, or set "
                f"{retention.ARCHIVE_BEYOND_SAVEPOINT.key}=true",
            )
    yield from _compaction_bound(view, rules)


def _pending_bounds(view: TableView) -> Iterator[_Bound]:
    """Keep the last commit before the oldest pending instant, and what completed since that instant was requested."""
    pending = view.timeline.pending().latest() and view.timeline.pending().instants[0]
    if not pending:
        return
    how = how_to_finish(pending) if pending.action is Action.SAVEPOINT else "it must complete, or be rolled back"
    reason = f"the pending instant {pending}: {how}"
    commits = view.timeline.writes().completed().instants
    before = [found.requested_time for found in commits if found.requested_time < pending.requested_time]
    yield _Bound(max(before, default=pending.requested_time), reason)
    since = [found for found in commits if view.order_time(found) > pending.requested_time]
    yield _Bound(min((found.requested_time for found in since), default=pending.requested_time), reason)


def _clustering_bound(view: TableView, rules: ArchiveRules) -> Iterator[_Bound]:
    """Keep the commits that make the next clustering due: only commits of the active timeline are counted."""
    if rules.commits_to_cluster is None:
        return
    since = writes_since(view, last_clustering(view))
    if since:
        first = min(found.requested_time for found in since[-rules.commits_to_cluster :])
        reason = "the commits since the last clustering, which make the next one due: lower"
        option = f"{clustering.CLUSTER_INLINE_COMMITS.key} or {clustering.CLUSTER_SCHEDULE_COMMITS.key}"
        yield _Bound(first, f"{reason} {option}, or cluster the table")


def _compaction_bound(view: TableView, rules: ArchiveRules) -> Iterator[_Bound]:
    """Keep the delta commits that make the next compaction due, or the last compaction if there are too few yet."""
    if view.config.table_type is not TableType.MERGE_ON_READ or rules.deltas_to_compact is None:
        return
    completed = view.timeline.completed()
    compactions = [found for found in completed if found.action is Action.COMMIT]
    last = compactions[-1] if compactions else None
    since = "" if last is None else last.requested_time
    deltas = [found for found in completed if found.action is Action.DELTA_COMMIT and view.order_time(found) > since]
    if len(deltas) >= rules.deltas_to_compact:
        first: Instant | None = deltas[len(deltas) - rules.deltas_to_compact]
    else:
        first = last or (deltas[0] if deltas else None)
    if first is not None:
        yield _Bound(first.requested_time, "the delta commits since the last compaction: compact the table")


def _metadata_bound(view: TableView) -> Iterator[_Bound]:
    """Keep the commits that completed after the last compaction of the metadata table was requested."""
    if not view.config.has_metadata_table:
        return
    timeline = MetadataFolder(view.store, view.config).existing_timeline()
    last = timeline.completed().filter(lambda found: found.action is Action.COMMIT).latest()
    if last is None:
        yield _Bound("", "the metadata table: it was not compacted yet, which follows from further commits")
        return
    commits = view.timeline.writes().completed()
    since = [found.requested_time for found in commits if view.order_time(found) > last.requested_time]
    if since:
        yield _Bound(min(since), "the metadata table: its next compaction follows from further commits")


def _schema_bound(view: TableView) -> Iterator[_Bound]:
    """Keep the newest commit that stores the table's schema: engines look for it on the active timeline."""
    for instant in reversed(view.completed_writes()):
        facts = view.commit_facts(instant)
        if facts.schema and facts.changes_schema:
            yield _Bound(instant.requested_time, "the commit that stores the table's schema")
            return


def _replaced_bound(view: TableView, candidates: Sequence[Instant]) -> Iterator[_Bound]:
    """Keep the first replace commit whose replaced file groups still have files: a clean deletes them."""
    for instant in candidates:
        if instant.action is not Action.REPLACE_COMMIT:
            continue
        replaced = view.commit_facts(instant).replaced
        gone = {(path, file_id) for path, file_ids in replaced.items() for file_id in file_ids}
        for path, names in list_files(view, sorted(replaced)).items():
            if any((found := parse_data_file(name)) and (path, found.file_id) in gone for name in names):
                yield _Bound(
                    instant.requested_time,
                    f"{instant}: file groups that it replaced still have files, which a clean deletes",
                )
                return


OPERATION: Final = "archive"
_WAIT_MS_AFTER_WRITE: Final = 2_000
"""How long the archiving after a write waits for the lock; if it gets none, a later write archives."""


def archive(call: Call, *, dry_run: bool = False) -> ServiceResult:
    """Move the oldest instants to the archive if there are more commits than `hoodie.keep.max.commits`.

    It creates no instant. With `dry_run` nothing is changed. A note names what keeps further instants on the active
    timeline. If the process dies at any step, the next archiving completes the work.

    Memory: the contents of instants with files of at most 32 MiB, and a merge of the archive's files.

    Raises: as `Table.archive`; InvalidConfigError for a wrong option.
    """
    times = PhaseTimes()
    view = call.checked_view()
    if dry_run:
        with times.phase("plan"):
            instants, held_back = plan_archiving(view, _rules(call, view))
        return _result(instants, held_back, times, dry_run=True)
    with TableView.locked(call.state, call.properties) as view:
        with times.phase("plan"):
            rules = _rules(call, view)
            instants, held_back = plan_archiving(view, rules)
        is_held = not instants and is_archiving_due(view, rules)
        view.state.commits.archiving_hold = hold_of(view, rules) if is_held else None
        if not instants:
            return _result(instants, held_back, times)
        with times.phase("archive"):
            archive_instants(
                view.store,
                view.layout,
                instants,
                archive_name=view.config.archive_name,
                limits=ArchiveLimits.of(effective_options(view.config, call.properties)),
                fence=view.held_lock,
            )
    return _result(instants, held_back, times)


def _rules(call: Call, view: TableView) -> ArchiveRules:
    properties = effective_options(view.config, call.properties)
    retained = earliest_to_retain(view, CleanOptions.of(view.config.raw, call.properties), None, datetime.now(UTC))
    return ArchiveRules.of(properties, None if retained is None else retained.requested_time)


def _result(instants: Sequence[Instant], held_back: str, times: PhaseTimes, *, dry_run: bool = False) -> ServiceResult:
    commits = sum(instant.action.writes_data for instant in instants)
    counts = {"commits": commits, "other_instants": len(instants) - commits} if instants else {}
    notes = (f"more instants are kept by {held_back}",) if held_back else ()
    return ServiceResult(operation=OPERATION, counts=counts, seconds=times.seconds(), dry_run=dry_run, notes=notes)


def _is_due(call: Call, view: TableView) -> bool:
    """Return whether there are instants to archive, by the timeline and the outcome of the last archiving.

    Takes no lock and reads no file, so that writes cost the same while something holds the instants back.
    """
    rules = _rules(call, view)
    if not is_archiving_due(view, rules):
        return False
    hold = view.state.commits.archiving_hold
    if hold is not None and hold.holds(hold_of(view, rules)):
        return False
    if call.occasion is Occasion.ROUND:
        return True
    # The instants of the timeline alone may keep all commits active.
    first = view.timeline.writes().completed().instants[0]
    bound = min(_timeline_bounds(view, rules), default=None)
    return bound is None or bound.requested_time > first.requested_time


def _run(call: Call, report: OnResult) -> None:
    if call.occasion is Occasion.ROUND:
        done = archive(call)
        if done.counts or done.notes:
            report(done)
        return
    properties = {**call.properties, concurrency.LOCK_WAIT_MS.key: str(_WAIT_MS_AFTER_WRITE)}
    done = archive(replace(call, properties=properties))
    # What holds instants back is news to a caller of `archive` or in a round, but not after each write.
    if done.counts:
        report(replace(done, notes=()))


ARCHIVE: Final = TableService(
    name=OPERATION,
    about="Move old instants out of the active timeline.",
    is_on=retention.ARCHIVE_AUTOMATIC.get,
    is_due=_is_due,
    run=_run,
)
"""The archiving that follows a write, which it never fails (see `services.registry`), or runs in a round."""
