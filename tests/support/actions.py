"""Every action that changes a table, as one list: what it does, on which tables, and what takes it up after a death.

`ACTIONS` × `KINDS` is the matrix of test_every_action_that_dies.py and of tests/interop/test_crashed_tables.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pyarrow as pa

from hoodie.format.schema.alterations import AddColumn, DropColumn, MoveColumn, Place, SetComment
from hoodie.index import index_of_view
from hoodie.storage import MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import Action as InstantAction
from hoodie.timeline import InstantClock
from tests.support.archived import OFTEN
from tests.support.deaths import die, run_until
from tests.support.fault_store import FaultStore
from tests.support.samples import IS_WHOLE, covering, draw
from tests.support.tables import Rows, Write, create_in, made_once, trips

DAY_MS = 86_400_000
OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
CLEANS = {"hoodie.clean.commits.retained": "1"}
EXPIRES = {"hoodie.partition.ttl.strategy.days.retain": "7"}
STATISTICS = {"hoodie.metadata.index.column.stats.enable": "true"}
SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "20"}
FILTERS_IN_METADATA = {
    **SMALL_FILTERS,
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.bloom.index.use.metadata": "true",
    # With several, the random ids of files decide how many get rows, and so the number of calls.
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
METADATA_SERVICES = {"hoodie.metadata.compact.max.delta.commits": "1"}
ALL_INLINE = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    **CLEANS,
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
}
FLAG = "_hoodie_is_deleted"
COMPACTS = {"hoodie.compact.inline.max.delta.commits": "1"}

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc"), "d": (1, "la"), "e": (1, "oslo"), "f": (1, "sf")}


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    table_type: str
    index: str
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = 9
    ordering: str | None = "ts"

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == "merge_on_read"

    @property
    def has_record_index(self) -> bool:
        return self.index in ("record", "partitioned_record")

    def __str__(self) -> str:
        more = ", statistics" if self.properties is STATISTICS else ""
        more += ", commit time" if self.ordering is None else ""
        return f"{self.table_type}, {self.index}{more}{f', version {self.version}' if self.version != 9 else ''}"


KINDS = tuple(
    Kind(table_type, index, properties, version)
    for table_type in ("copy_on_write", "merge_on_read")
    for version, index, properties in (
        (9, "record", {}),
        (9, "partitioned_record", {}),
        (9, "simple", {}),
        (9, "global_simple", {}),
        (9, "bucket", {}),
        (9, "bloom", SMALL_FILTERS),
        (9, "global_bloom", FILTERS_IN_METADATA),
        (9, "record", STATISTICS),
        (8, "record", STATISTICS),
        (8, "simple", {}),
        (6, "record", {}),
        (6, "simple", {}),
        (6, "global_bloom", SMALL_FILTERS),
    )
)


def _of_all(kind: Kind) -> bool:
    return True


def _nothing(table: Table) -> None:
    return None


@dataclass(frozen=True)
class Action:
    """A call that changes a table with the rows of `START`.

    `method`: the public method of `Table` that it calls. `rows`: those it leads to. `reaches`: parts of the paths of
    storage calls that it must make, so that a case that does nothing is found. `take_up`: what a person or a service
    does after a death, besides the next write. `needs_it`: writers are refused until then. `until`: it dies at calls up
    to the first one on a path with this ending only.
    """

    name: str
    method: str
    act: Write
    rows: Callable[[Kind], Rows] = lambda kind: START
    reaches: tuple[str, ...] = ()
    prepare: Callable[[Table], object] = _nothing
    take_up: Write = _nothing
    needs_it: bool = False
    fits: Callable[[Kind], bool] = _of_all
    between: Callable[[Kind], Rows] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    until: str = ""

    def __str__(self) -> str:
        return self.name


def changed(changes: Mapping[str, tuple[int, str] | None]) -> Callable[[Kind], Rows]:
    """The rows of `START` with some added, changed, or (None) gone."""
    rows = {key: row for key, row in {**START, **changes}.items() if row is not None}
    return lambda kind: rows


def _instant(table: Table, newest: int) -> str:
    """The requested time of a completed write, counted from the newest."""
    return table.timeline.completed().writes().instants[-newest].requested_time


def settle(table: Table) -> None:
    """Execute all plans of compactions and clusterings, and finish cleans."""
    table.clean()
    for instant in table.pending_clusterings().instants:
        table.cluster(instant=instant)
    while table.pending_compactions().instants and table.compact().instant is not None:
        pass


def make_logs(table: Table) -> None:
    for _ in range(3):
        table.upsert(trips({"a": START["a"], "c": START["c"]}), properties=OFF)


def plan_compaction(table: Table) -> None:
    make_logs(table)
    assert table.schedule_compaction()


def make_old_slices(table: Table) -> None:
    make_logs(table)
    if table.view().config.table_type.value == "MERGE_ON_READ":
        assert table.schedule_compaction(properties=COMPACTS)
        table.compact()
    for _ in range(2):
        table.upsert(trips({"a": START["a"], "c": START["c"]}), properties=OFF)


def _make_archivable(table: Table) -> None:
    make_old_slices(table)
    table.clean(properties=CLEANS)


def _die(table: Table) -> None:
    """A writer that died before its last step, beside a file that no writer knows."""
    store = table.view().store
    assert not isinstance(store, FaultStore)

    def write(dying: Table) -> object:
        return dying.upsert(trips({"a": (9, "sf"), "z": (9, "nyc")}), properties=OFF)

    is_logged = table.view().config.table_type.value == "MERGE_ON_READ"
    die(store, write, ".deltacommit" if is_logged else ".commit", "move", is_last=True)


def _roll_back_pending(table: Table) -> None:
    for instant in table.timeline.pending():
        if instant.action.writes_data:
            table.rollback(instant.requested_time)


def _fold(table: Table) -> None:
    table.schedule_log_compaction(3)
    table.compact()


def _keep(table: Table) -> object:
    return table.savepoint(_instant(table, 2))


def _restore(table: Table) -> object:
    return table.restore(table.savepoints()[0].instant)


def _delete_savepoints(table: Table) -> None:
    for found in table.savepoints():
        table.delete_savepoint(found.instant)


def _complete_savepoints(table: Table) -> None:
    for instant in _pending_savepoints(table):
        table.savepoint(instant)


def _delete_again(table: Table) -> None:
    for instant in _pending_savepoints(table):
        table.delete_savepoint(instant)
    _delete_savepoints(table)


def _pending_savepoints(table: Table) -> list[str]:
    pending = table.timeline.pending()
    return [found.requested_time for found in pending if found.action is InstantAction.SAVEPOINT]


def _compact(table: Table) -> None:
    table.schedule_compaction(properties=COMPACTS)
    while table.compact().instant is not None:
        pass


def _is_mor(kind: Kind) -> bool:
    return kind.is_merge_on_read


def _clusters(kind: Kind) -> bool:
    return kind.index != "bucket"


def _log_compacts(kind: Kind) -> bool:
    return kind.is_merge_on_read and kind.version > 6


def _builds_record_index(kind: Kind) -> bool:
    return kind.index == "global_simple"


def _has_an_old_partition(kind: Kind) -> bool:
    """In version 6 the first write of a record index has the time of files: their change is when they complete."""
    return kind.version != 6 or not kind.has_record_index


def _has_global_record_index(kind: Kind) -> bool:
    return kind.index == "record"


def _has_no_statistics(kind: Kind) -> bool:
    return kind.properties is not STATISTICS


def _move(table: Table, to: int) -> object:
    found = table.view().config.version.value
    return (table.upgrade if found <= to else table.downgrade)(to, dry_run=False)


def _has_older_version(kind: Kind) -> bool:
    return kind.version < 9


def _merge(table: Table, source: pa.Table) -> object:
    """Delete `c`, update the other rows that the table has, and insert the rest."""
    on = "t.id = s.id" if index_of_view(table.view()).is_global else "t.id = s.id AND t.city = s.city"
    merge = table.merge(source, on).when_matched_delete("s.id = 'c'")
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _calls(
    method: str, *given: Any, name: str = "", options: Mapping[str, Any] | None = None, again: bool = False, **more: Any
) -> Action:
    """A call of this method with what is given; `again`: after a death the same call takes it up. `more`: see `Action`.

    The name of the action is that of the method by default.
    """

    def act(table: Table) -> object:
        return attrgetter(method)(table)(*given, **(options or {}))

    action = Action(name or method, method, act, **more)
    return replace(action, take_up=act) if again else action


def _moves(method: str, to: int, fits: Callable[[Kind], bool], *reaches: str, name: str = "") -> Action:
    """An upgrade or downgrade, which the same call takes up."""
    act = partial(_move, to=to)
    return Action(name or method, method, act, reaches=reaches, prepare=make_logs, take_up=act, fits=fits)


CHANGES: Rows = {"a": (2, "sf"), "c": (2, "nyc"), "x": (1, "rome")}
ADDED: Rows = {"x": (1, "sf"), "y": (1, "rome")}
MADE: Rows = {"a": (7, "sf"), "x": (1, "rome")}
GONE = changed({"a": None, "c": None})
WITH_IDS = [DropColumn(FLAG), AddColumn(FLAG, pa.bool_())]
MOVED = [MoveColumn(FLAG, Place(first=True)), SetComment("ts", "time")]

ACTIONS: tuple[Action, ...] = (
    _calls("upsert", trips(CHANGES, deleted=("c",)), rows=changed({**CHANGES, "c": None})),
    Action("merge", "merge", lambda table: _merge(table, trips(CHANGES)), changed({**CHANGES, "c": None})),
    _calls(
        "write_batch",
        trips({"a": (2, "sf"), "x": (1, "rome")}),
        3,
        options={"query": "q"},
        rows=changed({"a": (2, "sf"), "x": (1, "rome")}),
    ),
    _calls("insert", trips(ADDED), rows=changed(ADDED)),
    _calls("bulk_insert", trips(ADDED), rows=changed(ADDED)),
    _calls("delete", trips({"a": (0, "sf"), "c": (0, "nyc")}).select(["id", "city"]), rows=GONE),
    _calls("delete_where", "id in ('a', 'c')", rows=GONE),
    _calls("update", {"ts": "ts + 5"}, options={"where": "city = 'nyc'"}, rows=changed({"c": (6, "nyc")})),
    _calls(
        "insert_overwrite",
        trips({"x": (1, "nyc")}),
        rows=changed({"c": None, "x": (1, "nyc")}),
        reaches=(".replacecommit",),
    ),
    _calls("insert_overwrite_table", trips(MADE), rows=lambda kind: MADE, reaches=(".replacecommit",)),
    _calls(
        "delete_partitions", ["city=nyc", "city=la"], rows=changed({"c": None, "d": None}), reaches=(".replacecommit",)
    ),
    _calls(
        "upsert",
        trips({"a": (2, "sf")}),
        name="upsert with services of the metadata table",
        rows=changed({"a": (2, "sf")}),
        reaches=(".compaction.requested",),
        properties=METADATA_SERVICES,
    ),
    _calls(
        "upsert",
        trips({"a": (2, "sf")}),
        name="upsert with every service inline",
        options={"properties": {**ALL_INLINE, **OFTEN}},
        rows=changed({"a": (2, "sf")}),
        reaches=(".clean.requested", ".clustering.requested"),
        prepare=make_old_slices,
        take_up=settle,
        fits=_clusters,
    ),
    _calls(
        "upsert",
        trips({"a": (2, "sf")}),
        name="upsert with a clean under its lock",
        options={"properties": {**OFF, **CLEANS, "hoodie.clean.automatic": "true"}},
        rows=changed({"a": (2, "sf")}),
        reaches=(".clean.requested",),
        prepare=make_old_slices,
        take_up=settle,
    ),
    _calls(
        "clean",
        options={"properties": CLEANS},
        reaches=(".clean.requested", ".parquet"),
        prepare=make_old_slices,
        again=True,
    ),
    _calls("archive", options={"properties": OFTEN}, reaches=("/history/",), prepare=_make_archivable, again=True),
    _calls("savepoint", reaches=(".savepoint",), take_up=_complete_savepoints),
    Action(
        "delete_savepoint",
        "delete_savepoint",
        _delete_savepoints,
        reaches=(".savepoint",),
        prepare=_keep,
        take_up=_delete_again,
    ),
    Action(
        "rollback of the newest commit",
        "rollback",
        lambda table: table.rollback(_instant(table, 1)),
        changed({"f": None}),
        (".rollback.requested",),
    ),
    Action(
        "rollback of a chain",
        "rollback",
        lambda table: table.rollback(_instant(table, 2), chain=True),
        changed({"f": None, "gone": (1, "nyc")}),
        (".rollback.requested",),
        between=changed({"f": None}),
    ),
    Action(
        "rollback of a dead write",
        "rollback",
        _roll_back_pending,
        reaches=(".rollback.requested",),
        prepare=_die,
        take_up=_roll_back_pending,
    ),
    Action(
        "restore",
        "restore",
        _restore,
        changed({"f": None}),
        (".restore.requested",),
        prepare=_keep,
        take_up=_restore,
        needs_it=True,
    ),
    _calls("schedule_clustering", "ts", reaches=(".clustering.requested",), take_up=settle, fits=_clusters),
    _calls("cluster", "ts", reaches=(".clustering.inflight", ".replacecommit"), take_up=settle, fits=_clusters),
    _calls("schedule_compaction", reaches=(".compaction.requested",), prepare=make_logs, take_up=settle, fits=_is_mor),
    _calls("compact", reaches=(".compaction.inflight",), prepare=plan_compaction, take_up=settle, fits=_is_mor),
    Action(
        "log compaction",
        "schedule_log_compaction",
        _fold,
        reaches=(".logcompaction.inflight",),
        prepare=make_logs,
        take_up=settle,
        fits=_log_compacts,
    ),
    Action(
        "compactor",
        "compactor",
        lambda table: table.compactor(properties=COMPACTS).run_once(),
        reaches=(".compaction.inflight",),
        prepare=make_logs,
        take_up=settle,
        fits=_is_mor,
    ),
    Action(
        "services",
        "services",
        lambda table: table.services(properties={**ALL_INLINE, **OFTEN}).run_once(),
        reaches=(".clean.requested", ".clustering.requested"),
        prepare=make_old_slices,
        take_up=settle,
        fits=_clusters,
    ),
    _calls(
        "expire_partitions",
        options={"properties": EXPIRES},
        rows=changed({"e": None}),
        reaches=(".replacecommit",),
        fits=_has_an_old_partition,
    ),
    _calls(
        "repair",
        options={"dry_run": False, "min_age_seconds": 0},
        reaches=(".rollback.requested",),
        prepare=_die,
        again=True,
    ),
    _calls(
        "index.build",
        name="build of the record index",
        options={"buckets": 2},
        reaches=(".indexing.requested", ".hfile"),
        again=True,
        fits=_builds_record_index,
    ),
    _calls(
        "index.build",
        name="build of another number of buckets",
        options={"buckets": 3},
        reaches=(".indexing.requested", ".hfile"),
        again=True,
        fits=_has_global_record_index,
    ),
    _calls(
        "index.drop",
        name="drop of the record index",
        reaches=("hoodie.properties",),
        again=True,
        fits=_has_global_record_index,
    ),
    _calls(
        "index.switch",
        "simple",
        name="switch to the simple index",
        options={"key_keeps_partition": True},
        reaches=("hoodie.properties",),
        again=True,
        fits=lambda kind: kind.index in ("record", "bucket") and not kind.properties,
    ),
    _calls(
        "index.switch",
        "record",
        name="switch to the record index",
        reaches=(".indexing.requested", "hoodie.properties"),
        again=True,
        fits=lambda kind: kind.index in ("simple", "bucket"),
    ),
    _calls("index.build", "column_stats", name="build of statistics", reaches=("/column_stats/",), again=True),
    _calls(
        "index.drop",
        "column_stats",
        name="drop of statistics",
        reaches=("hoodie.properties",),
        prepare=lambda table: table.index.build("column_stats"),
        again=True,
    ),
    _calls("index.build", "bloom_filters", name="build of bloom filters", reaches=("/bloom_filters/",), again=True),
    _calls(
        "alter.run",
        WITH_IDS,
        name="change of columns that gives them ids",
        reaches=(".schemacommit",),
        fits=_has_no_statistics,
    ),
    _calls(
        "alter.run",
        MOVED,
        name="change of columns that have ids",
        reaches=(".schemacommit",),
        prepare=lambda table: table.alter.run(WITH_IDS),
        fits=_has_no_statistics,
    ),
    _calls("alter.run", MOVED, name="change of columns without ids", reaches=("commit",)),
    _calls("alter.set_properties", OFTEN, name="change of stored options", reaches=("hoodie.properties",)),
    _calls(
        "alter.unset_properties",
        [*OFTEN],
        name="removal of stored options",
        reaches=("hoodie.properties",),
        prepare=lambda table: table.alter.set_properties(OFTEN),
    ),
    _moves("upgrade", 9, _has_older_version, "hoodie.properties"),
    _moves("downgrade", 8, lambda kind: kind.version == 9, "hoodie.properties", name="downgrade to 8"),
    _moves(
        "downgrade",
        6,
        lambda kind: kind.version > 6,
        "hoodie.properties",
        ".hoodie/hoodie.properties",
        name="downgrade to 6",
    ),
    _calls(
        "drop_old_timeline",
        name="drop of the timeline of the old version",
        options={"dry_run": False},
        reaches=("hoodie.properties",),
        again=True,
        prepare=lambda table: _move(table, 6 if table.view().config.version.value > 6 else 8),
    ),
    _calls("index.rebuild", name="rebuild of the metadata table", reaches=("/files/",), again=True),
)


@dataclass(frozen=True)
class Cell:
    """One action on one kind of table."""

    action: Action
    kind: Kind

    @property
    def rows(self) -> Rows:
        """The rows after the action."""
        return self.action.rows(self.kind)

    @property
    def possible_rows(self) -> list[Rows]:
        """The rows that a reader can see after a death."""
        steps = [] if self.action.between is None else [self.action.between(self.kind)]
        return [START, *steps, self.rows]

    def prepared(self) -> MemoryStore:
        """A table in memory, ready for the action."""
        store = started(self.kind, self.action.properties)
        self.action.prepare(Table(store))
        return store

    def make(self, store: Store) -> Store:
        """Make the table, ready for the action, in an empty store."""
        make_table(store, self.kind, self.action.properties)
        self.action.prepare(Table(store))
        return store

    def __str__(self) -> str:
        return f"{self.action.name}, {self.kind}"


CELLS: tuple[Cell, ...] = tuple(Cell(action, kind) for action in ACTIONS for kind in KINDS if action.fits(kind))


def _form(cell: Cell) -> tuple[str, int]:
    return cell.kind.table_type, cell.kind.version


def _index(cell: Cell) -> tuple[str, bool]:
    return cell.kind.index, bool(cell.kind.properties)


FORMS: list[Cell] = covering(CELLS, attrgetter("action.name"), _form)
"""Each action on each type and version of table, with one index each."""
COVER: list[Cell] = covering(CELLS, attrgetter("action.name"), _form, _index)
"""Each action on each type and version, and with each index and its options: a third of the matrix."""


def sampled_cells(name: str, whole: Sequence[Cell]) -> list[Cell]:
    """The cells of a run: half of the actions, drawn for this name, each on one kind of table; `whole` in test-all."""
    return list(whole) if IS_WHOLE else draw(one_kind_each(), len(ACTIONS) // 2, name)


def one_kind_each() -> list[Cell]:
    """A cell of each action; the seed of the run decides on which kind of table."""
    cells = ([cell for cell in CELLS if cell.action is action] for action in ACTIONS)
    return [draw(found, 1, f"kind for {found[0].action}")[0] for found in cells]


def is_restoring(table: Table) -> bool:
    """Whether writers are refused until a restore is completed."""
    return any(found.action is InstantAction.RESTORE for found in table.timeline.pending())


def started(kind: Kind, properties: Mapping[str, str]) -> MemoryStore:
    """A table in memory as `make_table` makes it."""
    if kind.index != "hbase":  # the copies would share what HBase stores
        return _made_once(kind, properties)
    store = MemoryStore()
    make_table(store, kind, properties)
    return store


@made_once
def _made_once(kind: Kind, properties: Mapping[str, str]) -> MemoryStore:
    store = MemoryStore()
    make_table(store, kind, properties)
    return store


def make_table(store: Store, kind: Kind, properties: Mapping[str, str]) -> None:
    """Make a table with the rows of `START`: six commits, two file groups in one partition, one partition a month old.

    No service runs by itself: each is an action of its own.
    """
    create_in(
        store,
        table_type=kind.table_type,
        index=kind.index,
        ordering=kind.ordering,
        table_version=kind.version,
        properties={**OFF, "hoodie.parquet.small.file.limit": "0", **kind.properties, **properties},
    )
    table = Table(store)
    zone, now_ms = table.view().layout.zone, time.time_ns() // 1_000_000
    table._context.state.clock = InstantClock(zone, now_ms=partial(int, now_ms - 30 * DAY_MS))
    table.upsert(trips({"e": START["e"]}))
    table = Table(store)
    table.upsert(trips({"a": (1, "sf"), "b": (0, "sf"), "c": (0, "nyc"), "d": (1, "la"), "gone": (1, "nyc")}))
    table.upsert(trips({"b": (1, "sf"), "c": (1, "nyc")}))
    table.delete(trips({"gone": (1, "nyc")}).select(["id", "city"]))
    table.insert(trips({"f": (1, "sf")}))


def whole_run(cell: Cell, store: Store) -> FaultStore:
    """Let the action end, and check that it does what its case says; the returned store has its calls."""
    done = run_until(store, cell.action.act, None)
    assert not done.crashed
    paths = [call.path for call in done.calls]
    parts = cell.action.reaches
    if cell.kind.version == 6:
        parts = tuple(
            part.replace(".clustering.", ".replacecommit.").replace("/history/", "/archived/") for part in parts
        )
    missing = [part for part in parts if not any(part in path for path in paths)]
    assert not missing, f"{cell} makes no storage call on {missing}"
    return done
