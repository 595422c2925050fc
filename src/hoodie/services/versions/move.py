"""Upgrade or downgrade a table: `t.upgrade`, `t.downgrade`. docs/table-versions.md.

One replacement of `hoodie.properties` is the step that moves the table. Before it, the timeline of the new version is
written beside the old one and compared with it; after it, the metadata table is built. A process that dies before that
step leaves a table of the old version; after it, a table of the new version; the same call goes on.
The old timeline stays (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hoodie.commit.begin import prepare_table
from hoodie.commit.call import Call
from hoodie.commit.metadata_table import drop_metadata_table, drop_partitions
from hoodie.display import command_text
from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    HoodieError,
    InvalidConfigError,
    RecordKeyError,
    UnsupportedError,
)
from hoodie.files.slices import FileSlice
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.format.table.call_options import check_call_options
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.format.table.versions import TableVersion
from hoodie.index import RECORD
from hoodie.index.record.building.plan import pending_indexing
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import METADATA_PROPERTIES
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.check.data_check import damaged_logs
from hoodie.services.cleaning.clean import finish_cleans
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.compaction.plan import schedule_compaction
from hoodie.services.indexing.file_builds import build_partition, off_properties
from hoodie.services.indexing.life import end_dead_builds
from hoodie.services.indexing.rebuild import BUILD_OR_DROP, rebuild
from hoodie.services.indexing.switch import drop_in
from hoodie.services.planned.executor import execute, execute_waiting
from hoodie.services.versions.kept import COPYING, KEPT, MOVE
from hoodie.services.versions.plan import MovePlan, ended_first, plan_move, slices_with_logs, target_config
from hoodie.services.versions.timeline_copy import (
    Copied,
    check_files,
    copy_timeline,
    instant_files,
    timeline_differences,
)
from hoodie.timeline import layout_of, load_timeline
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES: Final = 3
"""How often what is pending is ended and logs are compacted, if writers come between."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VersionResult(ServiceResult):
    """The outcome, or with `dry_run` the plan, of an upgrade or downgrade.

    `steps` in their order; `lost`: what the new version does not have; `in_the_way`: what must be ended before (empty
    if the move can begin); `readers`: the engines that are known to read a table of the new version.
    """

    from_version: int
    to_version: int
    steps: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    readers: str = ""

    def __str__(self) -> str:
        chapters = {
            "steps": self.steps,
            "lost": self.lost,
            "in the way": self.in_the_way,
            "readers of the result": (self.readers,) if self.readers else (),
        }
        lines = [f"{self.operation} from version {self.from_version} to {self.to_version}"]
        for title, texts in chapters.items():
            lines += [f"  {title}:", *(f"    - {text}" for text in texts)] if texts else []
        return "\n".join([*lines, *self._below(self.notes)])

    def _headline(self) -> tuple[str, Sequence[str]]:
        """Return no text for the first line, which the chapters follow."""
        return "", self.notes


def move(call: Call, operation: str, to: int, *, dry_run: bool) -> VersionResult:
    """Move the table to another version, or only plan it. It holds the table's lock while the timeline is copied.

    `operation`: "upgrade" to a later version, "downgrade" to an earlier one.

    A plan reads the log files, and its notes name the damaged ones, which would stop the move. A move writes no file
    of the new version before its compaction is done.

    First dead writes are rolled back, pending compactions and cleans are finished, and all log files are compacted.
    Rows, commits, savepoints, the archived timeline and checkpoints in commits stay. Indexes are carried or built anew.
    Writers of other engines must be stopped: they may keep the version that they read before.

    Memory: the contents of 256 instant files, the file slices of the table, and about 300 bytes an archived instant.

    Raises:
        InvalidConfigError: `to` is earlier than the version of the table (upgrade), or later (downgrade).
        UnsupportedError: something is in the way, which the plan names; or another engine left a move unfinished.
        CommitConflictError: writers are running.
        CorruptFileError: the copy differs from the original; the table stays as it was.
    """
    times = PhaseTimes()
    new = TableVersion.of(to, path=f"{operation}(to={to})")
    view = call.load()
    # The plan looks at the types of partition fields, and names what is wrong with them.
    others = {key: value for key, value in call.properties.items() if key != keys.PARTITION_FIELDS}
    check_call_options(others, view.config)
    old = view.config.version
    if old.value == new.value:
        return _finished(call, operation, new, times, dry_run=dry_run)
    if (old.value < new.value) != (operation == "upgrade"):
        other = "downgrade" if operation == "upgrade" else "upgrade"
        raise InvalidConfigError(f"{view.store.uri('')} has version {old.value}: call t.{other}(to={new.value})")
    with times.phase("plan"):
        plan = plan_move(view, new, call.properties)
    if dry_run:
        with times.phase("read logs"):
            notes = _damage(call, view)
        return replace(_result(operation, plan, times, dry_run=True), notes=notes)
    _refuse(view, plan)
    _check_place(view, plan)
    with times.phase("prepare"):
        notes = _prepare(call)
    with times.phase("move"), TableView.locked(call.state, call.properties) as now:
        plan = replace(plan_move(now, new, call.properties), steps=plan.steps, lost=plan.lost)
        _check_ready(now, plan)
        _refuse(now, plan)
        if RECORD.needs_one_of(plan.dropped) and not plan.changes_timeline:
            # A move of the timeline drops it with the whole metadata table, after the copy was compared.
            drop_in(now)
            now = now.refreshed()
            plan = replace(plan_move(now, new, call.properties), steps=plan.steps, lost=plan.lost)
        counts = (_move_timeline if plan.changes_timeline else _move_properties)(now, plan)
    with times.phase("index"):
        notes += _build(call, plan)
    return replace(_result(operation, plan, times), counts=counts, notes=notes)


def _result(operation: str, plan: MovePlan, times: PhaseTimes, *, dry_run: bool = False) -> VersionResult:
    return VersionResult(
        operation=operation,
        from_version=plan.old.value,
        to_version=plan.new.value,
        steps=plan.steps,
        lost=plan.lost,
        in_the_way=plan.in_the_way,
        readers=plan.readers,
        seconds=times.seconds(),
        dry_run=dry_run,
    )


def _finished(call: Call, operation: str, new: TableVersion, times: PhaseTimes, *, dry_run: bool) -> VersionResult:
    """Finish a move whose process died after the step that moved the table: build the indexes."""
    view = TableView.load(call.state)
    notes: tuple[str, ...] = (f"the table has version {new.value}",)
    is_open = not view.config.has_metadata_table and MOVE in view.config.raw
    if is_open and dry_run:
        notes = (*notes, f"t.{operation}(to={new.value}, dry_run=False) builds the metadata table")
    elif is_open:
        with times.phase("index"):
            notes = (*notes, *_rebuild(call))
    return VersionResult(
        operation=operation,
        from_version=new.value,
        to_version=new.value,
        seconds=times.seconds(),
        dry_run=dry_run,
        notes=notes,
    )


def _damage(call: Call, view: TableView) -> tuple[str, ...]:
    """Return notes of a plan about log files that the compaction of the move cannot read. Reads all these files."""
    uri = view.store.uri("")
    remedy = command_text("hoodie verify TABLE --full", uri)
    try:
        damaged = damaged_logs(call, view, slices) if (slices := slices_with_logs(view)) else ()
    except HoodieError as error:
        return (f"the log files were not read: {error}",)
    return tuple(
        f"{view.store.uri(found.key)} is damaged, and stops the compaction of the move: {found.found}; `{remedy}` "
        "names the remedy"
        for found in damaged
    )


def _refuse(view: TableView, plan: MovePlan) -> None:
    """Refuse to begin while something is in the way. Raises: UnsupportedError."""
    if plan.in_the_way:
        raise UnsupportedError(
            f"{view.store.uri('')} cannot be moved from version {plan.old.value} to {plan.new.value}: "
            f"{'; '.join(plan.in_the_way)}"
        )


def _check_place(view: TableView, plan: MovePlan) -> None:
    """Refuse a copy over instants that this library did not copy: another engine's move stopped half-way."""
    if not plan.changes_timeline or MOVE in view.config.raw:
        return
    target = target_config(view, plan)
    layout, known = layout_of(target), {found.requested_time for found in view.timeline}
    parsed = (layout.parse_name(info.name) for info in instant_files(view.store, target))
    strange = sorted({found.requested_time for found in parsed if found} - known)
    if strange:
        raise UnsupportedError(
            f"{view.store.uri(layout.instant_folder())} has the instant {strange[0]}, which the timeline of the table "
            "does not have: a move by another engine was interrupted. Run it again with the Hudi release that began it"
        )


def _prepare(call: Call) -> tuple[str, ...]:
    """End what is pending, and compact all log files."""
    state, notes = call.state, list[str]()
    for _ in range(_TRIES):
        with state.table_lock(call.properties) as lock:
            notes += (done.note for done in prepare_table(state, lock, call.properties)[1])
        view = TableView.load(state)
        if pending_indexing(view):
            with TableView.locked(state, call.properties) as now:
                notes += end_dead_builds(now)
        notes += finish_cleans(call)
        if view.config.table_type is TableType.MERGE_ON_READ:
            execute_waiting(COMPACTION, call)
            planned = schedule_compaction(state, strategy="unbounded", properties=call.properties)
            if planned is not None:
                execute(COMPACTION, call, planned)
        if not ended_first(TableView.load(state)):
            break
    return tuple(notes)


def _check_ready(view: TableView, plan: MovePlan) -> None:
    """Refuse to move a table that a writer changed meanwhile. Raises: CommitConflictError."""
    pending = view.timeline.pending().instants
    if pending or plan.logs:
        found = f"{pending[0]} is pending" if pending else "new log files"
        raise CommitConflictError(
            f"{view.store.uri('')}: expected no write while the table is moved to another version, found {found}; "
            "stop the writers and try again. The table was not moved"
        )


def _move_timeline(view: TableView, plan: MovePlan) -> dict[str, int]:
    """Copy the timeline, compare it, and make it the table's timeline. Return counts."""
    store, names = view.store, f"{plan.old.value}-{plan.new.value}"
    update_table_config(store, {MOVE: f"{names} {COPYING}"})
    target = target_config(view, plan)
    copied = copy_timeline(view, target, view.held_lock)
    _compare(view, target, copied)
    if RECORD.needs_one_of(plan.dropped):
        drop_in(view)  # with its properties, as in a move that keeps the timeline
        view = view.refreshed()
    view = drop_metadata_table(view)
    view.held_lock.ensure_held()
    kept = f"{names} {KEPT} {view.clock.next_time(view.timeline)}"
    update_table_config(store, {**off_properties(plan.dropped), **plan.changes, MOVE: kept})
    return {"instants": copied.instants, "archived_instants": copied.archived}


def _compare(view: TableView, target: TableConfig, copied: Copied) -> None:
    """Compare the copied timeline with the original: instants, bytes, archived instants, schema, files of all slices.

    The newest file slices have no log files, so the same files are the same rows. Raises: CorruptFileError.
    """
    store, layout = view.store, layout_of(target)
    new = TableView(TableState(store), target, layout, load_timeline(store, layout))
    problems = timeline_differences(view.timeline, new.timeline)
    check_files(store, copied)
    archived = {(i.requested_time, i.action) for i in view.archive().completed()}
    copied_keys = {(i.requested_time, i.action) for i in new.archive().completed()}
    problems += [f"{time}.{action}" for time, action in sorted(archived ^ copied_keys)]
    problems += sorted(_files(view.fact(list_slices)) ^ _files(list_slices(new)))
    if view.timeline.writes().instants and view.schema().arrow != new.schema().arrow:
        problems.append("the schema")
    if problems:
        raise CorruptFileError(
            f"expected the same instants, files and schema in the copy of the timeline, found differences in "
            f"{', '.join(problems[:5])}; the table stays as it was. t.verify() may find the cause",
            path=store.uri(layout.instant_folder()),
        )


def _files(slices: Iterable[FileSlice]) -> set[str]:
    return {" and ".join(found.paths) for found in slices}


def _move_properties(view: TableView, plan: MovePlan) -> dict[str, int]:
    """Move a table between versions with the same timeline: its properties, and those of its metadata table."""
    store, config = view.store, view.config
    gone = KINDS.with_followers({*plan.dropped, *plan.built}) & {*config.metadata_partitions}
    if gone:
        drop_partitions(view, gone)
    if config.has_metadata_table:
        of_metadata = TableConfig.parse(store.read(METADATA_PROPERTIES), path=store.uri(METADATA_PROPERTIES))
        changed = of_metadata.with_changes(**{keys.VERSION: str(plan.new.value)})
        store.replace(METADATA_PROPERTIES, changed.to_bytes(datetime.now(UTC)))
    view.held_lock.ensure_held()
    update_table_config(store, dict(plan.changes))
    view.state.metadata_table = None
    return {"metadata_partitions": len(plan.carried)}


def _build(call: Call, plan: MovePlan) -> tuple[str, ...]:
    """Build the metadata partitions that were not carried; return notes."""
    if plan.changes_timeline:
        return _rebuild(call) if plan.built else ()
    builders = {kind.name: kind for name in plan.built if (kind := KINDS.builder(name)) is not None}
    return tuple(note for name in builders for note in build_partition(call, name).notes)


def _rebuild(call: Call) -> tuple[str, ...]:
    """Build the metadata table; return notes, also about a record index that cannot be built: the table has moved."""
    try:
        return rebuild(call).notes
    except RecordKeyError as error:
        return (f"the record index was not built, so keys are looked up in the data files: {error}; {BUILD_OR_DROP}",)
