"""Build the metadata partition `bloom_filters` while writers write, drop it, and compare it with the data files.

docs/indexes/bloom.md.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hoodie.engine import LocalEngine
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.slices import BaseFile
from hoodie.files.stored_filters import ReadFilter
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.format.metadata_table.stats_keys import bloom_filter_key
from hoodie.metadata.filter_reader import FilterReader
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind, grouped_filters
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.stats_files import write_group_file
from hoodie.metadata.visible_instants import visible_instants
from hoodie.progress import PhaseTimes
from hoodie.services.indexing.build import IndexCall
from hoodie.services.indexing.file_builds import begin, check_buildable, drop_built, run
from hoodie.services.report import Finding, Report, few_of_each_kind
from hoodie.services.result import ServiceResult
from hoodie.storage import Store
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_TRIES = 3
_MISSING = "missing filter"
_WRONG = "filter that differs from the file's"
_CHECKED_TOGETHER = 256
"""Filters that a check holds in memory: about 100 MB."""


@dataclass(slots=True)
class FilterFiles:
    """The filters of the base files of the newest slices. Memory: the filters, 431 KB for each file by default."""

    kinds: tuple[PartitionKind, ...] = (BloomFiltersKind(),)
    replaced: tuple[str, ...] = (BLOOM_FILTERS,)
    rows: dict[tuple[str, str], FilterRow] = field(default_factory=dict)
    files_read: int = 0

    def catch_up(self, view: TableView) -> int:
        """Read the files that are new since the last call, and forget those that left; return how many were read.

        They are read on threads of this process: the filters of a task's files may be more than Spark carries.
        """
        files = {(file.partition_path, file.name): file for file in _base_files(view)}
        new = [file for place, file in files.items() if place not in self.rows]
        found = LocalEngine().run(ReadFilter(view.store.spec), new)
        self.rows = {place: row for place, row in self.rows.items() if place in files}
        self.rows |= {(file.partition_path, file.name): row for file, row in zip(new, found, strict=True)}
        self.files_read += len(new)
        return len(new)

    def write(self, store: Store, kind: PartitionKind, *, groups: int, built_at: str) -> list[WriteStat]:
        """Write one base file for each file group."""
        rows = {bloom_filter_key(*place): row for place, row in self.rows.items()}
        return [
            write_group_file(store, kind, number, keys, values, built_at=built_at)
            for number, (keys, values) in enumerate(grouped_filters(rows, groups))
        ]


def build_filters(call: IndexCall) -> ServiceResult:
    """Build the partition `bloom_filters` from the footers of the base files, or build it anew; writers can run.

    The option that makes JVM writers maintain it is stored in the table's properties. Files that were written under
    another index keep the filter that they have. Memory of the driver: the filters, 431 KB for each file by default.

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
        files = FilterFiles()
        pending, notes = begin(call, files)
    stats = run(call, pending, files, times)
    return ServiceResult(
        operation="build bloom filters",
        instant=pending.instant_time,
        counts={"files": len(files.rows), "files_read": files.files_read},
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=times.seconds(),
        notes=notes,
    )


def drop_filters(state: TableState) -> ServiceResult:
    """Drop the partition `bloom_filters`. Raises: as `drop_built`."""
    return drop_built(state, (BLOOM_FILTERS,))


def verify_filters(call: IndexCall) -> Report:
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
    return [found.base_file for found in view.slices() if found.base_file is not None]
