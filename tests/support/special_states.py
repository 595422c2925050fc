"""States of a table in which actions die, besides those of the matrix of tests/support/actions.py.

An earlier process died in the same action or in a write, a service is planned, another writer comes in between, or the
metadata table runs its own services, is lost or damaged. Each is an `Action` too, so that the same is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hoodie.commit.steps import Step
from hoodie.files.table_properties import update_table_config
from hoodie.metadata.table import MetadataTable
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.pending import roll_back_plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.view.table_state import TableState
from tests.support.actions import (
    ACTIONS,
    KINDS,
    METADATA_SERVICES,
    OFF,
    START,
    STATISTICS,
    Cell,
    Kind,
    changed,
    make_logs,
    plan_compaction,
    settle,
)
from tests.support.deaths import die, run_until
from tests.support.fault_store import CrashPoint, FaultStore
from tests.support.samples import draw
from tests.support.steps import once_at
from tests.support.tables import Write, trips

COMPACTED = "services of the metadata table"
ACTION = {action.name: action for action in ACTIONS}
UPSERT, CLUSTER, COMPACT = (ACTION[name] for name in ("upsert", "cluster", "compact"))
FOLD, BUILD, DROP = (
    ACTION[name] for name in ("log compaction", "build of the record index", "drop of the record index")
)
COMMIT_TIME = tuple(Kind("merge_on_read", index, ordering=None) for index in ("record", "simple"))
"""Where updates may log parts of rows."""
THEIRS, OURS = {"b": (2, "sf"), "x": (2, "sf")}, {"a": (3, "sf"), "x": (3, "sf")}
WRITE_DEATHS = {
    "after requested": ("create", ".requested", CrashPoint.AFTER),
    "after inflight": ("create", ".inflight", CrashPoint.AFTER),
    "before the first data file": ("open_output", ".parquet", CrashPoint.BEFORE),
    "half a data file": ("close_output", ".parquet", CrashPoint.BEFORE),
    "metadata table in flight": ("create", ".deltacommit.inflight", CrashPoint.AFTER),
    "metadata table's log file written": ("create", "log.1_0-0-0", CrashPoint.AFTER),
    "metadata table committed": ("move", ".deltacommit", CrashPoint.AFTER),
}
"""Where a writer dies: the operation and the end of the path of the call, and whether that call still happens."""


def _store(table: Table) -> MemoryStore:
    store = table.view().store
    assert isinstance(store, MemoryStore)
    return store


def _after(*prepares: Callable[[Table], object]) -> Callable[[Table], None]:
    """One after the other, each with a handle that knows nothing of the others."""

    def prepare(table: Table) -> None:
        for one in prepares:
            one(Table(_store(table)))

    return prepare


def _dead(
    act: Write, ending: str, operation: str = "", point: CrashPoint = CrashPoint.BEFORE, *, is_last: bool = False
) -> Callable[[Table], None]:
    """The act has died at its first call of this kind, or at its last."""
    return lambda table: die(_store(table), act, ending, operation, point, is_last=is_last)


def _plan_fold(table: Table) -> None:
    make_logs(table)
    assert table.schedule_log_compaction(3)


def _plan_clustering(table: Table) -> None:
    assert table.schedule_clustering("ts")


def _cluster_planned(table: Table) -> None:
    for instant in table.pending_clusterings().instants:
        table.cluster(instant=instant)


def _roll_back_plans(table: Table) -> None:
    for instant in (*table.pending_clusterings().instants, *table.pending_compactions().instants):
        table.rollback(instant)


def _give_back_compaction(table: Table) -> None:
    """Roll back what a compaction did, and keep its plan."""
    for instant in table.pending_compactions().instants:
        roll_back_plan(COMPACTION, TableState(table.view().store), instant, remove_plan=False)


def _retried(table: Table) -> None:
    """An upsert that meets another one; the other writer does not die."""
    store = table.view().store
    other = Table(store.inner if isinstance(store, FaultStore) else store)
    with once_at(Step.WRITTEN, lambda: other.upsert(trips(THEIRS))):
        assert any(note.startswith("retried once") for note in table.upsert(trips(OURS)).notes)


def _write_after_death(table: Table) -> None:
    """The write tells of the dead one that it rolls back."""
    (dead,) = table.timeline.pending()
    assert any(dead.requested_time in note for note in table.upsert(trips({"a": (2, "sf"), "x": (1, "la")})).notes)
    assert table.timeline.get(dead.requested_time) is None


def _lose_metadata(table: Table) -> None:
    _store(table).delete_folder(".hoodie/metadata")


def _drop_index_as_the_jvm(table: Table) -> None:
    store, config = _store(table), table.view().config
    update_table_config(store, {"hoodie.table.metadata.partitions": "files"})
    MetadataTable(store, config).drop_partitions({"record_index"})


def _damage_index(table: Table) -> None:
    for info in _store(table).list(".hoodie/metadata/record_index"):
        if "record-index-0000-0" in info.name:
            _store(table).delete(info.path)


def _write_until(part: str) -> Callable[[Table], None]:
    """Write until the next write has a storage call of the metadata table on a path with this part."""

    def prepare(table: Table) -> None:
        store, write = _store(table), lambda dying: dying.upsert(trips({"a": START["a"]}), properties=OFF)
        for _ in range(60):
            files = dict(store._content.files)
            calls = run_until(store, write, None).calls
            if any("/metadata/.hoodie/" in call.path and part in call.path for call in calls):
                store._content.files.clear()
                store._content.files.update(files)
                return
        raise AssertionError(f"no write had a call on {part}")

    return prepare


def _is_plain(kind: Kind) -> bool:
    return kind.version == 9 and not kind.properties


def _is_first(kind: Kind) -> bool:
    return kind is KINDS[0]


def _is_commit_time(kind: Kind) -> bool:
    return kind.ordering is None


WHILE_PLANNED = (
    *(
        replace(
            action,
            name=f"{action.name} while a compaction is pending",
            prepare=plan_compaction,
            take_up=settle,
            fits=COMPACT.fits,
        )
        for action in (UPSERT, ACTION["insert_overwrite"], ACTION["delete_partitions"])
    ),
    replace(
        UPSERT, name="upsert while a log compaction is pending", prepare=_plan_fold, take_up=settle, fits=FOLD.fits
    ),
)
AFTER_A_DEATH = (
    replace(
        COMPACT,
        name="compaction after a dead one",
        prepare=_after(plan_compaction, _dead(COMPACT.act, ".commit", "move")),
    ),
    *(
        replace(
            COMPACT,
            name=f"rollback of a dead compaction, plan {left}",
            method="rollback",
            act=act,
            reaches=(".compaction.inflight",),
            prepare=_after(plan_compaction, _dead(COMPACT.act, ".commit", "move")),
        )
        for left, act in (("too", _roll_back_plans), ("stays", _give_back_compaction))
    ),
    replace(
        FOLD,
        name="log compaction after a dead one",
        act=lambda table: table.compact(),
        prepare=_after(_plan_fold, _dead(lambda table: table.compact(), ".deltacommit", "move", is_last=True)),
    ),
    *(
        replace(
            CLUSTER,
            name=f"clustering after one that died before its {ending}",
            act=_cluster_planned,
            prepare=_after(_plan_clustering, _dead(_cluster_planned, ending, "move")),
        )
        for ending in (".replacecommit", ".deltacommit")
    ),
    replace(
        CLUSTER,
        name="rollback of a dead clustering",
        method="rollback",
        act=_roll_back_plans,
        reaches=(".clustering.inflight",),
        prepare=_after(_plan_clustering, _dead(_cluster_planned, ".replacecommit", "move")),
    ),
    *(
        replace(
            action,
            name=f"{action.name} after a dead build",
            reaches=(".indexing.", "/record_index"),
            fits=BUILD.fits,
            prepare=_after(
                _dead(BUILD.act, ".hfile", point=CrashPoint.AFTER),
                lambda table: table.upsert(trips({"a": START["a"]}), properties=OFF),
            ),
        )
        for action in (BUILD, DROP)
    ),
    *(
        replace(
            UPSERT,
            name=f"upsert after a dead {name}: {where}",
            act=_write_after_death,
            rows=changed({"a": (2, "sf"), "x": (1, "la")}),
            prepare=_dead(ACTION[name].act, ending, operation, point),
            fits=_is_first,
            until=".commit.requested",
        )
        for name, where in (
            *(("upsert", where) for where in WRITE_DEATHS),
            ("insert_overwrite", "metadata table committed"),
        )
        for operation, ending, point in (WRITE_DEATHS[where],)
    ),
)
OF_METADATA = (
    replace(
        UPSERT,
        name=f"upsert with statistics, {COMPACTED}",
        reaches=(".compaction.requested", "/column_stats/"),
        properties={**STATISTICS, **METADATA_SERVICES},
        fits=_is_plain,
    ),
    *(
        replace(ACTION[name], name=f"{name}, {COMPACTED}", properties=METADATA_SERVICES, fits=_is_plain)
        for name in ("restore", "rollback of the newest commit")
    ),
    *(
        replace(
            action, name=f"{action.name} without a metadata table", prepare=_lose_metadata, fits=_is_first, until=until
        )
        for action, until in ((UPSERT, ".commit.inflight"), (ACTION["bulk_insert"], ""))
    ),
    replace(
        UPSERT,
        name="upsert after the JVM dropped the index",
        prepare=_drop_index_as_the_jvm,
        fits=_is_first,
        until=".commit.inflight",
    ),
    replace(
        ACTION["rebuild of the metadata table"],
        name="rebuild of a damaged index",
        prepare=_damage_index,
        fits=_is_first,
        needs_it=True,
    ),
    *(
        replace(
            UPSERT,
            name=f"upsert with {service} of the metadata table",
            prepare=_write_until(part),
            reaches=(part,),
            properties=METADATA_SERVICES,
            fits=_is_first,
        )
        for service, part in (("cleaning", ".clean.requested"), ("archiving", "/history/"))
    ),
)
OF_WRITES = (
    replace(
        UPSERT,
        name="upsert with change data",
        reaches=(".cdc",),
        properties={"hoodie.table.cdc.enabled": "true"},
        fits=lambda kind: _is_plain(kind) and not kind.is_merge_on_read,
    ),
    replace(
        UPSERT,
        name="upsert that is retried",
        act=_retried,
        rows=changed({**THEIRS, **OURS}),
        between=changed(THEIRS),
        fits=_is_plain,
    ),
    replace(
        ACTION["update"],
        name="update of parts of rows",
        act=lambda table: table.update(
            {"ts": "ts + 5"}, where="city in ('sf', 'nyc')", properties={"hoodie.python.partial.updates": "always"}
        ),
        rows=changed({"a": (6, "sf"), "b": (6, "sf"), "c": (6, "nyc"), "f": (6, "sf")}),
        fits=_is_commit_time,
    ),
    replace(UPSERT, name="upsert in commit time", fits=_is_commit_time),
)

SPECIAL: tuple[Cell, ...] = tuple(
    Cell(action, kind)
    for action in (*WHILE_PLANNED, *AFTER_A_DEATH, *OF_METADATA, *OF_WRITES)
    for kind in (*KINDS, *COMMIT_TIME)
    if action.fits(kind) and (kind.ordering is not None or _is_commit_time in (action.fits,))
)


def one_special_each() -> list[Cell]:
    """A cell of each special state; the seed of the run decides on which kind of table."""
    names = dict.fromkeys(cell.action.name for cell in SPECIAL)
    return [draw([cell for cell in SPECIAL if cell.action.name == name], 1, f"kind for {name}")[0] for name in names]
