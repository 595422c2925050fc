"""Plan a read of change data: each commit of a time span, with the state of its file groups before and after it.

The images come from CDC log files that have both of them (`hoodie.table.cdc.enabled` with `DATA_BEFORE_AFTER`,
docs/format/table.md §4.8), else from the file slices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hoodie.errors import HistoryLostError, UnsupportedError, ViewOvertakenError
from hoodie.files.damage import check_length, damaged_file, expected_file
from hoodie.files.logs.log_scan import problem_of_blocks
from hoodie.files.slices import FileSlice
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.format.filenames import BaseFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.instants.write_stat import NULL_COMMIT, WriteStat
from hoodie.format.log.cdc_block import CdcMode
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.schema.table_schema import with_meta_fields, without_meta_fields
from hoodie.format.table.table_config import TableConfig
from hoodie.read.changes import BEGINNING, Columns, span_of, writes_of_span
from hoodie.read.chosen_columns import Path, chosen_columns, returned_schema
from hoodie.read.local import SliceScan
from hoodie.read.partition_pruning import PartitionPruning
from hoodie.read.plan import ScanPlan, check_formats, check_readable
from hoodie.read.times import When
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store
from hoodie.timeline import Instant
from hoodie.view.columns import stored_columns
from hoodie.view.slices import check_span, list_slices
from hoodie.view.still_there import check_still_there
from hoodie.view.table_view import TableView

if TYPE_CHECKING:
    from hoodie.records.condition import Condition

_IMAGES = ("before", "after")
_Group = tuple[str, str]


def _logged_groups(config: TableConfig, commit: CommitMetadata) -> tuple[dict[_Group, Mapping[str, int]], set[_Group]]:
    """Return the CDC log files of file groups, with their sizes, and which groups are new, as a commit recorded them.

    They are groups whose base file was rewritten and whose log has both images; the others are left out.
    """
    files, new = dict[_Group, Mapping[str, int]](), set[_Group]()
    if not config.is_cdc_enabled or config.cdc_logging_mode != CdcMode.DATA_BEFORE_AFTER:
        return files, new
    stats: dict[_Group, list[WriteStat]] = {}
    for stat in commit.write_stats():
        stats.setdefault(stat.group, []).append(stat)
    for group, found in stats.items():
        first = found[0]
        if len(found) > 1 or BaseFileName.parse(name_of(first.path or "")) is None:
            continue
        if first.cdc_stats:
            files[group] = first.cdc_stats
        elif first.prev_commit == NULL_COMMIT:
            new.add(group)
    return files, new


def logged_rows(store: Store, files: Mapping[str, int], images: list[pa.Field]) -> Iterator[pa.Table] | None:
    """Return the logged changes block by block, with the columns `op`, `before` and `after`.

    None if a block lacks an image, or its images do not have exactly the columns `images`: the log is older than the
    table's columns, or was written with another logging mode. Memory: the log files, and the rows of a block.

    Raises: MissingFileError; CorruptFileError for a log that is not whole.
    """
    blocks = [(path, block) for path, size in files.items() for block in _blocks(store, path, size)]
    if not all(_has_images(block, images) for _, block in blocks):
        return None
    return (read_data_block(block, path=store.uri(path), columns=("op", *_IMAGES)) for path, block in blocks)


def _blocks(store: Store, path: str, size_bytes: int) -> list[LogBlock]:
    with expected_file(store, path):
        data = store.read(path)
    check_length(store, path, listed_bytes=size_bytes, found_bytes=len(data))
    blocks = parse_log_blocks(data, path=store.uri(path))
    problem = problem_of_blocks(blocks)
    if problem or any(block.block_type is not BlockType.CDC_DATA for block in blocks):
        raise damaged_file(store, path, problem or "expected blocks of change data only")
    return blocks


def _has_images(block: LogBlock, images: list[pa.Field]) -> bool:
    stored = avro_to_arrow(block.headers[HeaderKey.SCHEMA])
    wanted = [(child.name, child.type) for child in images]
    return all(
        stored.get_field_index(name) >= 0 and [(child.name, child.type) for child in stored.field(name).type] == wanted
        for name in _IMAGES
    )


UNCHANGING: Final = frozenset(
    {
        WriteOperation.COMPACT,
        WriteOperation.LOG_COMPACT,
        WriteOperation.CLUSTER,
        WriteOperation.BUCKET_RESCALE,
        WriteOperation.INDEX,
        WriteOperation.ALTER_SCHEMA,
    }
)
"""Operations that move rows but change none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitScans:
    """How the file slices around one commit are read. Picklable.

    `before` reads all rows, `after` the rows that the commit wrote, `keys` all record keys after it. `logged` are the
    columns that the images of logged changes must have. `late`: how all columns of rows that keep their commit time are
    read, before and after the commit; None if no late row can change such a row: no slice has logs, or the merge rule
    has no ordering columns.
    """

    instant_time: str
    before: SliceScan
    after: SliceScan
    keys: SliceScan
    logged: pa.Schema
    late: tuple[SliceScan, SliceScan] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """A file group that a commit changed: its slice before the commit (None: new), and after it (None: replaced).

    `logged` are CDC log files with their sizes, which have all changes. `lost` is then the reason why `before` is not
    there, None if it is there.
    """

    scans: CommitScans
    before: FileSlice | None
    after: FileSlice | None
    logged: Mapping[str, int] = field(default_factory=dict)
    lost: HistoryLostError | None = None

    @property
    def partition_path(self) -> str:
        """The partition of the file group."""
        return next(found.partition_path for found in (self.before, self.after) if found is not None)

    @property
    def size_bytes(self) -> int:
        """Bytes of the files to read."""
        if self.logged:
            return sum(self.logged.values())
        return sum(found.size_bytes for found in (self.before, self.after) if found is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcPlan:
    """A planned read of change data; `schema` are the columns of the images to return, without meta columns.

    `read` are the columns of the images to read, with those that `where` needs; `paths` are the fields of them to
    return. `where` chooses the changes whose image before or after matches. `changes` are in the order in which the
    commits completed.
    """

    view: TableView
    schema: pa.Schema
    read: pa.Schema
    paths: tuple[Path, ...]
    where: Condition | None
    changes: tuple[GroupChange, ...]

    @property
    def all_read(self) -> CdcPlan:
        """The same plan without a filter, with all columns that it reads."""
        paths = tuple((name,) for name in self.read.names)
        return replace(self, schema=self.read, paths=paths, where=None)

    @property
    def returns_what_it_reads(self) -> bool:
        """Whether the changes that are read need no filter and no choice of columns."""
        return self.where is None and self.schema.equals(self.read)


def plan_cdc(
    view: TableView,
    since: When | None,
    until: When | None,
    *,
    columns: Columns = None,
    where: Condition | None = None,
) -> CdcPlan:
    """Plan a read of the changes of the commits that completed in `(since, until]`; times as for `plan_batch`.

    `columns` and `where` are about the images, which have no meta columns. Partitions in which neither image can match
    are left out.

    Driver work: for each commit two listings of the partitions that it wrote.

    Raises: UnsupportedError for a table without meta fields, and for a pending write before the end of the span in a
        table of version 6; HistoryLostError if a clean deleted files of the state after a commit, or before a commit
        that did not log its changes, or a restore took a commit back; ViewOvertakenError if the read must be planned
        again; InvalidConfigError for a span that ends before it begins; CorruptFileError; SchemaMismatchError for
        unknown columns.
    """
    check_readable(view, by_meta_columns=True)
    start, end = span_of(view, since, until)
    at_end = view if end is None else view.as_completed_by(end)
    schema = with_meta_fields(at_end.schema().arrow)
    images = without_meta_fields(schema)
    names, paths = chosen_columns(images, columns)
    needed = {*names, *(() if where is None else _compared(where, images))}
    read = pa.schema([child for child in images if child.name in needed])
    # Past states have no ids of names that columns got later.
    stored = stored_columns(at_end, schema)
    changes: list[GroupChange] = []
    start = start or BEGINNING
    before = None if start == BEGINNING else view.as_completed_by(start)
    for instant, commit in _commits(view, at_end, start, end):
        after = view.as_completed_by(view.order_time(instant))
        if commit.operation_type not in UNCHANGING:
            changes += _of_commit(schema, stored, read.names, instant, commit, before, after)
        before = after
    check_still_there(view)
    check_span(at_end, start)
    paths = paths or tuple((name,) for name in names)
    return CdcPlan(
        view=at_end,
        schema=returned_schema(images, names, paths),
        read=read,
        paths=paths,
        where=where,
        changes=tuple(changes if where is None else _that_can_match(changes, at_end, start, where, images)),
    )


def _compared(where: Condition, images: pa.Schema) -> Collection[str]:
    """Return the columns that decide about a change; all columns if only Spark can evaluate the condition."""
    try:
        return where.columns(images)
    except UnsupportedError:
        return list(images.names)


def _that_can_match(
    changes: Sequence[GroupChange], view: TableView, start: str, where: Condition, images: pa.Schema
) -> Sequence[GroupChange]:
    # All states since `start` must obey the index, not only the state at the end.
    pruning = PartitionPruning.of(view, where, images, as_of=start)
    if pruning is None:
        return changes
    kept = pruning.keep({change.partition_path for change in changes})
    return [change for change in changes if change.partition_path in kept]


def _commits(
    view: TableView, at_end: TableView, start: str, end: str | None
) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield the completed writes of the span with their metadata, in the order of their completion."""
    archived, active = writes_of_span(view, at_end, start, end)
    commits = dict(view.archived_commits(archived))
    for instant in sorted([*archived, *active], key=view.order_time):
        yield instant, commits.get(instant) or view.commit_metadata(instant)


def _of_commit(
    schema: pa.Schema,
    stored: StoredColumns,
    names: Sequence[str],
    instant: Instant,
    commit: CommitMetadata,
    before_view: TableView | None,
    after_view: TableView,
) -> Iterator[GroupChange]:
    """Yield the changed file groups of one commit; the views are the states before it (None: no rows) and after it.

    `names` are the columns of the images to read; `stored` is how files differ from `schema`.
    """
    written = {stat.group for stat in commit.write_stats()}
    gone = commit.replaced_groups()
    partitions = {path for path, _ in written | gone}
    # A log compares names of columns with the table's, not their ids.
    has_names = not stored.names_at(instant.requested_time)
    logged, new_groups = _logged_groups(after_view.config, commit) if has_names else ({}, set())
    before: dict[tuple[str, str], FileSlice] = {}
    lost: HistoryLostError | None = None
    try:
        before = {} if before_view is None else _slices(before_view, partitions)
    except ViewOvertakenError:
        raise
    except HistoryLostError as error:
        if not (written | gone) <= {*logged, *new_groups}:
            raise
        lost = error
    after = _slices(after_view, partitions)
    old = _scan_plan(before_view or after_view, schema, stored, names, before)
    new = _scan_plan(after_view, schema, stored, names, after)
    scans = CommitScans(
        instant_time=instant.requested_time,
        before=SliceScan.of(old),
        after=SliceScan.of(replace(new, instants=frozenset({instant.requested_time}))),
        keys=SliceScan.of(replace(new, columns=(RECORD_KEY,))),
        logged=without_meta_fields(schema),
        late=_late_scans(schema, old, new),
    )
    for group in sorted(written | gone):
        files = {} if group in gone or after.get(group) is None else logged.get(group, {})
        change = GroupChange(
            scans=scans,
            before=before.get(group),
            after=after.get(group),
            logged=files,
            lost=lost if files else None,
        )
        if change.before is not None or change.after is not None:
            yield change


def _late_scans(schema: pa.Schema, old: ScanPlan, new: ScanPlan) -> tuple[SliceScan, SliceScan] | None:
    columns = (RECORD_KEY, *without_meta_fields(schema).names)
    after = SliceScan.of(replace(new, columns=columns))
    if after.merge is None or not after.merge.merger.logged_ordering:
        return None
    return SliceScan.of(replace(old, columns=columns)), after


def _slices(view: TableView, partitions: set[str]) -> dict[tuple[str, str], FileSlice]:
    found = list_slices(view, partitions)
    check_formats(view, found)
    return {one.group: one for one in found}


def _scan_plan(
    view: TableView,
    schema: pa.Schema,
    stored: StoredColumns,
    names: Sequence[str],
    slices: dict[tuple[str, str], FileSlice],
) -> ScanPlan:
    return ScanPlan(
        view=view,
        schema=schema,
        slices=tuple(slices.values()),
        columns=(RECORD_KEY, *names),
        where=None,
        stored=stored,
    )
