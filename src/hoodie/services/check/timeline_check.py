"""Check the timeline of a table: its states, order, gaps, doubled instants, empty and damaged files, and its archive.

docs/format/table.md §2.1, §2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from hoodie.commit.writable import restore_plan, restored_to
from hoodie.errors import CorruptFileError, HoodieError
from hoodie.format.instants.service_metadata import (
    CleanerPlan,
    CleanMetadata,
    CompactionPlan,
    IndexPlan,
    RequestedReplaceMetadata,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hoodie.format.table.table_config import TableType
from hoodie.services.check import kinds
from hoodie.services.check.completion import lost_completions
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.versions.kept import written_after_move
from hoodie.storage import FileInfo
from hoodie.timeline import Action, ArchiveLogs, Instant, State, is_live, read_instant
from hoodie.view.lost_instants import LostInstant, recorded_commits
from hoodie.view.table_view import TableView

_PLANS: Mapping[Action, Callable[[bytes], object]] = {
    Action.COMPACTION: CompactionPlan.parse,
    Action.LOG_COMPACTION: CompactionPlan.parse,
    Action.CLUSTERING: RequestedReplaceMetadata.parse,
    Action.CLEAN: CleanerPlan.parse,
    Action.ROLLBACK: RollbackPlan.parse,
    Action.INDEXING: IndexPlan.parse,
}
"""Actions whose requested file is their plan: without it nothing can execute them."""
_CONTENTS: Mapping[Action, Callable[[bytes], object]] = {
    Action.CLEAN: CleanMetadata.parse,
    Action.ROLLBACK: RollbackMetadata.parse,
    Action.SAVEPOINT: SavepointMetadata.parse,
}
_Files = Mapping[State, list[tuple[Instant, FileInfo]]]


def timeline_problems(survey: Survey) -> Iterator[Problem]:
    """Check the active timeline, then the archived timeline."""
    instants = _files_by_instant(survey)
    for (requested_time, _), files in instants.items():
        yield from _problems_of_states(survey, requested_time, files)
        yield from _problems_of_contents(survey, files)
    yield from _doubled(instants)
    yield from (
        Problem(_kind_of_damage(survey, instant), instant.requested_time, f"the content of a {instant.action}", text)
        for instant, text in survey.damaged.items()
        if not _is_empty(instants[_key(instant)])
    )
    yield from pending_problems(survey.view)
    yield from _archive_problems(survey)
    for found in written_after_move(survey.view):
        where = "an instant of another table version, after the move"
        yield Problem(kinds.OLD_TIMELINE_WRITTEN, found.requested_time, "no instant", f"{found}: {where}")


def unreadable_completed(survey: Survey) -> list[Instant]:
    """Return the completed instants that can be made pending again, as their file has 0 bytes or does not parse.

    A write can if its file has 0 bytes and no later write completed: its writer died before it reported success, and no
    other write built on its files. Rollbacks and cleans can: their plan is executed again.
    """
    found = [
        files[State.COMPLETED][0][0] for files in _files_by_instant(survey).values() if _is_unreadable(survey, files)
    ]
    newest = max((survey.view.order_time(instant) for instant in survey.view.completed_writes()), default="")
    return [instant for instant in found if _can_be_pending(survey, instant, newest)]


def damaged_writes(survey: Survey) -> list[LostInstant]:
    """Return the completed writes and services whose file does not parse: it is written anew.

    Their completed file exists, so they completed, unless the file has 0 bytes and no later write completed.
    """
    instants = _files_by_instant(survey)
    again, recorded, found = unreadable_completed(survey), recorded_commits(survey.view), []
    for instant in survey.damaged:
        if instant not in again and _kind_of_damage(survey, instant) is kinds.COMPLETION_LOST:
            requested = instants[_key(instant)].get(State.REQUESTED, [])
            pending = requested[0][0] if requested else replace(instant, action=_begun_as(survey, instant))
            pending = replace(pending, state=State.INFLIGHT, completion_time=None)
            time = instant.requested_time
            found.append(LostInstant(time, pending, recorded.get(time), "its completed file exists, and is damaged"))
    return found


def unreadable_plans(survey: Survey) -> list[Instant]:
    """Return the pending services whose plan has 0 bytes or does not parse."""
    return [
        files[State.REQUESTED][0][0]
        for files in _files_by_instant(survey).values()
        if any(True for _ in _problems_of_plan(survey, files))
    ]


def _can_be_pending(survey: Survey, instant: Instant, newest: str) -> bool:
    if instant.action.writes_data:
        return survey.view.order_time(instant) >= newest
    return instant.action in (Action.ROLLBACK, Action.CLEAN)


def _kind_of_damage(survey: Survey, instant: Instant) -> kinds.FindingKind:
    """Return the finding of a write that cannot be read: only content that does not parse is written anew."""
    try:
        survey.view.commit_metadata(instant)
    except CorruptFileError:
        return kinds.COMPLETION_LOST
    except HoodieError:
        pass  # the storage failed, or another release wrote it
    return kinds.INSTANT_DAMAGED


def _begun_as(survey: Survey, instant: Instant) -> Action:
    """Return the action of an instant without a requested file: a commit of a merge-on-read table is a compaction."""
    is_compaction = survey.view.config.table_type is TableType.MERGE_ON_READ and instant.action is Action.COMMIT
    return Action.COMPACTION if is_compaction else instant.action


def _key(instant: Instant) -> tuple[str, Action]:
    return instant.requested_time, instant.action.completed_as


def _files_by_instant(survey: Survey) -> dict[tuple[str, Action], _Files]:
    """Return the instant files by instant and state."""
    found: dict[tuple[str, Action], dict[State, list[tuple[Instant, FileInfo]]]] = {}
    layout = survey.view.layout
    for info in survey.directly_in(layout.instant_folder()):
        instant = layout.parse(info)
        if instant is not None:
            found.setdefault(_key(instant), {}).setdefault(instant.state, []).append((instant, info))
    return dict(sorted(found.items()))


def _is_empty(files: _Files) -> bool:
    completed = files.get(State.COMPLETED, [])
    return bool(completed) and not any(info.size_bytes for _, info in completed)


def _is_unreadable(survey: Survey, files: _Files) -> bool:
    """Return whether the completed file is empty, or is one of a rollback or clean that does not parse."""
    instant = files[State.COMPLETED][0][0] if State.COMPLETED in files else None
    if instant is None or _is_empty(files):
        return instant is not None
    parsed = _parsed(survey, instant, State.COMPLETED, _CONTENTS, kinds.INSTANT_DAMAGED)
    return instant.action is not Action.SAVEPOINT and any(True for _ in parsed)


def _problems_of_states(survey: Survey, requested_time: str, files: _Files) -> Iterator[Problem]:
    completed = files.get(State.COMPLETED, [])
    if len(completed) > 1:
        names = ", ".join(info.name for _, info in completed)
        yield Problem(kinds.INSTANT_DOUBLED, requested_time, "one completed file", names)
    for instant, _ in completed:
        if instant.action is not Action.SAVEPOINT and State.REQUESTED not in files:
            yield Problem(kinds.INSTANT_NOT_REQUESTED, requested_time, f"a requested file of the {instant.action}")
        named = instant.completion_time if survey.view.layout.names_completion_time else None
        if named is not None and named < requested_time:
            yield Problem(kinds.INSTANT_BEFORE_REQUEST, requested_time, "a later completion", named)


def _problems_of_contents(survey: Survey, files: _Files) -> Iterator[Problem]:
    if _is_empty(files):
        instant, info = files[State.COMPLETED][0]
        kind = kinds.INSTANT_EMPTY
        if instant not in unreadable_completed(survey):
            kind = kinds.COMPLETION_LOST if instant.action.writes_data else kinds.INSTANT_DAMAGED
        yield Problem(kind, instant.requested_time, f"the content of a {instant.action}", f"{info.name} with 0 bytes")
    elif State.COMPLETED in files:
        instant, _ = files[State.COMPLETED][0]
        kind = kinds.INSTANT_DAMAGED if instant.action is Action.SAVEPOINT else kinds.INSTANT_EMPTY
        yield from _parsed(survey, instant, State.COMPLETED, _CONTENTS, kind)
    yield from _problems_of_plan(survey, files)


def _problems_of_plan(survey: Survey, files: _Files) -> Iterator[Problem]:
    if State.COMPLETED not in files and State.REQUESTED in files:
        instant, info = files[State.REQUESTED][0]
        if instant.action in _PLANS and not info.size_bytes:
            yield Problem(kinds.PLAN_EMPTY, instant.requested_time, f"the plan of a {instant.action}", "0 bytes")
        else:
            yield from _parsed(survey, instant, State.REQUESTED, _PLANS, kinds.PLAN_DAMAGED)


def _parsed(
    survey: Survey,
    instant: Instant,
    state: State,
    parsers: Mapping[Action, Callable[[bytes], object]],
    kind: kinds.FindingKind,
) -> Iterator[Problem]:
    parse = parsers.get(instant.action)
    if parse is None:
        return
    try:
        content = read_instant(survey.view.store, survey.view.layout, instant, state)
        if content:
            parse(content)
    except CorruptFileError as error:
        yield Problem(kind, instant.requested_time, f"the {state.name.lower()} file of a {instant.action}", str(error))
    except HoodieError:
        return  # archived or rolled back meanwhile


def _doubled(instants: Mapping[tuple[str, Action], _Files]) -> Iterator[Problem]:
    actions: dict[str, list[Action]] = {}
    for requested_time, action in instants:
        if action is not Action.SAVEPOINT:
            actions.setdefault(requested_time, []).append(action)
    for requested_time, found in actions.items():
        if len(found) > 1:
            yield Problem(kinds.INSTANT_DOUBLED, requested_time, "one action", " and ".join(found))


def pending_problems(view: TableView) -> Iterator[Problem]:
    """Check the pending instants: one head of a heartbeat each, and one listing if a write has no live writer."""
    restores = [instant for instant in view.timeline.pending() if instant.action is Action.RESTORE]
    lost = {found.requested_time: found.proof for found in lost_completions(view)}
    for time, proof in lost.items():
        yield Problem(kinds.COMPLETION_LOST, time, "a completed file", f"none, though {proof}")
    for instant in restores or view.timeline.pending():
        if instant.requested_time in lost:
            continue
        if is_live(view.store, instant.requested_time):
            continue
        if instant.action is Action.RESTORE:
            # The other pending instants are part of it, or wait for it.
            yield Problem(kinds.RESTORE_PENDING, instant.requested_time, found=f"{instant}{_about(view, instant)}")
        elif instant.action is Action.ROLLBACK:
            yield Problem(kinds.ROLLBACK_PENDING, instant.requested_time, found=str(instant))
        elif instant.action is Action.CLEAN:
            yield Problem(kinds.CLEAN_PENDING, instant.requested_time, found=str(instant))
        elif instant.action is Action.SAVEPOINT:
            yield Problem(kinds.SAVEPOINT_PENDING, instant.requested_time, found=str(instant))
        elif instant.action.writes_data and not instant.action.is_planned:
            yield Problem(kinds.WRITE_DEAD, instant.requested_time, found=str(instant))


def _about(view: TableView, restore: Instant) -> str:
    """Return the part of the message that names the commit to which a restore goes back, or the damage of its plan."""
    try:
        plan = restore_plan(view, restore)
    except CorruptFileError as error:
        return f", whose plan is damaged: {error}"
    commit = "" if plan is None else restored_to(plan)
    return f", to the commit {commit}" if commit else ""


def _archive_problems(survey: Survey) -> Iterator[Problem]:
    """Check the manifest of the archived timeline, and that the files that it lists have their lengths.

    The archive of version 6 has no manifest: its files are read.
    """
    view = survey.view
    archive = view.stored_archive()
    if isinstance(archive, ArchiveLogs):
        try:
            archive.completed()
        except CorruptFileError as error:
            yield Problem(kinds.ARCHIVE_DAMAGED, archive.folder, "whole archive files", str(error))
        return
    try:
        files = archive.snapshot().manifest.files
        names = [(f"{archive.folder}/{file.parsed_name.name}", file.size_bytes) for file in files]
    except CorruptFileError as error:
        yield Problem(kinds.ARCHIVE_DAMAGED, archive.folder, "a manifest and its files", str(error))
        return
    for path, size_bytes in names:
        info = survey.files.get(path) or view.store.head(path)
        found = "no file" if info is None else f"{info.size_bytes} bytes"
        if info is None or (size_bytes and info.size_bytes != size_bytes):
            yield Problem(kinds.ARCHIVE_DAMAGED, path, f"{size_bytes} bytes", found)
