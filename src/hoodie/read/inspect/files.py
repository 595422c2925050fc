"""Files, file slices and partitions of a table, and the history of one file group."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidConfigError
from hoodie.files.slices import FileSlice, join_path
from hoodie.format.filenames import BaseFileName, instant_of_data_file, parse_data_file
from hoodie.read.history import completed_at
from hoodie.read.inspect.parts import file_parts, slice_parts
from hoodie.read.report import report_schema
from hoodie.view.last_writes import last_writes
from hoodie.view.listing import list_files, with_archived_between
from hoodie.view.slices import list_slices
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

FILES_SCHEMA = report_schema(
    "partition_path string, file string, kind string, file_id string, instant string, is_current bool, "
    "rows int64?, size_bytes int64"
)
SLICES_SCHEMA = report_schema(
    "partition_path string, file_id string, base_instant string, base_file string?, base_rows int64?, "
    "base_size_bytes int64, log_files int64, log_size_bytes int64"
)
PARTITIONS_SCHEMA = report_schema(
    "partition_path string, file_groups int64, base_rows int64?, size_bytes int64, log_files int64, "
    "latest_instant string"
)
GROUP_SCHEMA = pa.schema([*FILES_SCHEMA, *report_schema("operation string?, completed_at time?")])


def table_files(view: TableView) -> pa.Table:
    """Return every committed base file and log file, sorted by partition path, file id and instant."""
    current = {path for found in checked_slices(view) for path in found.paths}
    rows = _file_rows(view, list_files(view), current)
    rows.sort(key=lambda row: (row["partition_path"], row["file_id"], row["instant"], row["file"]))
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def _file_rows(view: TableView, listing: Mapping[str, Mapping[str, int]], current: set[str]) -> list[dict[str, Any]]:
    row_counts, rows = RowCounts(view), []
    times = {instant_of_data_file(name) or "" for names in listing.values() for name in names}
    timeline = with_archived_between(view, view.timeline, times)
    for partition_path, names in listing.items():
        for name, size_bytes in names.items():
            parsed, path = parse_data_file(name), join_path(partition_path, name)
            if parsed is not None and timeline.contains_or_before_start(parsed.instant_time):
                row = {
                    "partition_path": partition_path,
                    "file": name,
                    "kind": "base" if isinstance(parsed, BaseFileName) else "log",
                    "file_id": parsed.file_id,
                    "instant": parsed.instant_time,
                    "is_current": path in current,
                    "rows": row_counts.get(parsed.instant_time, path),
                    "size_bytes": size_bytes,
                }
                rows.append(row)
    return rows


def files_of_group(view: TableView, file_id: str) -> pa.Table:
    """See `Inspection.file_group`. The operation is null for archived instants. Memory: a part of the files."""
    named: dict[str, Mapping[str, int]] = {}
    for part in file_parts(view):
        for path, names in part.items():
            parsed = {name: parse_data_file(name) for name in names if file_id in name}
            own = {
                name: names[name] for name, found in parsed.items() if found is not None and found.file_id == file_id
            }
            named |= {path: own} if own else {}
    current = {path for slices in slice_parts(view, sorted(named)) for found in slices for path in found.paths}
    rows = _file_rows(view, named, current)
    known = {row["instant"]: _writer_of(view, row["instant"]) for row in rows}
    rows = [{**row, **known[row["instant"]]} for row in rows]
    rows.sort(key=lambda row: (row["instant"], row["kind"], row["file"]))
    return pa.Table.from_pylist(rows, schema=GROUP_SCHEMA)


def _writer_of(view: TableView, requested_time: str) -> Mapping[str, Any]:
    """Return the operation and the time of completion of the write with this requested time; nulls if not known."""
    active = view.timeline.writes().get(requested_time)
    found = [active] if active is not None else view.archive().find([requested_time])
    writes = [instant for instant in found if instant.is_completed and instant.action.writes_data]
    if not writes:
        return {"operation": None, "completed_at": None}
    operation = None if active is None else view.commit_facts(writes[0]).operation_type
    return {
        "operation": operation.lower() if operation else None,
        "completed_at": completed_at(writes[0], view.layout.zone),
    }


def table_slices(view: TableView, partition: str | None, *, limit: int | None = None, offset: int = 0) -> pa.Table:
    """See `Inspection.slices`. With a limit, the slices after it are not listed."""
    row_counts, found = RowCounts(view), slice_parts(view, None if partition is None else [partition])
    wanted = islice(chain.from_iterable(found), offset, None if limit is None else offset + limit)
    return pa.Table.from_pylist([_slice_row(one, row_counts) for one in wanted], schema=SLICES_SCHEMA)


def checked_slices(view: TableView) -> list[FileSlice]:
    """Return the newest slices. Raises: ViewOvertakenError if a clean took files of them meanwhile."""
    slices = list_slices(view)
    check_still_there(view)
    return slices


def table_partitions(view: TableView, *, sort: str, limit: int | None, offset: int) -> pa.Table:
    """See `Inspection.partitions`. Memory: a part of the file slices, and the rows up to `offset + limit`."""
    if sort not in ("name", "bytes"):
        raise InvalidConfigError(f"sort={sort!r}: expected 'name' or 'bytes'")
    end = None if limit is None else offset + limit
    if sort == "name":
        rows = list(_partition_rows(view, slice_parts(view), offset, end))
    else:
        sizes = (
            (-sum(found.size_bytes for found in slices), path)
            for part in slice_parts(view)
            for path, slices in by_partition(part)
        )
        ordered = sorted(sizes) if end is None else heapq.nsmallest(end, sizes)
        places = {path: place for place, (_, path) in enumerate(ordered[offset:])}
        rows = list(_partition_rows(view, slice_parts(view, sorted(places))))
        rows.sort(key=lambda row: places[row["partition_path"]])
    return pa.Table.from_pylist(rows, schema=PARTITIONS_SCHEMA)


def by_partition(slices: Iterable[FileSlice]) -> Iterator[tuple[str, list[FileSlice]]]:
    """Yield partition paths with their slices, which are neighbours."""
    for path, found in groupby(slices, key=attrgetter("partition_path")):
        yield path, list(found)


def _partition_rows(
    view: TableView, parts: Iterable[list[FileSlice]], start: int = 0, end: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows from number `start` to `end` (exclusive); later parts are not read."""
    row_counts, number = RowCounts(view), 0
    for part in parts if end is None or end > start else ():
        groups = list(by_partition(part))
        chosen = groups[max(0, start - number) : None if end is None else end - number]
        times = last_writes(view, (found for _, slices in chosen for found in slices))
        yield from (_partition_row(path, slices, row_counts, times[path]) for path, slices in chosen)
        number += len(groups)
        if end is not None and number >= end:
            return


@dataclass(slots=True)
class RowCounts:
    """Row counts of base and log files, from the metadata of the commits that wrote them."""

    view: TableView
    _by_instant: dict[str, Mapping[str | None, int]] = field(default_factory=dict)

    def get(self, instant_time: str, path: str) -> int | None:
        if instant_time not in self._by_instant:
            instant = self.view.timeline.writes().get(instant_time)
            known = instant is not None and instant.is_completed
            stats = self.view.commit_metadata(instant).write_stats() if known and instant is not None else ()
            self._by_instant[instant_time] = {stat.path: stat.num_writes for stat in stats}
        return self._by_instant[instant_time].get(path)


def _slice_row(found: FileSlice, row_counts: RowCounts) -> dict[str, Any]:
    base = found.base_file
    return {
        "partition_path": found.partition_path,
        "file_id": found.file_id,
        "base_instant": found.base_instant_time,
        "base_file": None if base is None else base.name,
        "base_rows": None if base is None else row_counts.get(base.instant_time, base.path),
        "base_size_bytes": 0 if base is None else base.size_bytes,
        "log_files": len(found.log_files),
        "log_size_bytes": sum(log.size_bytes for log in found.log_files),
    }


def _partition_row(
    partition_path: str, slices: list[FileSlice], row_counts: RowCounts, latest_instant: str
) -> dict[str, Any]:
    rows = [_slice_row(file_slice, row_counts) for file_slice in slices]
    counts = [row["base_rows"] for row in rows if row["base_file"] is not None]
    return {
        "partition_path": partition_path,
        "file_groups": len(slices),
        "base_rows": None if None in counts else sum(counts),
        "size_bytes": sum(file_slice.size_bytes for file_slice in slices),
        "log_files": sum(len(file_slice.log_files) for file_slice in slices),
        "latest_instant": latest_instant,
    }
