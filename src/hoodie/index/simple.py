"""The simple indexes: search the keys in the data files, in the key column of base files and log files.

The non-global index searches a key in the partition of its row. The global index searches it in every partition. If the
key of a row is in another partition, `hoodie.simple.index.update.partition.path` decides whether the record moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.config import writes
from hoodie.engine import Engine, TaskContext
from hoodie.engine.packing import chunks
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, write_hits
from hoodie.index.api import Index, Tagged, TagRequest
from hoodie.index.key_search import Incoming, KeySearch
from hoodie.index.kind import IndexKind
from hoodie.index.living import living_hits
from hoodie.storage import open_store
from hoodie.view.columns import whole_read
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_PROBE_BYTES_MIN = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SimpleIndex(Index):
    """Tags by reading the key columns of the base files that may hold the keys, and of all logs.

    Non-global: a key that a log file deletes still belongs to its file group, as in the JVM, so that late versions of
    the record are merged with the delete, unless another file group has the record. Global: the merged records are
    searched, so a deleted record is inserted again as a new record, in any partition.

    Cost: the key column of every base file in the touched partitions (global: in the table), except files whose key
    range contains none of the keys. Memory of a task: the incoming keys that it searches, and one million stored keys.
    """

    view: TableView
    is_global: bool = False
    update_partition_path: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """`simple` or `global_simple`."""
        return "global_simple" if self.is_global else "simple"

    @property
    def needs_exchange(self) -> bool:  # type: ignore[override]
        """True if the index is global."""
        return self.is_global

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Each task searches a few file slices of one partition."""
        touched = None if self.is_global else {run.partition_path for run in request.runs}
        slices = tuple(list_slices(self.view, touched))
        if not request.runs or not slices:
            return Tagged(slices=slices)
        engine = request.engine_for(sum(file_slice.size_bytes for file_slice in slices))
        search = KeySearch(
            store=self.view.store.spec,
            read=whole_read(self.view, request.schema, request.merger),
            is_global=self.is_global,
            update_partition_path=self.update_partition_path,
        )
        tasks = list(self._tasks(engine, request, slices, search))
        hits = [hit for hits in engine.run(probe, tasks) for hit in hits]
        return Tagged(hits=living_hits(self.view.store, search, request, hits, slices), slices=slices)

    def _tasks(
        self, engine: Engine, request: TagRequest, slices: Sequence[FileSlice], search: KeySearch
    ) -> Iterator[_ProbeTask]:
        runs_of: dict[str, list[StagedRun]] = {}
        for run in request.runs:
            runs_of.setdefault(run.partition_path, []).append(run)
        total = sum(file_slice.size_bytes for file_slice in slices)
        limit = max(total // (engine.parallelism * 2), _PROBE_BYTES_MIN)
        number = 0
        by_partition: dict[str, list[FileSlice]] = {}
        for found in slices:
            if self.is_global or found.partition_path in runs_of:
                by_partition.setdefault(found.partition_path, []).append(found)
        for partition_path, own in by_partition.items():
            runs = request.runs if self.is_global else tuple(runs_of[partition_path])
            for files in chunks(own, limit):
                output = f"{request.stage_folder}/hits-{number}"
                yield _ProbeTask(search, files, runs, output)
                number += 1


@dataclass(frozen=True, slots=True)
class _ProbeTask:
    search: KeySearch
    slices: tuple[FileSlice, ...]
    runs: tuple[StagedRun, ...]
    output: str


def probe(task: _ProbeTask, context: TaskContext) -> list[StagedHits]:
    """Search the staged keys in a few file slices of one partition. Runs on a worker."""
    store = open_store(task.search.store)
    with StageReader(store, task.search.columns) as reader:
        batches = [reader.read(run) for run in task.runs]
    ordinals = np.concatenate([np.arange(run.start, run.start + run.rows) for run in task.runs])
    incoming = Incoming.of(task.search, pa.Table.from_batches(batches), ordinals)
    found = []
    for file_slice in task.slices:
        rows, routes = incoming.find(store, file_slice)
        if len(rows):
            found.append((file_slice.partition_path, file_slice.file_id, rows, routes))
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", found)


# The type is not stored: a JVM writer may then choose another index that keeps keys unique in each partition.
SIMPLE: Final = IndexKind(name="simple", types=("SIMPLE",), make=lambda view, _: SimpleIndex(view), stores_type=False)


GLOBAL_SIMPLE: Final[IndexKind] = IndexKind(
    name="global_simple",
    types=("GLOBAL_SIMPLE",),
    make=lambda view, properties: SimpleIndex(
        view, is_global=True, update_partition_path=GLOBAL_SIMPLE.moves_records(properties)
    ),
    is_global=True,
    moves_option=writes.UPDATE_PARTITION_PATH,
)
