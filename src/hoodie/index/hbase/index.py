"""The HBase index: keys are looked up in an HBase table, one row for each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie import config as options
from hoodie.files.staging.staged_keys import KeyStage, StagedKeys
from hoodie.index.api import LookUpCost, Tagged, TagRequest
from hoodie.index.hbase.committed import committed_instants
from hoodie.index.hbase.readiness import check_ready
from hoodie.index.hbase.settings import HBaseSettings, new_identity
from hoodie.index.hbase.tag import Fetched, KeyTask, ResolveTask, fetch, resolve
from hoodie.index.hbase.update import ENTRY_GROUPS, HBaseUpdate, rows_per_second
from hoodie.index.kind import IndexKind
from hoodie.index.placement import Placement
from hoodie.index.record.entries import ENTRY_BYTES
from hoodie.index.record.moves import drop_older_moves
from hoodie.index.table_facts import TableFacts
from hoodie.records.merging.merge import RecordMerger
from hoodie.view.table_view import TableView

_KEYS_TOGETHER = 20_000
"""Number of keys up to which one task looks up all keys."""


@dataclass(frozen=True, slots=True)
class HBaseIndex:
    """Index that looks keys up in HBase, by requests of many keys.

    Memory of a task: a sixteenth of the write's keys with their versions, and Python objects of one request.
    """

    settings: HBaseSettings
    update_partition_path: bool = False

    @property
    def name(self) -> str:
        """`hbase`."""
        return "hbase"

    @property
    def is_global(self) -> bool:
        """True: keys are unique in the table."""
        return True

    @property
    def indexes_logs(self) -> bool:
        """True: a row has the file group, not the file."""
        return True

    @property
    def needs_exchange(self) -> bool:
        """False: the task of a group of keys has all rows of its keys."""
        return False

    def key_stage(self, view: TableView, merger: RecordMerger) -> KeyStage:
        """Return how to stage keys. An index that cannot be used is found before the caller's data is read.

        Raises: as `readiness.check_ready`.
        """
        check_ready(view, self.settings)
        return KeyStage(ENTRY_GROUPS, merger.ordering_columns)

    def begin(self, facts: TableFacts) -> HBaseTagger:
        """See `Index.begin`. Raises: as `readiness.check_ready`."""
        check_ready(facts.view, self.settings)
        return HBaseTagger(self, facts.view)


@dataclass(frozen=True, slots=True)
class HBaseTagger:
    """The HBase index as it serves one write."""

    index: HBaseIndex
    view: TableView

    def tag(self, request: TagRequest) -> Tagged:
        """See `Tagger.tag`. Raises: IndexUnavailableError."""
        engine = request.engine_for(sum(keys.rows for keys in request.keys) * ENTRY_BYTES)
        tasks = list(self._tasks(request, engine.parallelism))
        fetched = engine.run(fetch, tasks)
        resolving = self._committed(fetched)
        parts = engine.run(resolve, resolving)
        found = [hit for part in parts for hit in part.hits]
        partitions = {run.partition_path for run in request.runs} | {hit.partition_path for hit in found}
        slices = tuple(self.view.slices(partitions))
        current = {(file_slice.partition_path, file_slice.file_id) for file_slice in slices}
        # A write that removes whole file groups leaves their entries: such a key is not found.
        hits = [hit for hit in found if not hit.file_id or (hit.partition_path, hit.file_id) in current]
        if self.index.update_partition_path and request.merger.ordering_columns:
            hits = drop_older_moves(self.view, request, hits, slices)
        cost = sum((part.cost for part in parts), LookUpCost())
        return Tagged(hits=tuple(hits), slices=slices, look_up=cost)

    def placement(self, default: Placement) -> Placement:
        """Return `default`: a key may be in any file group."""
        return default

    def _committed(self, fetched: Sequence[Fetched]) -> list[ResolveTask]:
        """Return the tasks that choose versions, with the instants of these versions that are committed."""
        times = frozenset[str]().union(*(part.instant_times for part in fetched))
        committed = committed_instants(self.view, times, self.index.settings.identity) if times else set()
        return [ResolveTask(part, part.instant_times & committed) for part in fetched]

    def _tasks(self, request: TagRequest, parallelism: int) -> Iterator[KeyTask]:
        by_group: dict[int, list[StagedKeys]] = {}
        for keys in request.keys:
            by_group.setdefault(keys.group, []).append(keys)
        is_small = sum(keys.rows for keys in request.keys) <= _KEYS_TOGETHER
        together = len(by_group) if is_small else 1
        groups = sorted(by_group)
        chunks = [groups[start : start + together] for start in range(0, len(groups), max(together, 1))]
        rate = rows_per_second(self.index.settings, min(parallelism, max(len(chunks), 1)))
        for number, members in enumerate(chunks):
            yield KeyTask(
                store=self.view.store.spec,
                settings=self.index.settings,
                merger=request.merger,
                keys=tuple(keys for group in members for keys in by_group[group]),
                moves_records=self.index.update_partition_path,
                rows_per_second=rate,
                output=f"{request.stage_folder}/hbase-{number}",
            )


def _make(view: TableView, properties: Mapping[str, str]) -> HBaseIndex:
    return HBaseIndex(HBaseSettings.of(view.config.raw, properties), HBASE.moves_records(properties))


HBASE: Final = IndexKind(
    name="hbase",
    types=("HBASE",),
    make=_make,
    is_global=True,
    moves_option=options.HBASE_UPDATE_PARTITION_PATH,
    stores_moves=True,
    new_properties=new_identity,
    update=HBaseUpdate.begin,
)
