"""Plan a repair: which steps mend the problems that a check found, in the order in which they are safe.

Only problems whose remedy is a repair become steps. Young files and the files of running writers are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hoodie.metadata.places import partition_folder
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.check.verify import Checked
from hoodie.timeline import Action, State, is_live
from hoodie.view.statistics import STATISTICS


class Step(StrEnum):
    """The steps of a repair. They run in this order; each can be repeated."""

    PROPERTIES = "finish the change of hoodie.properties"
    REOPEN = "make an instant pending again by deleting its empty completed file"
    DROP_PLANS = "delete pending services whose plan is empty"
    COMPLETE = "write the lost completed file of an instant anew"
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


MENDED_BY: Final = {
    Step.PROPERTIES: (kinds.PROPERTIES_DAMAGED, kinds.PROPERTIES_BACKUP),
    Step.REOPEN: (kinds.INSTANT_EMPTY,),
    Step.DROP_PLANS: (kinds.PLAN_EMPTY,),
    Step.COMPLETE: (kinds.COMPLETION_LOST,),
    Step.RESTORE: (kinds.RESTORE_PENDING,),
    Step.ORPHANS: (kinds.FILE_ORPHANED,),
    Step.PARTITION_FILES: (kinds.PARTITION_FILE_MISSING,),
    Step.REBUILD: (
        kinds.METADATA_MISSING,
        kinds.METADATA_DAMAGED,
        kinds.METADATA_BEHIND,
        kinds.LISTING_STALE,
        kinds.LISTING_LACKS,
        kinds.LISTING_LENGTH,
        kinds.INDEX_DIFFERS,
    ),
    Step.BUILD_INDEX: (kinds.INDEX_MISSING,),
    Step.BUILD_STATISTICS: (kinds.STATISTICS_DIFFER, kinds.STATISTICS_MISSING, kinds.METADATA_DAMAGED),
    Step.TIDY: (
        kinds.WRITE_DEAD,
        kinds.ROLLBACK_PENDING,
        kinds.INDEX_BUILD_ABANDONED,
        kinds.LEFTOVER_MARKERS,
        kinds.LEFTOVER_STAGE,
        kinds.LEFTOVER_HEARTBEAT,
        kinds.LEFTOVER_LOCK,
    ),
    Step.CLEAN: (kinds.CLEAN_PENDING,),
    Step.INDEX_FILES: (kinds.LEFTOVER_INDEX_FILES,),
    Step.TEMPORARY: (kinds.LEFTOVER_TEMPORARY,),
}
"""The kinds of problems that each step mends. See `mends` for a kind that two steps have."""
_STATISTICS_FOLDERS: Final = tuple(f"{partition_folder(name)}/" for name in STATISTICS)
_AGED = frozenset({Step.RESTORE, Step.ORPHANS, Step.INDEX_FILES, Step.TEMPORARY})
"""Steps that change what a process may be working on, of which only the age of its files tells that it does not."""


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The keys of the problems that each step mends; `kept` are files that are too young, or whose writer may run."""

    steps: dict[Step, tuple[str, ...]]
    kept: tuple[str, ...] = ()


def plan_repair(checked: Checked, *, now_ms: int, min_age_ms: int) -> RepairPlan:
    """Plan the repair of a check's problems. Files that changed in the last `min_age_ms` are kept."""
    kept: list[str] = []
    steps: dict[Step, tuple[str, ...]] = {}
    for step in MENDED_BY:
        keys = list(_keys(checked.problems, step))
        if step in _AGED:
            young = {key for key in keys if _may_be_in_use(checked.survey, key, now_ms - min_age_ms)}
            kept += sorted(young)
            keys = [key for key in keys if key not in young]
        if keys:
            steps[step] = tuple(keys)
    if Step.REOPEN in steps:
        for later in (Step.TIDY, Step.CLEAN):
            steps[later] = (*steps.get(later, ()), *_reopened(checked, steps[Step.REOPEN], later))
    return RepairPlan({step: steps[step] for step in Step if steps.get(step)}, tuple(kept))


def mends(step: Step, problem: Problem) -> bool:
    """Return whether the step mends the problem. Only the statistics are built anew for a damaged file of them."""
    if problem.kind not in MENDED_BY[step]:
        return False
    of_statistics = problem.key.startswith(_STATISTICS_FOLDERS)
    return problem.kind is not kinds.METADATA_DAMAGED or of_statistics == (step is Step.BUILD_STATISTICS)


def _keys(problems: Iterable[Problem], step: Step) -> Iterator[str]:
    yield from dict.fromkeys(problem.key for problem in problems if mends(step, problem))


def _reopened(checked: Checked, times: Iterable[str], step: Step) -> Iterator[str]:
    """Yield the instants that are pending again and that the step finishes or rolls back."""
    for time in times:
        if (checked.survey.timeline.get(time, Action.CLEAN) is not None) == (step is Step.CLEAN):
            yield time


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
