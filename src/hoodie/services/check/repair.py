"""Repair a table: rebuild what is derived, remove what is orphaned or left over, and finish what died half-way.

`t.repair()` and `hoodie repair`. Only problems whose remedy is a repair become steps, in the order in which they are
safe. A file that a completed instant names is never deleted, unless a restore or a clean that somebody began, and whose
plan is stored, deletes it. Young files and the files of running writers are kept. Each step that changes the table
takes the table's lock and looks again under it, so that it can be repeated after a crash and beside writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call
from hoodie.display import command_text
from hoodie.errors import HoodieError, UnsupportedError
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.table_properties import finish_update
from hoodie.format.filenames import instant_of_data_file
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import METADATA_HOODIE_FOLDER, partition_folder
from hoodie.progress import PhaseTimes
from hoodie.results import EXAMPLES_MAX, ServiceResult
from hoodie.services.check import kinds
from hoodie.services.check.completion import complete_anew, lost_completions
from hoodie.services.check.metadata_check import unfinished_build_files
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.check.timeline_check import damaged_writes, unreadable_completed, unreadable_plans
from hoodie.services.check.verify import Checked, check, quick_problems
from hoodie.services.cleaning.clean import finish_cleans
from hoodie.services.indexing.file_builds import build_partition
from hoodie.services.indexing.rebuild import rebuild
from hoodie.services.indexing.record_builds import build_record_index
from hoodie.services.planned.pending import drop_plan
from hoodie.services.recovery.restore import finish_restores
from hoodie.timeline import Action, State, delete_heartbeat, delete_instant_files, is_live


class Step(StrEnum):
    """The steps of a repair. They run in this order; each can be repeated."""

    PROPERTIES = "finish the change of hoodie.properties"
    REOPEN = "make an instant pending again by deleting its empty or damaged completed file"
    DROP_PLANS = "delete pending services whose plan is empty or damaged"
    COMPLETE = "write the lost or damaged completed file of an instant anew"
    RESTORE = "finish the restore"
    ORPHANS = "delete data files that no completed instant names"
    PARTITION_FILES = "write missing .hoodie_partition_metadata files"
    REBUILD = "build the metadata table anew"
    BUILD_INDEX = "build the record index"
    BUILD_STATISTICS = "build the column statistics or bloom filters anew"
    TIDY = "roll back dead writes, finish rollbacks, delete markers, stages, heartbeats and locks"
    CLEAN = "finish the clean"
    INDEX_FILES = "delete files of builds that were not completed"
    TEMPORARY = "delete half-written temporary files"


_STATISTICS: Final = next(kind for kind in KINDS.built if kind.differs == kinds.STATISTICS_DIFFER.name)
_STATISTICS_FOLDERS: Final = tuple(f"{partition_folder(name)}/" for name in KINDS.with_followers([_STATISTICS.name]))
_AGED = frozenset({Step.RESTORE, Step.ORPHANS, Step.INDEX_FILES, Step.TEMPORARY})
"""Steps that change files which a process may still write; only the age of a file shows that no process does."""


def _plan_repair(
    checked: Checked, *, now_ms: int, min_age_ms: int
) -> tuple[dict[Step, tuple[str, ...]], tuple[str, ...]]:
    """Return the keys of the problems that each step mends, and the files that are kept.

    Kept are files that changed in the last `min_age_ms`, or whose writer may run.
    """
    kept: list[str] = []
    steps: dict[Step, tuple[str, ...]] = {}
    for step in Step:
        keys = [*dict.fromkeys(problem.key for problem in checked.problems if _mends(step, problem))]
        if step in _AGED:
            young = {key for key in keys if _may_be_in_use(checked.survey, key, now_ms - min_age_ms)}
            kept += sorted(young)
            keys = [key for key in keys if key not in young]
        if keys:
            steps[step] = tuple(keys)
    for instant_time in steps.get(Step.REOPEN, ()):
        # It is pending again: a clean is finished, another instant is rolled back.
        later = Step.TIDY if checked.survey.timeline.get(instant_time, Action.CLEAN) is None else Step.CLEAN
        steps[later] = (*steps.get(later, ()), instant_time)
    return {step: steps[step] for step in Step if steps.get(step)}, tuple(kept)


def _mends(step: Step, problem: Problem) -> bool:
    """Return whether the step mends the problem. Only the statistics are built anew for a damaged file of them."""
    if problem.kind not in _STEPS[step][1]:
        return False
    of_statistics = problem.key.startswith(_STATISTICS_FOLDERS)
    return problem.kind is not kinds.METADATA_DAMAGED or of_statistics == (step is Step.BUILD_STATISTICS)


def _may_be_in_use(survey: Survey, path: str, oldest_ms: int) -> bool:
    """Return whether the file, or those of a restore, changed lately, or its instant has a live heartbeat."""
    if (restore := survey.timeline.get(path, Action.RESTORE)) is not None:
        names = (name for state in State for name in survey.view.layout.names(restore, state))
        files = (survey.files.get(f"{survey.view.layout.instant_folder()}/{name}") for name in names)
        return max((info.modified_ms for info in files if info is not None), default=0) > oldest_ms
    info = survey.files.get(path) or survey.view.store.head(path)
    if info is None:
        return False
    found = survey.data_files.get(path)
    return info.modified_ms > oldest_ms or (found is not None and is_live(survey.view.store, found[2].instant_time))


MIN_AGE_SECONDS: Final = 3600.0
"""Files that changed in the last hour may belong to a process that runs: they are kept."""

_BUILDS: Final = frozenset({Step.REBUILD, Step.BUILD_INDEX, Step.BUILD_STATISTICS})
_OF_FULL_CHECKS: Final = frozenset({kinds.INDEX_DIFFERS, kinds.STATISTICS_DIFFER})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RepairResult(ServiceResult):
    """The outcome of a repair. `counts` has the findings of each step, `failed` those of the steps that failed.

    `left`: kinds of errors that no repair mends.
    """

    failed: int = 0
    left: int = 0

    @property
    def ok(self) -> bool:
        """Whether no error that the check found is left; True for a dry run."""
        return self.dry_run or not (self.failed or self.left)

    def _amounts(self) -> Mapping[str, int]:
        """Count findings: the names of the steps say nothing without their notes."""
        mended = sum(self.counts.values()) - self.failed
        found = {"findings_mended": mended, "findings_not_mended": self.failed}
        return {name: count for name, count in found.items() if count}


def repair(
    call: Call, *, dry_run: bool = True, full: bool = False, min_age_seconds: float = MIN_AGE_SECONDS
) -> ServiceResult:
    """Mend the findings of a check whose remedy is a repair. With `dry_run`, only say what would be done.

    `full`: check the rows and the record index too, as `verify`. `min_age_seconds`: orphaned and temporary files that
    changed later are kept. A step that fails is noted, the other steps run; run the repair again afterwards.

    Raises: as `verify`.
    """
    times = PhaseTimes()
    now_ms = time.time_ns() // 1_000_000
    with times.phase("check"):
        checked = check(call, full=full, now_ms=now_ms)
    steps, kept = _plan_repair(checked, now_ms=now_ms, min_age_ms=int(min_age_seconds * 1000))
    would = "would " if dry_run else ""
    notes = [f"{would}{step}: {_named(keys)}" for step, keys in steps.items()]
    if kept:
        younger = f"kept, as they are younger than {min_age_seconds:.0f} s (min_age_seconds=, --min-age) or in use"
        notes.append(f"{younger}: {_named(kept)}")
    not_mended = _not_mended(checked)
    notes += not_mended
    failed: set[Step] = set()
    if not dry_run and steps:
        with times.phase("repair"):
            done = _execute(call, checked, steps)
        said = [note for texts in done.values() for note in texts]
        notes += sorted(said, key=lambda note: not note.startswith(_FAILED))
        failed = {step for step, texts in done.items() if any(note.startswith(_FAILED) for note in texts)}
    elif steps:
        command = command_text(kinds.REPAIR, call.state.store.uri(""))
        more = (" --full", ", full=True") if full else ("", "")
        notes.append(f"`{command}{more[0]}` (t.repair(dry_run=False{more[1]})) does it")
    return RepairResult(
        operation="repair",
        counts={step.name.lower(): len(keys) for step, keys in steps.items()},
        failed=sum(len(steps[step]) for step in failed),
        left=len(not_mended),
        seconds=times.seconds(),
        dry_run=dry_run,
        notes=(*notes, *checked.notes),
    )


def _named(keys: Sequence[str]) -> str:
    more = f", and {len(keys) - EXAMPLES_MAX:,} more" if len(keys) > EXAMPLES_MAX else ""
    return ", ".join(keys[:EXAMPLES_MAX]) + more


def _not_mended(checked: Checked) -> list[str]:
    """Name the errors that no repair mends, with their remedy."""
    found: dict[str, list[str]] = {}
    where = checked.survey.view.store.uri("")
    for problem in checked.problems:
        kind = problem.kind
        if not kind.is_repaired and kind.severity is kind.severity.ERROR:
            found.setdefault(f"{kind.name} is not repaired ({kind.remedy_for(where)})", []).append(problem.key)
    return [f"{text}: {_named(keys)}" for text, keys in found.items()]


_FAILED: Final = "failed: "


def _execute(call: Call, checked: Checked, steps: Mapping[Step, Sequence[str]]) -> dict[Step, tuple[str, ...]]:
    """Run the steps; return notes of each, even if it failed or was not needed any more."""
    notes: dict[Step, tuple[str, ...]] = {}
    for step, keys in steps.items():
        try:
            if step in _BUILDS and not _is_needed(call, checked, step):
                notes[step] = (f"not needed any more: {step}",)
                continue
            notes[step] = _STEPS[step][0](call, keys) or ()
        except (HoodieError, OSError) as error:
            notes[step] = (f"{_FAILED}{step}: {error}",)
    return notes


def _is_needed(call: Call, checked: Checked, step: Step) -> bool:
    """Look again, under the lock, for problems that the step mends; what only a full check finds is believed."""
    if any(_mends(step, found) and found.kind in _OF_FULL_CHECKS for found in checked.problems):
        return True
    with Survey.locked(call.state) as survey:
        again = quick_problems(survey)
    return any(_mends(step, found) for found in again)


def _finish_properties(call: Call, _keys: Sequence[str]) -> None:
    with call.state.table_lock():
        finish_update(call.state.store)


def _reopen(call: Call, keys: Sequence[str]) -> None:
    with Survey.locked(call.state) as survey:
        for instant in unreadable_completed(survey):
            if instant.requested_time in keys:
                view = survey.view
                view.held_lock.ensure_held()
                delete_instant_files(view.store, view.layout, instant.requested_time, instant.action, State.COMPLETED)


def _drop_plans(call: Call, keys: Sequence[str]) -> None:
    with Survey.locked(call.state) as survey:
        for instant in unreadable_plans(survey):
            if instant.requested_time in keys and not is_live(call.state.store, instant.requested_time):
                survey.view.held_lock.ensure_held()
                drop_plan(survey.view, instant)


def _complete(call: Call, keys: Sequence[str]) -> tuple[str, ...]:
    """Write completed files; an instant that cannot be completed is a note, and the others are.

    The oldest comes first: the file groups that an overwrite replaced depend on the writes before it.
    """
    notes = []
    with Survey.locked(call.state) as survey:
        view, damaged = survey.view, {instant.requested_time: instant for instant in survey.damaged}
        found = sorted([*lost_completions(view), *damaged_writes(survey)], key=lambda lost: lost.requested_time)
        others = {lost.requested_time for lost in found}
        for lost in found:
            if lost.requested_time in keys:
                try:
                    notes.append(complete_anew(view, lost, damaged, others))
                except UnsupportedError as error:
                    notes.append(f"{_FAILED}{Step.COMPLETE}: {error}")
                    continue
                damaged.pop(lost.requested_time, None)
                others.discard(lost.requested_time)
                view = view.refreshed()
    return tuple(notes)


def _delete_orphans(call: Call, keys: Sequence[str]) -> None:
    """Delete orphans that a check under the lock finds again."""
    with Survey.locked(call.state) as survey:
        orphans = {found.key for found in quick_problems(survey) if found.kind is kinds.FILE_ORPHANED}
        for path in sorted(orphans & {*keys}):
            if not is_live(call.state.store, instant_of_data_file(path) or ""):
                survey.view.held_lock.ensure_held()
                call.state.store.delete(path)


def _write_partition_files(call: Call, keys: Sequence[str]) -> None:
    store = call.state.store
    for path in keys:
        folder = path.rpartition("/")[0]
        times = filter(None, (instant_of_data_file(info.name) for info in store.list(folder)))
        ensure_partition_metadata(store, folder, min(times, default="0"))


def _rebuild(call: Call, _keys: Sequence[str]) -> None:
    rebuild(call)


def _build_index(call: Call, _keys: Sequence[str]) -> None:
    build_record_index(call)


def _build_statistics(call: Call, keys: Sequence[str]) -> None:
    """Build the partitions that keys name; other keys are files, or ranges that differ."""
    names = {kind.name if (kind := KINDS.builder(key)) else _STATISTICS.name for key in keys}
    for kind in KINDS.built:
        if kind.name in names:
            build_partition(call, kind.name)


def _delete_index_files(call: Call, keys: Sequence[str]) -> None:
    """Delete files of builds that are not completed still: looked up again under the lock."""
    with Survey.locked(call.state) as survey:
        folder = MetadataFolder(call.state.store, survey.view.config)
        for path in set(keys).intersection(unfinished_build_files(survey, folder, folder.timeline())):
            survey.view.held_lock.ensure_held()
            call.state.store.delete(path)


def _tidy(call: Call, keys: Sequence[str]) -> None:
    with call.state.table_lock(call.properties) as lock:
        prepare_table(call.state, lock)
        # Only the JVM makes heartbeats of the metadata table's writers.
        prefix = f"{METADATA_HOODIE_FOLDER}/.heartbeat/"
        for path in keys:
            if path.startswith(prefix):
                lock.ensure_held()
                delete_heartbeat(call.state.store, path.removeprefix(prefix), folder=METADATA_HOODIE_FOLDER)


def _delete_temporary(call: Call, keys: Sequence[str]) -> None:
    """Delete half-written files; they have no name by which a reader or writer could find them."""
    for path in keys:
        call.state.store.delete(path)


_Act = Callable[[Call, Sequence[str]], tuple[str, ...] | None]

_STEPS: Final[dict[Step, tuple[_Act, Collection[kinds.FindingKind]]]] = {
    Step.PROPERTIES: (_finish_properties, {kinds.PROPERTIES_DAMAGED, kinds.PROPERTIES_BACKUP}),
    Step.REOPEN: (_reopen, {kinds.INSTANT_EMPTY}),
    Step.DROP_PLANS: (_drop_plans, {kinds.PLAN_EMPTY, kinds.PLAN_DAMAGED}),
    Step.COMPLETE: (_complete, {kinds.COMPLETION_LOST}),
    Step.RESTORE: (lambda call, _keys: finish_restores(call), {kinds.RESTORE_PENDING}),
    Step.ORPHANS: (_delete_orphans, {kinds.FILE_ORPHANED}),
    Step.PARTITION_FILES: (_write_partition_files, {kinds.PARTITION_FILE_MISSING}),
    Step.REBUILD: (
        _rebuild,
        {
            kinds.METADATA_MISSING,
            kinds.METADATA_DAMAGED,
            kinds.METADATA_BEHIND,
            kinds.LISTING_STALE,
            kinds.LISTING_LACKS,
            kinds.LISTING_LENGTH,
            kinds.INDEX_DIFFERS,
        },
    ),
    Step.BUILD_INDEX: (_build_index, {kinds.INDEX_MISSING}),
    Step.BUILD_STATISTICS: (
        _build_statistics,
        {kinds.STATISTICS_DIFFER, kinds.STATISTICS_MISSING, kinds.METADATA_DAMAGED},
    ),
    Step.TIDY: (
        _tidy,
        {
            kinds.WRITE_DEAD,
            kinds.ROLLBACK_PENDING,
            kinds.INDEX_BUILD_ABANDONED,
            kinds.LEFTOVER_MARKERS,
            kinds.LEFTOVER_STAGE,
            kinds.LEFTOVER_HEARTBEAT,
            kinds.LEFTOVER_LOCK,
        },
    ),
    Step.CLEAN: (lambda call, _keys: finish_cleans(call), {kinds.CLEAN_PENDING}),
    Step.INDEX_FILES: (_delete_index_files, {kinds.LEFTOVER_INDEX_FILES}),
    Step.TEMPORARY: (_delete_temporary, {kinds.LEFTOVER_TEMPORARY}),
}
"""What each step calls, and the kinds of problems that it mends. See `_mends` for a kind that two steps have."""
