"""Procedures that describe the properties, the file slices and the files of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import InvalidConfigError
from hoodie.files.slices import FileSlice, join_path, slice_histories
from hoodie.format.filenames import instant_of_data_file, name_of
from hoodie.format.instants.service_metadata import CleanMetadata, RestoreMetadata, RollbackMetadata
from hoodie.statements.procedures.procedure import FILTER, TABLE, Call, Row, optional, procedure, required, unsupported
from hoodie.statements.procedures.timeline import active_contents, archived_contents
from hoodie.storage import FileInfo, Store, open_store
from hoodie.timeline import Action
from hoodie.view.listing import list_files, with_archived_between
from hoodie.view.slices import with_archived_logs
from hoodie.view.table_view import TableView

_ALL: Final = "ALL"
_EVERYWHERE: Final = "ALL_PARTITIONS"
_UNIT: Final = 1024
_UNITS: Final = ("B", "KB", "MB", "GB", "TB")
_SLICE: Final = (
    "partition string, file_id string, base_instant string, data_file string, data_file_size long, "
    "num_delta_files long, total_delta_file_size long"
)
_VIEW: Final = (
    *TABLE,
    optional("max_instant", ""),
    optional("include_max", False),
    unsupported("include_in_flight", bool, False),
    unsupported("exclude_compaction", bool, False),
    optional("limit", 10),
    optional("path_regex", _EVERYWHERE),
    FILTER,
)


def _histories(call: Call, view: TableView, pattern: str) -> Iterator[tuple[FileSlice, ...]]:
    """Yield the file groups of the partitions that match a pattern, as of `max_instant`, with all their slices."""
    newest, has_newest = call["max_instant"], call["include_max"]
    listing = list_files(view)
    times = {instant_of_data_file(name) or "" for names in listing.values() for name in names}
    timeline = with_archived_between(view, with_archived_logs(view, listing), times)
    replaced = view.replaced_file_ids()
    for path, names in sorted(listing.items()):
        if pattern != _EVERYWHERE and not fnmatchcase(path, pattern):
            continue
        seen = {name: size for name, size in names.items() if _is_before(name, newest, inclusive=has_newest)}
        for slices in slice_histories(path, seen, timeline, version=view.config.version):
            if slices[0].file_id not in replaced.get(path, ()):
                yield slices


def _is_before(name: str, newest: str, *, inclusive: bool) -> bool:
    time = instant_of_data_file(name) or ""
    return not newest or time < newest or (inclusive and time == newest)


def _slice(view: TableView, found: FileSlice) -> dict[str, Any]:
    base = found.base_file
    return {
        "partition": found.partition_path,
        "file_id": found.file_id,
        "base_instant": found.base_instant_time,
        "data_file": "" if base is None else view.store.uri(base.path),
        "data_file_size": 0 if base is None else base.size_bytes,
        "num_delta_files": len(found.log_files),
        "total_delta_file_size": sum(log.size_bytes for log in found.log_files),
    }


def _listed(paths: Iterable[str]) -> str:
    return f"[{', '.join(paths)}]"


@procedure(parameters=_VIEW, columns=f"{_SLICE}, delta_files string")
def show_fsview_all(call: Call) -> Iterable[Row]:
    """List all file slices of the file groups; path_regex is a pattern of partition paths with wildcards."""
    view = call.table.view()
    return call.limited(
        {**_slice(view, found), "delta_files": _listed(view.store.uri(log.path) for log in found.log_files)}
        for slices in _histories(call, view, call["path_regex"])
        for found in slices
    )


@procedure(
    parameters=(*_VIEW, optional("partition_path", _EVERYWHERE), optional("merge", True)),
    columns=f"{_SLICE}, delta_size_compaction_scheduled long, delta_size_compaction_unscheduled long, "
    "delta_to_base_radio_compaction_scheduled double, delta_to_base_radio_compaction_unscheduled double, "
    "delta_files_compaction_scheduled string, delta_files_compaction_unscheduled string",
)
def show_fsview_latest(call: Call) -> Iterable[Row]:
    """List the latest file slice of each file group; path_regex as for show_fsview_all."""
    view = call.table.view()
    patterns = [text for text in (call["path_regex"], call["partition_path"]) if text != _EVERYWHERE]
    if len(patterns) > 1:
        raise InvalidConfigError("CALL show_fsview_latest: expected one of path_regex and partition_path, found both")
    (pattern,) = patterns or [_EVERYWHERE]
    return call.limited(_latest(view, slices[0]) for slices in _histories(call, view, pattern))


def _latest(view: TableView, found: FileSlice) -> Row:
    row = _slice(view, found)
    base_bytes, log_bytes = row["data_file_size"], row["total_delta_file_size"]
    logs = {log.path: log.name.instant_time == found.base_instant_time for log in found.log_files}
    # In Hudi, log files of completed commits are those of the next compaction, and the lists are by their instants.
    return {
        **row,
        "delta_size_compaction_scheduled": log_bytes,
        "delta_size_compaction_unscheduled": 0,
        "delta_to_base_radio_compaction_scheduled": log_bytes / base_bytes if base_bytes else -1.0,
        "delta_to_base_radio_compaction_unscheduled": 0.0 if base_bytes else -1.0,
        "delta_files_compaction_scheduled": _listed(view.store.uri(path) for path, same in logs.items() if same),
        "delta_files_compaction_unscheduled": _listed(view.store.uri(path) for path, same in logs.items() if not same),
    }


@procedure(parameters=(*TABLE, optional("limit", 10), FILTER), columns="key string, value string")
def show_table_properties(call: Call) -> Iterable[Row]:
    """List the properties of the table."""
    raw = call.table.view().config.raw
    return call.limited({"key": name, "value": raw[name]} for name in sorted(raw))


@procedure(
    parameters=(required("table"), optional("partition_path", ""), optional("limit", 10)),
    columns="commit_time string, min long, 10th double, 50th double, avg double, 95th double, max long, "
    "num_files integer, std_dev double",
)
def stats_file_sizes(call: Call) -> Iterable[Row]:
    """Sum up the data files of each instant, and all data files; partition_path may have wildcards."""
    files = call.table.inspect.files()
    wanted = call["partition_path"]
    by_instant: dict[str, list[int]] = {}
    found = (files[name].to_pylist() for name in ("partition_path", "instant", "size_bytes"))
    for partition_path, instant, size_bytes in zip(*found, strict=True):
        if not wanted or fnmatchcase(partition_path, wanted):
            by_instant.setdefault(instant, []).append(size_bytes)
    for instant, sizes in sorted(by_instant.items(), reverse=True)[: call["limit"]]:
        yield _sizes(instant, sizes)
    yield _sizes(_ALL, [size for sizes in by_instant.values() for size in sizes])


def _sizes(instant: str, found: list[int]) -> Mapping[str, Any]:
    if not found:
        return {"commit_time": instant, "num_files": 0}
    sizes = np.asarray(found, np.int64)
    # The JVM's histogram places a quantile q at q * (n + 1).
    tenth, half, most = np.quantile(sizes, [0.1, 0.5, 0.95], method="weibull")
    return {
        "commit_time": instant,
        "min": int(sizes.min()),
        "10th": float(tenth),
        "50th": float(half),
        "avg": float(sizes.mean()),
        "95th": float(most),
        "max": int(sizes.max()),
        "num_files": len(found),
        "std_dev": float(sizes.std(ddof=1)) if len(found) > 1 else 0.0,
    }


@procedure(
    parameters=(
        required("path"),
        unsupported("parallelism", int, 100),
        optional("limit", 100),
        unsupported("needDelete", bool, False),
        optional("partitions", ""),
        optional("instants", ""),
        FILTER,
    ),
    columns="path string",
)
def show_invalid_parquet(call: Call) -> Iterable[Row]:
    """List the Parquet files of the table at a path that have no valid footer."""
    store = call.table.view().store
    partitions, instants = call.names_in("partitions"), call.names_in("instants")
    found = (
        info.path
        for info in store.list("", recursive=True)
        if info.path.endswith(".parquet")
        and not info.path.startswith(".hoodie/")
        and (not partitions or info.path.rpartition("/")[0] in partitions)
        and (not instants or instant_of_data_file(info.path) in instants)
    )
    return call.limited({"path": store.uri(path)} for path in found if not _has_footer(store, path))


def _has_footer(store: Store, path: str) -> bool:
    with store.open_input(path) as source:
        try:
            pq.read_metadata(source)
        except pa.ArrowInvalid:
            return False
    return True


@procedure(
    parameters=(
        required("path"),
        optional("is_sub", False),
        optional("sort", True),
        optional("limit", 100),
        FILTER,
    ),
    columns="path_num long, file_num long, storage_size long, storage_size(unit) string, storage_path string, "
    "space_consumed long, quota long, space_quota long",
)
def show_fs_path_detail(call: Call) -> Iterable[Row]:
    """Count the folders, files and bytes below a path; is_sub: below each entry of it."""
    store = open_store(call["path"], call.names.storage_options)
    infos = store.list("", recursive=True)
    tops = sorted({info.path.partition("/")[0] for info in infos}) if call["is_sub"] else [""]
    rows = [_below(store, top, [info for info in infos if _is_below(info.path, top)]) for top in tops]
    if call["sort"]:
        rows.sort(key=lambda row: row["storage_size"], reverse=True)
    return call.limited(rows)


def _is_below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def _below(store: Store, top: str, infos: Sequence[FileInfo]) -> dict[str, Any]:
    size_bytes = sum(info.size_bytes for info in infos)
    folders = {folder for info in infos for folder in _folders(info.path)}
    # Hudi has the bytes in the column of the quota too; without a quota the others are -1.
    return {
        "path_num": sum(_is_below(folder, top) for folder in folders),
        "file_num": len(infos),
        "storage_size": size_bytes,
        "storage_size(unit)": _in_units(size_bytes),
        "storage_path": store.uri(top).rstrip("/"),
        "space_consumed": -1,
        "quota": size_bytes,
        "space_quota": -1,
    }


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that hold a file; the empty text is the outermost."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(len(parts)))


def _in_units(size_bytes: int) -> str:
    size, units = float(size_bytes), iter(_UNITS)
    unit = next(units)
    while size >= _UNIT and unit != _UNITS[-1]:
        size, unit = size / _UNIT, next(units)
    return f"{size:.2f}{unit}"


@procedure(
    parameters=(*TABLE, optional("partition"), required("file"), FILTER),
    columns="status string, action string, instant string, timeline string, full_path string",
)
def show_file_status(call: Call) -> Iterable[Row]:
    """Return whether a data file is there, or which clean, rollback or restore deleted it."""
    view, partition, name = call.table.view(), call["partition"] or "", call["file"]
    if view.config.partition_fields and not partition:
        raise InvalidConfigError("CALL show_file_status: the table has partitions: expected partition => '…'")
    gone = next((row for row, names in _deletions(view) if name in map(name_of, names)), None)
    if gone is not None:
        return [{"status": "deleted", **gone, "full_path": ""}]
    path = join_path(partition, name)
    if view.store.head(path) is None:
        return [{"status": "unknown", **_status("", "", "")}]
    return [{"status": "exist", **_status("", "", "active"), "full_path": view.store.uri(path)}]


def _status(action: str, instant: str, timeline: str) -> dict[str, str]:
    return {"action": action, "instant": instant, "timeline": timeline, "full_path": ""}


def _deletions(view: TableView) -> Iterator[tuple[dict[str, str], Iterable[str]]]:
    """Yield the names of deleted files with what deleted them: cleans, rollbacks, restores, each newest first."""
    for action, names_of in ((Action.CLEAN, _cleaned), (Action.ROLLBACK, _rolled_back), (Action.RESTORE, _restored)):
        for contents, timeline in ((active_contents, "active"), (archived_contents, "archived")):
            for instant, content in contents(view, action):
                yield _status(action.value, instant.requested_time, timeline), names_of(content, str(instant))


def _cleaned(content: bytes, where: str) -> list[str]:
    parts = CleanMetadata.parse(content, path=where).partition_metadata.values()
    return [name for part in parts for name in part.success_delete_files]


def _rolled_back(content: bytes, where: str) -> list[str]:
    return list(_files_of(RollbackMetadata.parse(content, path=where)))


def _restored(content: bytes, where: str) -> list[str]:
    restored = RestoreMetadata.parse(content, path=where).hoodie_restore_metadata.values()
    return [name for rollbacks in restored for rollback in rollbacks for name in _files_of(rollback)]


def _files_of(found: RollbackMetadata) -> Iterator[str]:
    for part in found.partition_metadata.values():
        yield from part.success_delete_files
