"""Repair a table: rebuild what is derived, remove what is orphaned or left over, and finish what died half-way.

`t.repair()` and `hoodie repair`. A file that a completed instant names is never deleted, unless a restore or a clean
that somebody began, and whose plan is stored, deletes it. Each step that changes the table takes the table's lock and
looks again under it, so that it can be repeated after a crash and beside writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from hoodie.commit.begin import put_in_order
from hoodie.errors import HoodieError, UnsupportedError
from hoodie.files.partition_folder import ensure_partition_metadata
from hoodie.files.table_properties import finish_update
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.places import METADATA_HOODIE_FOLDER
from hoodie.progress import PhaseTimes
from hoodie.services.call import ServiceCall
from hoodie.services.check import kinds
from hoodie.services.check.completion import complete_anew, lost_completions
from hoodie.services.check.metadata_check import unfinished_build_files
from hoodie.services.check.repair_plan import RepairPlan, Step, mends, plan_repair
from hoodie.services.check.survey import Survey
from hoodie.services.check.timeline_check import empty_completed, empty_plans
from hoodie.services.check.verify import Checked, check, quick_problems
from hoodie.services.cleaning.run import finish_cleans
from hoodie.services.indexing.bloom_filters import build_filters
from hoodie.services.indexing.build import IndexCall, build_record_index
from hoodie.services.indexing.rebuild import rebuild
from hoodie.services.indexing.statistics import build_statistics
from hoodie.services.recovery.restore import finish_restores
from hoodie.services.report import EXAMPLES_MAX
from hoodie.services.result import ServiceResult
from hoodie.timeline import State, TableLock, delete_heartbeat, delete_instant_files, is_live
from hoodie.view.table_view import TableView

MIN_AGE_SECONDS: Final = 3600.0
"""Files that changed in the last hour may belong to a process that runs: they are kept."""

_BUILDS: Final = frozenset({Step.REBUILD, Step.BUILD_INDEX, Step.BUILD_STATISTICS})
_OF_FULL_CHECKS: Final = frozenset({kinds.INDEX_DIFFERS, kinds.STATISTICS_DIFFER})


def repair(
    call: ServiceCall, *, dry_run: bool = True, full: bool = False, min_age_seconds: float = MIN_AGE_SECONDS
) -> ServiceResult:
    """Mend the findings of a check whose remedy is a repair. With `dry_run`, only say what would be done.

    `full`: check the rows and the record index too, as `verify`. `min_age_seconds`: orphaned and temporary files that
    changed later are kept. A step that fails is noted, the other steps run; run the repair again afterwards.

    Raises: as `verify`; UnsupportedError for a table version that this release does not write, if anything is to do.
    """
    times = PhaseTimes()
    now_ms = time.time_ns() // 1_000_000
    with times.phase("check"):
        checked = check(call, full=full, now_ms=now_ms)
    plan = plan_repair(checked, now_ms=now_ms, min_age_ms=int(min_age_seconds * 1000))
    notes = [f"{step}: {_named(keys)}" for step, keys in plan.steps.items()]
    if plan.kept:
        notes.append(f"kept, as they are younger than {min_age_seconds:.0f} s or in use: {_named(plan.kept)}")
    notes += _not_mended(checked)
    if not dry_run and plan.steps:
        with times.phase("repair"):
            notes += _execute(call, checked, plan)
    counts = {step.name.lower(): len(keys) for step, keys in plan.steps.items()}
    return ServiceResult(
        operation="repair", counts=counts, seconds=times.seconds(), dry_run=dry_run, notes=(*notes, *checked.notes)
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


def _execute(call: ServiceCall, checked: Checked, plan: RepairPlan) -> list[str]:
    """Run the steps; return notes about steps that failed, or that were not needed any more."""
    version = checked.survey.view.config.version
    if not version.is_written:
        raise UnsupportedError(
            f"{call.state.store.uri('')} has table version {version.value}: hoodie writes version 9 only; repair the "
            "table with the engine that writes it"
        )
    notes = []
    for step, keys in plan.steps.items():
        try:
            if step in _BUILDS and not _is_needed(call, checked, step):
                notes.append(f"not needed any more: {step}")
                continue
            notes += _STEPS[step](call, keys) or ()
        except (HoodieError, OSError) as error:
            notes.append(f"failed: {step}: {error}")
    return notes


def _is_needed(call: ServiceCall, checked: Checked, step: Step) -> bool:
    """Look again, under the lock, for problems that the step mends; what only a full check finds is believed."""
    if any(mends(step, found) and found.kind in _OF_FULL_CHECKS for found in checked.problems):
        return True
    with call.state.table_lock() as lock:
        again = quick_problems(Survey.under(call.state, lock))
    return any(mends(step, found) for found in again)


def _finish_properties(call: ServiceCall, _keys: Sequence[str]) -> None:
    with call.state.table_lock():
        finish_update(call.state.store)


def _reopen(call: ServiceCall, keys: Sequence[str]) -> None:
    with call.state.table_lock() as lock:
        survey = Survey.under(call.state, lock)
        for instant in empty_completed(survey):
            if instant.requested_time in keys:
                lock.ensure_held()
                view = survey.view
                delete_instant_files(view.store, view.layout, instant.requested_time, instant.action, State.COMPLETED)


def _drop_plans(call: ServiceCall, keys: Sequence[str]) -> None:
    with call.state.table_lock() as lock:
        survey = Survey.under(call.state, lock)
        for instant in empty_plans(survey):
            if instant.requested_time in keys and not is_live(call.state.store, instant.requested_time):
                lock.ensure_held()
                states = (State.INFLIGHT, State.REQUESTED)
                view = survey.view
                delete_instant_files(view.store, view.layout, instant.requested_time, instant.action, *states)


def _complete(call: ServiceCall, keys: Sequence[str]) -> tuple[str, ...]:
    """Write completed files; an instant that cannot be completed is a note, and the others are."""
    notes = []
    with call.state.table_lock() as lock:
        view = TableView.load(call.state, lock)
        for lost in lost_completions(view):
            if lost.requested_time in keys:
                try:
                    notes.append(complete_anew(view, lost))
                except UnsupportedError as error:
                    notes.append(f"failed: {Step.COMPLETE}: {error}")
    return tuple(notes)


def _finish_restore(call: ServiceCall, _keys: Sequence[str]) -> None:
    finish_restores(call)


def _finish_clean(call: ServiceCall, _keys: Sequence[str]) -> tuple[str, ...]:
    return finish_cleans(call)


def _delete_orphans(call: ServiceCall, keys: Sequence[str]) -> None:
    """Delete orphans that a check under the lock finds again."""
    with call.state.table_lock() as lock:
        survey = Survey.under(call.state, lock)
        for path in sorted(
            {found.key for found in quick_problems(survey) if found.kind is kinds.FILE_ORPHANED} & {*keys}
        ):
            if not is_live(call.state.store, instant_of_data_file(path) or ""):
                lock.ensure_held()
                call.state.store.delete(path)


def _write_partition_files(call: ServiceCall, keys: Sequence[str]) -> None:
    store = call.state.store
    for path in keys:
        folder = path.rpartition("/")[0]
        times = filter(None, (instant_of_data_file(info.name) for info in store.list(folder)))
        ensure_partition_metadata(store, folder, min(times, default="0"))


def _rebuild(call: ServiceCall, _keys: Sequence[str]) -> None:
    rebuild(IndexCall(state=call.state, engine_for=call.engine_for))


def _build_index(call: ServiceCall, _keys: Sequence[str]) -> None:
    build_record_index(IndexCall(state=call.state, engine_for=call.engine_for))


def _build_statistics(call: ServiceCall, keys: Sequence[str]) -> None:
    again = IndexCall(state=call.state, engine_for=call.engine_for)
    if {*keys} - {BLOOM_FILTERS}:
        build_statistics(again)
    if BLOOM_FILTERS in keys:
        build_filters(again)


def _delete_index_files(call: ServiceCall, keys: Sequence[str]) -> None:
    """Delete files of builds that are not completed still: looked up again under the lock."""
    with call.state.table_lock() as lock:
        survey = Survey.under(call.state, lock)
        folder = MetadataFolder(call.state.store, survey.view.config)
        for path in set(keys).intersection(unfinished_build_files(survey, folder, folder.timeline())):
            lock.ensure_held()
            call.state.store.delete(path)


def _tidy(call: ServiceCall, keys: Sequence[str]) -> None:
    with call.state.table_lock(call.properties) as lock:
        view, _ = put_in_order(call.state, lock)
        _delete_metadata_heartbeats(view, lock, keys)


def _delete_metadata_heartbeats(view: TableView, lock: TableLock, keys: Sequence[str]) -> None:
    """Delete heartbeats of the metadata table's writers: only the JVM makes them."""
    prefix = f"{METADATA_HOODIE_FOLDER}/.heartbeat/"
    for path in keys:
        if path.startswith(prefix):
            lock.ensure_held()
            delete_heartbeat(view.store, path.removeprefix(prefix), folder=METADATA_HOODIE_FOLDER)


def _delete_temporary(call: ServiceCall, keys: Sequence[str]) -> None:
    """Delete half-written files; they have no name by which a reader or writer could find them."""
    for path in keys:
        call.state.store.delete(path)


_STEPS: Final[dict[Step, Callable[[ServiceCall, Sequence[str]], tuple[str, ...] | None]]] = {
    Step.PROPERTIES: _finish_properties,
    Step.REOPEN: _reopen,
    Step.DROP_PLANS: _drop_plans,
    Step.COMPLETE: _complete,
    Step.RESTORE: _finish_restore,
    Step.ORPHANS: _delete_orphans,
    Step.PARTITION_FILES: _write_partition_files,
    Step.REBUILD: _rebuild,
    Step.BUILD_INDEX: _build_index,
    Step.BUILD_STATISTICS: _build_statistics,
    Step.TIDY: _tidy,
    Step.CLEAN: _finish_clean,
    Step.INDEX_FILES: _delete_index_files,
    Step.TEMPORARY: _delete_temporary,
}
