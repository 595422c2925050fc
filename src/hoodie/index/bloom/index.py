"""The kinds `bloom` and `global_bloom`: how a write uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hoodie.config import indexes
from hoodie.errors import CorruptFileError, MetadataTableMissingError
from hoodie.files.slices import FileSlice
from hoodie.index.api import Index, Tagged, TagRequest
from hoodie.index.bloom.check import CheckTask, check_keys
from hoodie.index.bloom.comparisons import Comparisons, KeySequence, sort_keys, sort_tasks, stage_ranges, tasks_of
from hoodie.index.bloom.ranges import StoredKeys, slice_ranges
from hoodie.index.key_search import KeyRange, KeySearch
from hoodie.index.kind import IndexKind
from hoodie.index.living import living_hits
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind
from hoodie.metadata.row_readers import FilterReader
from hoodie.view.columns import whole_read
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_FILTER_BYTES = 512 * 1024
"""Approximate bytes that are read of a file that is compared, to choose an engine."""


@dataclass(frozen=True, slots=True)
class BloomIndex(Index):
    """Tags by the key ranges and bloom filters of base files, and then by the key column of the files that remain.

    A key that only logs hold is found, as by the simple indexes, so that a table whose earlier index put inserts into
    logs stays right; a global index searches merged records.

    Cost: one row of statistics, or one footer, for each file in the touched partitions (global: in the table); the
    filter of each file whose range contains a key; the key column of each file whose filter lets a key pass.
    """

    view: TableView
    is_global: bool = False
    update_partition_path: bool = True
    prunes: bool = indexes.BLOOM_PRUNE.default
    comparisons_max: int = indexes.BLOOM_KEYS_PER_TASK.default
    uses_metadata: bool = indexes.BLOOM_USE_METADATA.default

    @property
    def name(self) -> str:  # type: ignore[override]
        """`bloom` or `global_bloom`."""
        return "global_bloom" if self.is_global else "bloom"

    @property
    def needs_exchange(self) -> bool:  # type: ignore[override]
        """True if the index is global."""
        return self.is_global

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Keys are sorted, then compared with the files whose range contains them."""
        touched = None if self.is_global else {run.partition_path for run in request.runs}
        slices = tuple(list_slices(self.view, touched))
        if not request.runs or not slices:
            return Tagged(slices=slices)
        search = KeySearch(
            store=self.view.store.spec,
            read=whole_read(self.view, request.schema, request.merger),
            is_global=self.is_global,
            update_partition_path=self.update_partition_path,
            prunes=False,
        )
        ranges, footers = [KeyRange()] * len(slices), dict[int, StoredKeys]()
        if self.prunes:
            ranges, footers = slice_ranges(self.view, slices, request.engine_for)
        sequences = self._sorted(request, search, self._by_partition(slices, ranges))
        found = Comparisons.of(sequences)
        engine = request.engine_for(int(found.costs.sum()) + len(np.unique(found.file)) * _FILTER_BYTES)
        parts = tasks_of(found, bound=self.comparisons_max, parallelism=engine.parallelism)
        filters = self._filters()
        tasks = [
            CheckTask(
                search=search,
                slices={int(file): slices[file] for file in np.unique(part.file)},
                sources={
                    int(number): (sequences[number].path, sequences[number].first_block)
                    for number in np.unique(part.sequence)
                },
                comparisons=part,
                filters=filters,
                footers={int(file): footers[int(file)] for file in np.unique(part.file) if int(file) in footers},
                output=f"{request.stage_folder}/hits-{number}",
            )
            for number, part in enumerate(parts)
        ]
        hits = [hit for hits in engine.run(check_keys, tasks) for hit in hits]
        return Tagged(hits=living_hits(self.view.store, search, request, hits, slices), slices=slices)

    def _filters(self) -> FilterReader | None:
        """Return the reader of the filters in the metadata table; None if footers are read."""
        if not self.uses_metadata or not BloomFiltersKind().is_in(self.view.config):
            return None
        try:
            folder = MetadataFolder(self.view.store, self.view.config)
            timeline = visible_instants(folder.existing_timeline(), self.view.whole_timeline())
            return FilterReader.open(self.view.store, BloomFiltersKind(), timeline, version=self.view.config.version)
        except (MetadataTableMissingError, CorruptFileError) as error:
            self.view.state.warn(f"bloom filters are read from the data files: {error}")
            return None

    def _sorted(
        self, request: TagRequest, search: KeySearch, ranges: Mapping[str | None, Mapping[int, KeyRange]]
    ) -> list[KeySequence]:
        ranges_path = f"{request.stage_folder}/ranges.arrow"
        tasks = sort_tasks(
            search.store,
            request.runs,
            stage_ranges(self.view.store, ranges_path, ranges),
            search.columns,
            request.stage_folder,
            is_global=self.is_global,
        )
        engine = request.engine_for(sum(run.size_bytes for run in request.runs))
        return [sequence for found in engine.run(sort_keys, tasks) for sequence in found]

    def _by_partition(
        self, slices: Sequence[FileSlice], ranges: Sequence[KeyRange]
    ) -> dict[str | None, dict[int, KeyRange]]:
        """Return the ranges of all slices by partition path and number."""
        found: dict[str | None, dict[int, KeyRange]] = {}
        for number, (file_slice, range_) in enumerate(zip(slices, ranges, strict=True)):
            path = None if self.is_global else file_slice.partition_path
            found.setdefault(path, {})[number] = range_
        return found


def _make(view: TableView, properties: Mapping[str, str]) -> BloomIndex:
    return BloomIndex(
        view,
        prunes=indexes.BLOOM_PRUNE.get(properties),
        comparisons_max=indexes.BLOOM_KEYS_PER_TASK.get(properties),
        uses_metadata=indexes.BLOOM_USE_METADATA.get(properties),
    )


def _make_global(view: TableView, properties: Mapping[str, str]) -> BloomIndex:
    moves = GLOBAL_BLOOM.moves_records(properties)
    return replace(_make(view, properties), is_global=True, update_partition_path=moves)


BLOOM: Final = IndexKind(name="bloom", types=("BLOOM",), make=_make)
GLOBAL_BLOOM: Final = IndexKind(
    name="global_bloom",
    types=("GLOBAL_BLOOM",),
    make=_make_global,
    is_global=True,
    moves_option=indexes.BLOOM_UPDATE_PARTITION_PATH,
)
