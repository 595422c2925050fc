"""Plan an upgrade or a downgrade: its steps, what is lost, what stands in the way, and who reads the result.

docs/format/table.md §8, docs/table-versions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from hoodie.commit.rollback import dead_writes
from hoodie.commit.writable import target_of_restore
from hoodie.config.writes import COMPLEX_KEY_CHECK
from hoodie.display import counted
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.format.table.version_change import properties_for
from hoodie.format.table.versions import TableVersion
from hoodie.index.record.building.plan import build_of
from hoodie.metadata.kinds.registry import KINDS
from hoodie.services.recovery.savepoint import how_to_finish
from hoodie.services.versions.kept import MOVE, written_after_move
from hoodie.timeline import Action, Instant, is_live, layout_for
from hoodie.view.slices import data_table, list_slices
from hoodie.view.stored_keys import view_key_generator
from hoodie.view.table_view import TableView

_READERS: Final = MappingProxyType(
    {
        6: "hoodie; Hudi 0.14 and 0.15, and engines with these releases; JVM Hudi 1.0 to 1.2; hudi-rs 0.5",
        8: "hoodie; JVM Hudi 1.0 to 1.2, and engines with these releases; hudi-rs 0.5; not Hudi 0.x",
        9: "hoodie; JVM Hudi 1.1 and 1.2, and engines with these releases; hudi-rs 0.5; not Hudi 0.x and 1.0",
    }
)
_ENDED: Final = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLEAN, Action.ROLLBACK})
"""Pending actions that a move ends itself, beside writes whose writers have died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """What a move does. Texts are for people; `in_the_way` is empty if the move can begin.

    `logs`: the number of file slices with log files. `carried`: metadata partitions that stay as they are; `built`:
    those that are built anew; `dropped`: those that the version does not have. `changes`: properties.
    """

    old: TableVersion
    new: TableVersion
    steps: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    logs: int = 0
    carried: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    changes: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def changes_timeline(self) -> bool:
        """Whether the timeline gets another form."""
        return self.old.layout_version != self.new.layout_version

    @property
    def readers(self) -> str:
        """Which engines are known to read the result."""
        return _READERS[self.new.value]


def plan_move(view: TableView, new: TableVersion, options: Mapping[str, str]) -> MovePlan:
    """Plan the move of a table to another version. It costs one listing of the table's files.

    Raises: CorruptFileError for a table that cannot be read.
    """
    plan = MovePlan(old=view.config.version, new=new)
    in_the_way = [*_pending(view), *_late_writes(view, plan), *_keys_in_the_way(view, new, options)]
    changes: dict[str, str | None] = {}
    try:
        changes = properties_for(view.config, new, options)
    except HoodieError as error:
        in_the_way.append(str(error))
    logs = [len(found.log_files) for found in slices_with_logs(view)]
    plan = replace(_metadata(view, plan), in_the_way=tuple(in_the_way), logs=len(logs), changes=changes)
    return replace(plan, steps=tuple(_steps(view, plan, sum(logs))), lost=tuple(_lost(view, plan)))


def target_config(view: TableView, plan: MovePlan) -> TableConfig:
    """Return the properties of the moved table, without a metadata table. Raises: InvalidConfigError."""
    return view.config.with_changes(**plan.changes, **{keys.METADATA_PARTITIONS: "", MOVE: None})


def slices_with_logs(view: TableView) -> list[FileSlice]:
    """Return the file slices that the move compacts: those with log files."""
    if view.config.table_type is not TableType.MERGE_ON_READ:
        return []
    return [found for found in view.fact(list_slices) if found.log_files]


def ended_first(view: TableView) -> list[Instant]:
    """Return the pending instants that the move ends: compactions, cleans, rollbacks, dead writes and dead builds."""
    dead = dead_writes(view)
    ended = []
    for found in view.timeline.pending():
        is_build = found.action is Action.INDEXING and build_of(view, found) is not None
        is_dead_build = is_build and not is_live(view.store, found.requested_time)
        if found in dead or found.action in _ENDED or is_dead_build:
            ended.append(found)
    return ended


def _pending(view: TableView) -> list[str]:
    ended = ended_first(view)
    found = [instant for instant in view.timeline.pending() if instant not in ended]
    return [f"{instant} is pending: {_remedy(view, instant)}" for instant in found]


def _remedy(view: TableView, instant: Instant) -> str:
    time = instant.requested_time
    if instant.action is Action.CLUSTERING:
        return f't.cluster(instant="{time}") executes it, t.rollback("{time}") removes it'
    if instant.action is Action.RESTORE:
        return f"t.restore('{target_of_restore(view, instant) or 'COMMIT'}') completes it"
    if instant.action is Action.SAVEPOINT:
        return how_to_finish(instant)
    if instant.action is Action.INDEXING:
        return "t.index.build() goes on with it, or the engine that began it"
    return "its writer is running: wait until it has ended, and stop all writers"


def _late_writes(view: TableView, plan: MovePlan) -> list[str]:
    """Refuse to copy the timeline over a kept timeline to which a writer wrote after the last move.

    The copy would delete its instants, and then its data files would count as orphaned.
    """
    later = written_after_move(view) if plan.changes_timeline else []
    return [
        f"{found} was written to the old timeline after the last move: its rows are not in the table, and this move "
        "would delete it. Stop its writer, write these rows again, and delete its instant files"
        for found in later[:1]
    ]


def _keys_in_the_way(view: TableView, new: TableVersion, options: Mapping[str, str]) -> list[str]:
    """Refuse a move by which the next writer could write the keys of the stored rows in another way."""
    config = view.config
    is_single = config.key_generator is KeyGeneratorType.COMPLEX and len(config.record_key_fields) == 1
    if not is_single or not COMPLEX_KEY_CHECK.get(options):
        return []
    (name,) = config.record_key_fields
    if config.version.names_single_complex_key and not new.names_single_complex_key:
        return [
            f"the keys of the table are '{name}:value'; Hudi 1.0 and 0.15 would write bare values into a table of "
            f"version {new.value}, so that keys would come twice: keep such writers out, and pass "
            f"{COMPLEX_KEY_CHECK.key}=false"
        ]
    if not new.names_single_complex_key or config.version.names_single_complex_key:
        return []
    try:
        is_bare = view_key_generator(view).with_names is False
    except InvalidConfigError as error:
        return [str(error)]
    if not is_bare:
        return []
    return [
        f"the stored keys are bare values, and writers of version {new.value} write '{name}:value': keys would come "
        "twice. Write the rows to a new table"
    ]


def _metadata(view: TableView, plan: MovePlan) -> MovePlan:
    """Say what becomes of each metadata partition."""
    if not view.config.has_metadata_table:
        return plan
    table = data_table(view)
    carried, built, dropped = [], [], []
    has_same_rows = plan.old.has_typed_statistics == plan.new.has_typed_statistics
    for name in sorted(view.config.metadata_partitions):
        kind = KINDS.find(name)
        leader = None if kind is None or kind.leader is None else KINDS.find(kind.leader)
        if kind is None or not all(found.can_be_in(table, plan.new) for found in (kind, leader) if found is not None):
            dropped.append(name)
        elif plan.changes_timeline or (kind.has_typed_rows and not has_same_rows):
            built.append(name)
        else:
            carried.append(name)
    return replace(plan, carried=tuple(carried), built=tuple(built), dropped=tuple(dropped))


def _steps(view: TableView, plan: MovePlan, log_files: int) -> list[str]:
    ended = [str(found) for found in ended_first(view)]
    steps = [f"end what is pending: {', '.join(ended)}"] if ended else []
    if plan.logs:
        steps.append(f"compact {counted(plan.logs, 'file slices')} with {counted(log_files, 'log files')}")
    if plan.changes_timeline:
        to = layout_for(plan.new, view.config.timeline_path).instant_folder()
        count = counted(len(view.timeline), "instants")
        steps += [
            f"copy the timeline of {count} and its archive from {view.layout.instant_folder()} to {to}",
            "compare the copy with the original: instants, their contents, and the files of all partitions",
        ]
    if plan.dropped:
        steps.append(f"drop the metadata partitions {', '.join(plan.dropped)}")
    changed = sorted(set(plan.changes) - {keys.VERSION})
    steps.append(f"set {keys.VERSION}={plan.new.value}, and change {', '.join(changed) or 'no other property'}")
    if plan.carried:
        steps.append(f"keep the metadata partitions {', '.join(plan.carried)}")
    if plan.built:
        steps.append(f"build the metadata partitions {', '.join(plan.built)} anew")
    if plan.changes_timeline:
        steps.append("keep the old timeline until t.drop_old_timeline() deletes it")
    return steps


def _lost(view: TableView, plan: MovePlan) -> list[str]:
    lost = [f"the metadata partition {name}: version {plan.new.value} does not have it" for name in plan.dropped]
    old_has, new_has = plan.old.has_completion_time_in_name, plan.new.has_completion_time_in_name
    if old_has and not new_has:
        lost.append(
            "completion times: in version 6 incremental reads and streams go by requested times, so the checkpoints of "
            "streams that read the table do not fit"
        )
        if view.config.table_type is TableType.MERGE_ON_READ:
            lost.append(
                "for Hudi 0.15, time travel to before the move: it takes log files of this version for file slices of "
                "their own. Reads of the newest snapshot are right, and hoodie reads the older ones"
            )
    elif new_has and not old_has:
        lost.append(
            "requested times as the order of incremental reads: they go by completion times, and a stream that reads "
            "the table delivers its last commit again"
        )
    return lost
