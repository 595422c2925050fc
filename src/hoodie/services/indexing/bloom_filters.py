"""Build the metadata partition `bloom_filters` while writers write, drop it, and compare it with the data files.

docs/indexes/bloom.md.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.engine import LocalEngine
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.filter_stash import FilterStash, Place, ReadFilter
from hoodie.files.slices import BaseFile
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.filter_row import FilterRow, bloom_filter_key
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.metadata.filter_reader import FilterReader
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind, places_by_group
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.paths import partition_folder
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.file_builds import begin, check_buildable, drop_built, run, write_group_file
from hoodie.services.results import Finding, Report, ServiceResult, few_of_each_kind
from hoodie.storage import Store
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3
_MISSING = "missing filter"
_WRONG = "filter that differs from the file's"
_CHECKED_TOGETHER = 64
"""Filters that a check holds in memory twice: about 55 MB."""
_GROUP_BYTES = 64 * 1024 * 1024
"""Bytes of rows in a file group that a build writes; the build and later compactions hold them up to four times."""


@dataclass(slots=True)
class FilterFiles:
    """The filters of the base files of the newest slices. Memory: as `FilterStash`, and four times 64 MiB."""

    filters: FilterStash
    kinds: tuple[PartitionKind, ...] = (BloomFiltersKind(),)
    replaced: tuple[str, ...] = (BLOOM_FILTERS,)
    files_read: int = 0
    _groups: int = 0
    _written: dict[int, tuple[list[Place], WriteStat]] = field(default_factory=dict)
    """What the file of each file group has, by number."""

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read."""
        files = {(file.partition_path, file.name): file for file in _base_files(view)}
        self.filters.keep(files)
        count = self.filters.add(files.values())
        self.files_read += count
        return count

    def prepare(self, view: TableView, built_at: str) -> None:
        """Write the files before the lock is taken; `write` then writes only those whose content has changed since."""
        for kind in self.kinds:
            self.write(view.store, kind, groups=kind.file_groups(view.config.raw), built_at=built_at)

    def write(self, store: Store, kind: PartitionKind, *, groups: int, built_at: str) -> list[WriteStat]:
        """Write one base file for each file group. A build has more of them than `groups` if there are many files."""
        self._groups = self._groups or max(groups, -(-self.filters.total_bytes // _GROUP_BYTES))
        folder = partition_folder(kind.name)
        for number, places in enumerate(places_by_group(self.filters.places, self._groups)):
            before, stat = self._written.get(number, (None, None))
            if before == places and stat is not None and store.head(f"{folder}/{(stat.path or '').split('/')[1]}"):
                continue
            keys = pa.array([bloom_filter_key(*place) for place in places], pa.string())
            values = self.filters.read(places)
            self._written[number] = places, write_group_file(store, kind, number, keys, values, built_at=built_at)
        return [stat for _, stat in self._written.values()]


def build_filters(call: Call) -> ServiceResult:
    """Build the partition `bloom_filters` from the footers of the base files, or build it anew; writers can run.

    The option that makes JVM writers maintain it is stored in the table's properties. Files that were written under
    another index keep the filter that they have. Memory of the driver: about 300 MiB, also for many files:
    filters are staged in files of the table's temporary folder.

    Raises:
        UnsupportedError: table version 6, tables without meta fields, bootstrapped tables.
        CommitConflictError: another index is being built, or a JVM write did not end in time.
    """
    times = PhaseTimes()
    with times.phase("plan"):
        view = TableView.load(call.state)
        if not view.config.version.has_known_metadata_table:
            raise UnsupportedError(
                f"{view.store.uri('')} has table version 6: this release does not write its metadata table; build the "
                "bloom filters with JVM Hudi"
            )
        check_buildable(view, "bloom filters")
    with FilterStash(view.store) as filters:
        files = FilterFiles(filters)
        with times.phase("plan"):
            pending, notes = begin(call, files)
        stats = run(call, pending, files, times)
        count = len(filters.places)
    return ServiceResult(
        operation="build bloom filters",
        instant=pending.instant_time,
        counts={"files": count, "files_read": files.files_read},
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=times.seconds(),
        notes=notes,
    )


def drop_filters(state: TableState) -> ServiceResult:
    """Drop the partition `bloom_filters`. Raises: as `drop_built`."""
    return drop_built(state, (BLOOM_FILTERS,))


def verify_filters(call: Call) -> Report:
    """Compare the filters of the base files of the newest slices with their footers. Writers may run.

    The problems are: a file without a filter; a filter with other bytes. Memory: a few hundred filters.

    Raises: InvalidConfigError if the table has no partition `bloom_filters`; CorruptFileError.
    """
    started = time.perf_counter()
    for tries in range(_TRIES):
        view = TableView.load(call.state)
        report = _compared(view, started)
        if report.ok or TableView.load(call.state).timeline == view.timeline or tries == _TRIES - 1:
            break
    return report


def _compared(view: TableView, started: float) -> Report:
    if BLOOM_FILTERS not in view.config.metadata_partitions:
        raise InvalidConfigError(
            f"{view.store.uri('')} has no metadata partition bloom_filters; build it with "
            't.index.build("bloom_filters")'
        )
    files = _base_files(view)
    timeline = visible_instants(MetadataFolder(view.store, view.config).existing_timeline(), view.whole_timeline())
    reader = FilterReader.open(view.store, BloomFiltersKind(), timeline)
    findings: list[Finding] = []
    for start in range(0, len(files), _CHECKED_TOGETHER):
        findings += _differing(view, reader, files[start : start + _CHECKED_TOGETHER])
    counts = Counter(finding.kind for finding in findings)
    return Report(
        subject=f"bloom filters of {view.store.uri('')}",
        checked={"files": len(files)},
        problems={kind: counts[kind] for kind in (_MISSING, _WRONG)},
        findings=few_of_each_kind(findings),
        seconds=time.perf_counter() - started,
    )


def _differing(view: TableView, reader: FilterReader, files: list[BaseFile]) -> Iterator[Finding]:
    stored = reader.rows_at(view.store, [(file.partition_path, file.name) for file in files])
    expected = LocalEngine().run(ReadFilter(view.store.spec), files)
    for file, wanted in zip(files, expected, strict=True):
        found = stored.get((file.partition_path, file.name))
        if found is None:
            yield Finding(kind=_MISSING, key=file.path, expected=_text(wanted))
        elif found.text != wanted.text:
            yield Finding(kind=_WRONG, key=file.path, expected=_text(wanted), found=_text(found))


def _text(row: FilterRow) -> str:
    return f"{row.type_code} of {len(row.text)} characters"


def _base_files(view: TableView) -> list[BaseFile]:
    return [found.base_file for found in list_slices(view) if found.base_file is not None]
