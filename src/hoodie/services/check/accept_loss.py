"""Give up files that are lost or damaged without a copy: one replace commit removes their file groups from the table.

`t.repair(accept_loss=[…])` and `hoodie repair TABLE --accept-loss FILE`. The commit has the form of an overwrite, which
writes only rows that are left, so that every Hudi reader leaves the file groups out. The metadata table still lists the
lost files until a clean: reads as of an earlier instant fail, instead of reading older rows.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.commit.call import Call
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.commit.write_instant import WriteInstant, write_instant
from hoodie.display import command_text, counted
from hoodie.engine import TaskContext
from hoodie.errors import CommitConflictError, HoodieError, InvalidConfigError, UnsupportedError
from hoodie.files.base_file import open_base_file
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.filenames import LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import NULL_COMMIT, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.planned_replacement import ACCEPTED_LOSS, PlannedReplacement
from hoodie.format.table.call_options import effective_options
from hoodie.index import HBASE, index_of_view, stored_index
from hoodie.index.record.entries import EntryWriter, StagedEntries
from hoodie.index.record.file_groups import RecordIndexState
from hoodie.index.record.look_up import LookUp, find
from hoodie.index.record.state import partitioned_index_if_there, record_index_if_there
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.kinds.registry import parquet_options
from hoodie.metadata.slices import SliceReader
from hoodie.progress import PhaseTimes
from hoodie.records.change import RECORD_KEY
from hoodie.results import ServiceResult
from hoodie.services.check.completion import FILE_ID_HEAD
from hoodie.services.check.data_check import is_damaged
from hoodie.services.check.lost_history import LostHistory
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.compaction.task import CompactSlice
from hoodie.services.planned.executor import execute
from hoodie.timeline import Action
from hoodie.view.columns import whole_read
from hoodie.view.pending_plans import FileGroup, compactions_by_group
from hoodie.view.slices import data_table, list_slices
from hoodie.view.table_view import TableView

OPERATION: Final = "accept loss"
"""Extra metadata of the commit: the lost files, as a JSON list of paths."""
_BATCH_ROWS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Loss:
    """The lost files of one file slice.

    `kept`: the slice without them; None if its base file is lost, or nothing is left. Then all its missing files count
    as lost. `rows` and `changes`: of its lost base file, and of its lost log files, as their commits recorded them.
    `plan`: the pending compaction, or log compaction, that is to read the slice.
    """

    file_slice: FileSlice
    paths: tuple[str, ...]
    kept: FileSlice | None
    rows: int | None
    changes: int | None
    plan: str | None

    @property
    def note(self) -> str:
        """Say what the lost files had, and what else is given up."""
        rows = "" if self.rows is None else counted(self.rows, "rows")
        changes = "" if not self.changes else counted(self.changes, "changes of rows")
        had = " and ".join(filter(None, (rows, changes))) or "an unknown number of rows"
        left = 0 if self.kept is not None else len([*self.file_slice.paths]) - len(self.paths)
        more = f"; the changes in {counted(left, 'log files')} of the file slice are given up too" if left else ""
        return f"{', '.join(self.paths)} had {had}{more}"


def accept_loss(call: Call, files: Sequence[str], *, dry_run: bool) -> ServiceResult:
    """Give up lost or damaged files of the newest file slices, in one commit; with `dry_run` only say what is lost.

    A slice that lost its base file is given up. Of a slice that lost log files, the rows that its other files have are
    written to a new file group, and a change that only the lost log files had is gone: an update or a delete in them
    did not happen. A record that was stored in another file group after such a delete stays there alone. A pending
    compaction of the file groups is executed afterwards, without them; a note reports its failure. `files` are
    paths relative to the table's folder, or whole paths or URIs. A file of an instant that lost all its files on the
    timeline stands for all files of the instant, and a file or the folder of the archived timeline for its damaged
    files. An existing file is read to check that it is damaged. Memory: the keys of the file groups, one file group of
    the record index, and a merged file slice.

    Raises: as `Table.repair` with `accept_loss`; CorruptFileError if another file of the slice of a log file is lost or
        damaged too.
    """
    times = PhaseTimes()
    view = call.load()
    check_no_exclusive_service(view)
    if stored_index(view.config) is HBASE:
        raise UnsupportedError(
            f"{view.store.uri('')}: the keys of a lost file cannot be removed from an HBase index; switch to another "
            'index first: t.index.drop("hbase")'
        )
    if not files:
        raise InvalidConfigError("accept_loss: expected at least one path of a lost file, found none")
    paths = [_relative(view, path) for path in dict.fromkeys(files)]
    history = LostHistory.find(view, paths)
    paths = [path for path in paths if not history.names(path)]
    losses = _losses(view, paths) if paths else []
    given_up = {path for loss in losses for path in loss.paths}
    versions = [path for path in paths if path not in given_up]
    known = {
        "files_lost": len(given_up) + len(versions) + history.files(),
        "rows_lost": sum(loss.rows or 0 for loss in losses),
        "changes_lost": sum(loss.changes or 0 for loss in losses),
    }
    counts = {name: count for name, count in known.items() if count}
    notes = (
        *history.notes(view),
        *(loss.note for loss in losses),
        *(f"{path} is an older version: the newest rows do not need it" for path in versions),
    )
    plans = sorted({loss.plan for loss in losses if loss.plan is not None})
    if dry_run:
        notes += tuple(f"would execute the pending compaction {plan} without these file groups" for plan in plans)
        named = {f"FILE_{place}": path for place, path in enumerate(files)}
        given = " ".join(f"--accept-loss {word}" for word in named)
        command = command_text(f"hoodie repair TABLE {given} --execute", call.state.store.uri(""), **named)
        notes += (f"`{command}` (t.repair(dry_run=False, accept_loss=…)) does it",)
        return ServiceResult(operation=OPERATION, counts=counts, seconds=times.seconds(), dry_run=True, notes=notes)
    with times.phase("history"):
        history.give_up(call)
    with times.phase("commit"):
        instant = _commit(call, paths, losses) if paths else None
    with times.phase("compact"):
        notes += tuple(_compacted(call, plan) for plan in plans)
    return ServiceResult(operation=OPERATION, instant=instant, counts=counts, seconds=times.seconds(), notes=notes)


def _compacted(call: Call, plan: str) -> str:
    """Execute a pending compaction, which leaves out the file groups that were replaced; say what became of it."""
    try:
        execute(COMPACTION, call, plan)
    except (HoodieError, OSError) as error:
        # The loss is committed: an error here would look as if it were not.
        return f"the pending compaction {plan} of the same file groups failed, and stays pending: {error}"
    return f"the pending compaction {plan} was executed without these file groups"


def _relative(view: TableView, path: str) -> str:
    base = view.store.uri("")
    for prefix in (f"{base}/", f"{base.removeprefix('file://')}/"):
        path = path.removeprefix(prefix)
    return path


def _losses(view: TableView, paths: Sequence[str]) -> list[_Loss]:
    """Find the file slices of the paths; an older version has none. Raises: as `accept_loss`."""
    by_path = {path: found for found in list_slices(view) for path in found.paths}
    for path in paths:
        where = f"accept_loss: {path!r} of {view.store.uri('')}"
        if path not in by_path and _is_damaged_version(view, path):
            continue
        if path not in by_path:
            raise InvalidConfigError(
                f"{where}: expected a file that the newest rows need; t.verify() names those that are missing"
            )
        if view.store.head(path) is not None and not is_damaged(view, by_path[path], path):
            raise InvalidConfigError(
                f"{where}: expected a lost or damaged file, but it exists and every row of it can be read; to give it "
                "up, move it away first"
            )
    plans = compactions_by_group(view)
    slices = dict.fromkeys(by_path[path] for path in paths if path in by_path)
    return [_loss_of(view, found, paths, plans) for found in slices]


def _is_damaged_version(view: TableView, path: str) -> bool:
    """Return whether a file that the newest rows do not need has another length than its commit recorded."""
    info = view.store.head(path)
    if info is None or parse_data_file(name_of(path)) is None:
        return False
    lengths = {stat.file_size_bytes for stat in _stats_of(view, path)} - {0}
    return bool(lengths) and info.size_bytes not in lengths


def _loss_of(view: TableView, found: FileSlice, paths: Sequence[str], plans: Mapping[FileGroup, str]) -> _Loss:
    lost = tuple(path for path in found.paths if path in paths)
    logs = tuple(log for log in found.log_files if log.path not in lost)
    kept = None if found.base_file is not None and found.base_file.path in lost else replace(found, log_files=logs)
    if kept is None or not [*kept.paths]:
        kept = None
        lost = tuple(path for path in found.paths if path in paths or view.store.head(path) is None)
    numbers = {path: _recorded(view, path) for path in lost}
    base = None if found.base_file is None else numbers.pop(found.base_file.path, None)
    changes = [number for number in numbers.values() if number is not None]
    return _Loss(found, lost, kept, base, sum(changes) if changes else None, plans.get(found.group))


def _recorded(view: TableView, path: str) -> int | None:
    """Return the rows of a base file, or the changes in a log file, as commits recorded them; they may be archived."""
    numbers = [stat.num_writes + (stat.num_deletes if stat.is_log_append else 0) for stat in _stats_of(view, path)]
    return sum(numbers) if numbers else None


def _stats_of(view: TableView, path: str) -> Iterator[WriteStat]:
    return (stat for commit in _commits_of(view, path) for stat in commit.write_stats() if stat.path == path)


def _commits_of(view: TableView, path: str) -> Iterator[CommitMetadata]:
    """Yield the commit that wrote the file; of a log file that may be of version 6, all from its slice on."""
    parsed = parse_data_file(name_of(path))
    assert parsed is not None, "the file is of a file slice"
    if view.config.may_have_slice_logs and isinstance(parsed, LogFileName):
        since = [found for found in view.completed_writes() if found.requested_time >= parsed.instant_time]
        yield from map(view.commit_metadata, since)
        archived = [i for i in view.archived_writes() if i.requested_time >= parsed.instant_time]
    elif (instant := view.timeline.writes().completed().get(parsed.instant_time)) is not None:
        yield view.commit_metadata(instant)
        return
    else:
        archived = [found for found in view.archive().find([parsed.instant_time]) if found.action.writes_data]
    for _, commit in view.archived_commits(archived):
        yield commit


def _commit(call: Call, paths: Sequence[str], planned: Sequence[_Loss]) -> str:
    """Commit the replacement of the file groups; the files are looked at once more after the write began.

    Raises: CommitConflictError if other file groups than those of `planned` have the files.
    """
    groups = {loss.file_slice.group for loss in planned}
    plan = PlannedReplacement.of_groups(groups, _lost(paths, planned)).to_plan()
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
        losses = _losses(write.view, paths)
        if groups != {loss.file_slice.group for loss in losses}:
            raise CommitConflictError(
                f"another writer changed the file groups of {', '.join(paths)} meanwhile; nothing was committed, try "
                "again"
            )
        replaced: dict[str, list[str]] = {}
        for loss in losses:
            replaced.setdefault(loss.file_slice.partition_path, []).append(loss.file_slice.file_id)
        stats = [_written_anew(call, write, loss.kept, losses) for loss in losses if loss.kept is not None]
        write.index.note_locations(_staged_keys(write, [loss.file_slice for loss in losses], stats, folder))
        write.commit(
            stats,
            schema=write.view.schema().avro,
            extra_metadata={**call.extra_metadata, ACCEPTED_LOSS: json.dumps(_lost(paths, losses))},
            replaced=replaced,
        )
        return write.instant_time


def _lost(paths: Iterable[str], losses: Iterable[_Loss]) -> list[str]:
    return [*dict.fromkeys((*paths, *(path for loss in losses for path in loss.paths)))]


def _written_anew(call: Call, write: WriteInstant, kept: FileSlice, losses: Sequence[_Loss]) -> WriteStat:
    """Write the rows of a file slice to a new file group; rows keep their commit times.

    A row whose key another file group has is left out: the lost files deleted it before the record was stored there.
    The first characters of the file id stay: with a bucket index they are the number of the bucket.
    """
    view = write.view
    schema = view.schema().arrow
    task = CompactSlice(
        store=view.store.spec,
        read=whole_read(view),
        parquet=parquet_options(data_table(view), effective_options(view.config, call.properties), schema),
        instant_time=write.instant_time,
        number=0,
        without=_keys_elsewhere(view, kept, losses),
    )
    file_id = f"{kept.file_id[:FILE_ID_HEAD]}{str(uuid.uuid4())[FILE_ID_HEAD:]}-0"
    stat = task(replace(kept, file_id=file_id), TaskContext(0, 0, 0))
    return replace(
        stat, prev_commit=NULL_COMMIT, prev_base_file=None, num_inserts=0, num_update_writes=0, num_deletes=0
    )


def _staged_keys(
    write: WriteInstant, slices: Sequence[FileSlice], stats: Sequence[WriteStat], folder: str
) -> list[StagedEntries]:
    """Stage the deletion of the keys that the record index has in the file groups, and the keys of the new files."""
    stage = write.index.entry_stage(folder)
    if stage is None:
        return []
    store = write.view.store
    writer = EntryWriter(store, stage, TaskContext(0, 0, 0))
    groups = {found.group for found in slices}
    for keys, codes, places in _indexed(write.view, {path for path, _ in groups}):
        for code, place in enumerate(places):
            if place in groups:
                writer.delete(keys.filter(pa.array(codes == code)), place[0])
    for stat in stats:
        path, partition_path, file_id = str(stat.path), stat.partition_path or "", str(stat.file_id)
        file = BaseFile(partition_path, name_of(path), file_id, write.instant_time, stat.file_size_bytes)
        with open_base_file(store, file) as (parquet, _):
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[RECORD_KEY]):
                writer.put(batch.column(0).cast(pa.string()), partition_path, file_id)
    staged = writer.close()
    return [] if staged is None else [staged]


_Indexed = tuple[pa.StringArray, npt.NDArray[np.int64], list[tuple[str, str]]]
"""Keys, and the places of their file groups: `codes` are positions in the list of places."""


def _indexed(view: TableView, partition_paths: Collection[str]) -> Iterator[_Indexed]:
    """Yield the content of the record index; if it is divided by partition, its content of these partitions."""
    by_partition = partitioned_index_if_there(view)
    states: list[RecordIndexState | None] = [record_index_if_there(view)] if by_partition is None else []
    states += [found for path, found in (by_partition or {}).items() if path in partition_paths]
    reader = SliceReader(view.store, view.config.version)
    for bucket in (bucket for state in states if state is not None for bucket in state.file_groups):
        content = reader.read_once(bucket.file_slice)
        keys, _ = RecordIndexKind().compact(content, file_name="")
        for start in range(0, len(keys), _BATCH_ROWS):
            some = keys.slice(start, _BATCH_ROWS)
            found = find(content, some, look_up=LookUp.SEEK)
            yield some, np.asarray(found.codes), [(place.partition_path, place.file_id) for place in found.locations]


def _keys_elsewhere(view: TableView, kept: FileSlice, losses: Sequence[_Loss]) -> pa.Array:
    """Return the keys of a file slice that another file group has, where a key is unique in the table or partition.

    The record index has the place of each key, except keys whose last change was a delete. Without a record index, the
    keys of the other file slices are read. A key that only `losses` have comes back in the first of them that has it.
    """
    read = replace(view.slice_read(), columns=(RECORD_KEY,))
    mine = _distinct_keys(view, [kept], read, None)
    others = [loss.kept for loss in takewhile(lambda loss: loss.kept != kept, losses) if loss.kept is not None]
    own, elsewhere = [mine.slice(0, 0)], [mine.slice(0, 0)]
    if partitioned_index_if_there(view) is not None or record_index_if_there(view) is not None:
        here, gone = kept.group, {loss.file_slice.group for loss in losses if loss.kept is None}
        for keys, codes, places in _indexed(view, {kept.partition_path}):
            own.append(keys.filter(pa.array(np.array([*(place == here for place in places), False])[codes])))
            is_elsewhere = np.array([*(place != here and place not in gone for place in places), False])
            some = keys.filter(pa.array(is_elsewhere[codes]))
            elsewhere.append(some.filter(pc.is_in(some, value_set=mine)))
    else:
        lost = {loss.file_slice for loss in losses}
        others += [found for found in list_slices(view) if found not in lost]
    is_global = index_of_view(view).is_global
    others = [found for found in others if is_global or found.partition_path == kept.partition_path]
    found = _distinct_keys(view, others, read, mine)
    return pa.concat_arrays([*elsewhere, found.filter(pc.invert(pc.is_in(found, value_set=pa.concat_arrays(own))))])


def _distinct_keys(view: TableView, slices: Iterable[FileSlice], read: SliceRead, among: pa.Array | None) -> pa.Array:
    """Return the distinct record keys of file slices; `among`: only those of these keys."""
    found: list[pa.Array] = [pa.array([], pa.string())]
    for file_slice in slices:
        for rows in read_file_slice(view.store, file_slice, read):
            keys = rows[RECORD_KEY].cast(pa.string())
            found += (keys if among is None else keys.filter(pc.is_in(keys, value_set=among))).chunks
    return pc.unique(pa.concat_arrays(found))
