"""Give up files that are lost without a copy: one replace commit removes their file groups from the table.

`t.repair(accept_loss=[…])` and `hoodie repair TABLE --accept-loss FILE`. The commit has the form of an overwrite that
writes no rows, so that every Hudi reader leaves the file groups out. The metadata table still lists the lost files
until a clean: reads as of an earlier instant fail, instead of reading older rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.commit.writable import check_no_exclusive_service, check_version_written
from hoodie.commit.write_instant import WriteInstant, write_instant
from hoodie.display import counted
from hoodie.engine import TaskContext
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.filenames import LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.index import HBASE, stored_index
from hoodie.index.record import StagedEntries
from hoodie.index.record.entries import EntryWriter
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.look_up import LookUp, find
from hoodie.index.record.state import partitioned_index_if_there, record_index_if_there
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.slices import SliceReader
from hoodie.progress import PhaseTimes
from hoodie.services.results import ServiceResult
from hoodie.timeline import Action
from hoodie.view.pending_plans import groups_being_compacted
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

OPERATION: Final = "accept loss"
ACCEPTED_LOSS: Final = "hoodie.python.accepted.loss"
"""Extra metadata of the commit: the lost files, as a JSON list of paths."""
_BATCH_ROWS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Loss:
    """A lost base file, its file slice, and its rows as its commit recorded them; None if that is not known."""

    path: str
    file_slice: FileSlice
    rows: int | None

    @property
    def note(self) -> str:
        rows = "an unknown number of rows" if self.rows is None else counted(self.rows, "rows")
        logs = len(self.file_slice.log_files)
        more = f", and the changes in {counted(logs, 'log files')} of its file slice" if logs else ""
        return f"{self.path} had {rows}{more}"


def accept_loss(call: Call, files: Sequence[str], *, dry_run: bool) -> ServiceResult:
    """Give up lost base files of the newest file slices, in one commit; with `dry_run` only say what would be lost.

    `files` are paths relative to the table's folder, or whole paths or URIs. Memory: the keys of the lost files, and
    one file group of the record index.

    Raises:
        InvalidConfigError: a file exists, is not one that the newest rows need, or is outside of the table.
        UnsupportedError: a log file; a table with an HBase index; a table version that this release does not write.
        CommitConflictError: another writer changed one of the file groups, or a pending service is to change it.
    """
    times = PhaseTimes()
    view = TableView.load(call.state)
    check_version_written(view, "repair")
    check_no_exclusive_service(view)
    if stored_index(view.config) is HBASE:
        raise UnsupportedError(
            f"{view.store.uri('')}: the keys of a lost file cannot be removed from an HBase index; switch to another "
            'index first: t.index.drop("hbase")'
        )
    if not files:
        raise InvalidConfigError("accept_loss: expected at least one path of a lost file, found none")
    paths = [_relative(view, path) for path in dict.fromkeys(files)]
    losses = _losses(view, paths)
    known = [loss.rows for loss in losses if loss.rows is not None]
    counts = {"files_lost": len(losses), **({"rows_lost": sum(known)} if known else {})}
    notes = tuple(loss.note for loss in losses)
    if dry_run:
        return ServiceResult(operation=OPERATION, counts=counts, seconds=times.seconds(), dry_run=True, notes=notes)
    with times.phase("commit"):
        instant = _commit(call, paths)
    return ServiceResult(operation=OPERATION, instant=instant, counts=counts, seconds=times.seconds(), notes=notes)


def accepted_losses(commits: Iterable[CommitMetadata]) -> Iterator[str]:
    """Yield the paths of the files that commits gave up."""
    for commit in commits:
        try:
            found = json.loads((commit.extra_metadata or {}).get(ACCEPTED_LOSS) or "[]")
        except ValueError:
            continue
        yield from (path for path in found if isinstance(path, str)) if isinstance(found, list) else ()


def _relative(view: TableView, path: str) -> str:
    base = view.store.uri("")
    for prefix in (f"{base}/", f"{base.removeprefix('file://')}/"):
        path = path.removeprefix(prefix)
    return path


def _losses(view: TableView, paths: Sequence[str]) -> list[_Loss]:
    """Find the file slices of the paths. Raises: as `accept_loss`."""
    by_path = {path: found for found in list_slices(view) for path in found.paths}
    compacted = groups_being_compacted(view)
    losses = []
    for path in paths:
        where = f"accept_loss: {path!r} of {view.store.uri('')}"
        if path not in by_path:
            raise InvalidConfigError(
                f"{where}: expected a file that the newest rows need; t.verify() names those that are missing"
            )
        if view.store.head(path) is not None:
            raise InvalidConfigError(f"{where}: expected a lost file, but it exists; to give it up, move it away first")
        if isinstance(parse_data_file(name_of(path)), LogFileName):
            raise UnsupportedError(
                f"{where} is a log file: this release gives up base files only, as a log file has changes of rows that "
                "others have too; restore it from a copy, or give up the base file of its file slice by moving it away"
            )
        if (by_path[path].partition_path, by_path[path].file_id) in compacted:
            raise CommitConflictError(
                f"{where} is in a pending compaction; t.pending_compactions() names it, and t.rollback(instant) takes "
                "it back"
            )
        losses.append(_Loss(path, by_path[path], _recorded_rows(view, path)))
    return losses


def _recorded_rows(view: TableView, path: str) -> int | None:
    """Return the rows of a base file as its commit recorded them; the archive is read if that commit is there."""
    parsed = parse_data_file(name_of(path))
    assert parsed is not None, "the file is of a file slice"
    instant = view.timeline.writes().completed().get(parsed.instant_time)
    if instant is not None:
        commits = [view.commit_metadata(instant)]
    else:
        archived = [found for found in view.archive().find([parsed.instant_time]) if found.action.writes_data]
        commits = [commit for _, commit in view.archived_commits(archived)]
    return next((stat.num_writes for commit in commits for stat in commit.write_stats() if stat.path == path), None)


def _commit(call: Call, paths: Sequence[str]) -> str:
    """Commit the replacement of the file groups; the files are looked at once more after the write began."""
    plan = RequestedReplaceMetadata().to_bytes()
    with (
        stage_folder(call.state.store) as folder,
        write_instant(
            call.state,
            Action.REPLACE_COMMIT,
            WriteOperation.INSERT_OVERWRITE,
            plan,
            index=None,
            engine_for=call.engine_for,
            properties=call.properties,
        ) as write,
    ):
        slices = [loss.file_slice for loss in _losses(write.view, paths)]
        replaced: dict[str, list[str]] = {}
        for found in slices:
            replaced.setdefault(found.partition_path, []).append(found.file_id)
        write.index.note_locations(_staged_deletes(write, slices, folder))
        write.commit(
            (),
            schema=write.view.schema().avro,
            extra_metadata={**call.extra_metadata, ACCEPTED_LOSS: json.dumps(list(paths))},
            replaced=replaced,
        )
        return write.instant_time


def _staged_deletes(write: WriteInstant, slices: Sequence[FileSlice], folder: str) -> list[StagedEntries]:
    """Stage the deletion of the keys that the record index has in the file groups: the lost file cannot tell them."""
    stage = write.index.entry_stage(folder)
    if stage is None:
        return []
    writer = EntryWriter(write.view.store, stage, TaskContext(0, 0, 0))
    for partition_path, keys in _indexed_keys(write.view, {(found.partition_path, found.file_id) for found in slices}):
        writer.delete(keys, partition_path)
    staged = writer.close()
    return [] if staged is None else [staged]


def _indexed_keys(view: TableView, groups: set[tuple[str, str]]) -> Iterator[tuple[str, pa.StringArray]]:
    """Yield the keys that the record index has in these file groups, by partition path."""
    by_partition = partitioned_index_if_there(view)
    states: list[RecordIndexState | None] = [record_index_if_there(view)] if by_partition is None else []
    states += [found for path, found in (by_partition or {}).items() if path in {group[0] for group in groups}]
    reader = SliceReader(view.store)
    for bucket in (bucket for state in states if state is not None for bucket in state.file_groups):
        content = reader.read_once(bucket.file_slice)
        keys, _ = RecordIndexKind().compact(content, file_name="")
        for start in range(0, len(keys), _BATCH_ROWS):
            some = keys.slice(start, _BATCH_ROWS)
            found = find(content, some, look_up=LookUp.SEEK)
            for code, place in enumerate(found.locations):
                if (place.partition_path, place.file_id) in groups:
                    yield place.partition_path, some.filter(pa.array(np.asarray(found.codes) == code))
