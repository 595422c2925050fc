"""Switch the record index on and off, drop it, and name the call that ends a pending build whose process died.

All engines use the metadata partitions that `hoodie.table.metadata.partitions` names. While a rebuild replaces the
index file groups, the property does not name the record index. In this time, and after a crash in it until the next
build, writers find records by reading the base files, which is slower and always correct.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hoodie.commit.pending import Completion
from hoodie.config import indexes, writes
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table import table_keys as keys
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig
from hoodie.index import GLOBAL_SIMPLE, PARTITIONED_RECORD, RECORD, partition_follows_columns, stored_index
from hoodie.index.record.building.plan import IndexBuild
from hoodie.index.record.file_groups import list_index_files
from hoodie.metadata.kinds.record_index import RecordIndexKind, is_partitioned_record_index
from hoodie.metadata.paths import INDEX_DEFINITIONS
from hoodie.metadata.table import MetadataTable
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.indexing.life import end_dead_builds, locked_to_build
from hoodie.view.slices import data_table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True)
class SwitchOn(Completion):
    """Complete a build: make its files the table's record index.

    `stats` are the write statistics of its files. The files of the index that it replaces are deleted. If the process
    dies in these steps, the next build resumes them.
    """

    build: IndexBuild
    stats: Sequence[WriteStat]

    def check(self, now: TableView) -> None:
        """Refuse to replace an index while a service of the metadata table is pending. Raises: CommitConflictError."""
        if RECORD_INDEX in now.config.metadata_partitions:
            MetadataTable(now.store, now.config).check_no_service_pending()

    def update_metadata_table(self, now: TableView) -> None:
        """Remove the old index, complete the build's delta commit, and name the index in the table's properties."""
        if RECORD_INDEX in now.config.metadata_partitions:
            # The other properties of the index stay stored: they still hold, and a process that resumes the build after
            # a crash reads them.
            named = ",".join(sorted({*now.config.metadata_partitions} - {RECORD_INDEX}))
            now.held_lock.ensure_held()
            update_table_config(now.store, {**index_properties(now.config), keys.METADATA_PARTITIONS: named})
        metadata_table = MetadataTable(now.store, now.config)
        metadata_table.commit_build(RecordIndexKind(), self.build.build_time, self.stats, data_table(now))
        now.held_lock.ensure_held()
        update_table_config(now.store, on_properties(now.config))

    def content(self, now: TableView) -> bytes:
        return self.build.metadata_to_bytes(now)


def on_properties(config: TableConfig) -> dict[str, str | None]:
    """Return the properties to store in a table with a record index."""
    named = {*config.metadata_partitions, RECORD_INDEX}
    found = {**index_properties(config), keys.METADATA_PARTITIONS: ",".join(sorted(named))}
    if config.index_definitions_path is None:
        found[keys.INDEX_DEFINITIONS_PATH] = INDEX_DEFINITIONS
    return found


def index_properties(config: TableConfig) -> dict[str, str | None]:
    """Return the properties that make writers use and maintain the index. Whether records move does not change.

    JVM writers drop an index that the properties do not enable. A stored index type is kept, except `GLOBAL_SIMPLE`: it
    has the same guarantees, and a table has this type after its record index was dropped.
    """
    moves = partition_follows_columns(config) and config.merge_rule.mode is not MergeMode.CUSTOM
    properties = RECORD.stored_properties(config.raw, moves_by_default=moves)
    stored = config.raw.get(indexes.INDEX_TYPE_KEY)
    if stored and stored_index(config) is not GLOBAL_SIMPLE:
        properties[indexes.INDEX_TYPE_KEY] = stored
    return {**properties}


def off_properties(config: TableConfig, *, is_partitioned: bool = False) -> dict[str, str | None]:
    """Return the properties to store when a table's record index, or partitioned record index, is dropped.

    After a record index, the index type becomes `GLOBAL_SIMPLE`. Keys are unique in the whole table, so later writes
    must look them up in the whole table: otherwise the row of a key in another partition would stay there. Whether
    records move does not change. Any other stored index type is kept. After a partitioned record index, keys are unique
    in each partition, as before.
    """
    named = {*config.metadata_partitions} - {RECORD_INDEX}
    building = {*config.metadata_partitions_inflight} - {RECORD_INDEX}
    changes: dict[str, str | None] = {
        keys.METADATA_PARTITIONS: ",".join(sorted(named)),
        keys.METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(building)),
        **{switch.key: None for kind in (RECORD, PARTITIONED_RECORD) for switch in kind.switches},
    }
    if is_partitioned_by_type(config):
        changes[indexes.INDEX_TYPE_KEY] = None
    elif not is_partitioned and _finds_by_record_index(config):
        changes |= GLOBAL_SIMPLE.stored_properties(config.raw)
        changes[writes.UPDATE_PARTITION_PATH.key] = str(RECORD.moves_records(config.raw)).lower()
        changes[indexes.RECORD_UPDATE_PARTITION_PATH.key] = None
    return changes


def is_partitioned_by_type(config: TableConfig) -> bool:
    """Return whether the stored index type is the partitioned record index."""
    return stored_index(config) is PARTITIONED_RECORD


def differing(config: TableConfig, wanted: Mapping[str, str | None]) -> Collection[str]:
    """Return the keys of the properties whose stored values differ from the wanted values."""
    return [key for key, value in wanted.items() if config.raw.get(key) != value]


def _finds_by_record_index(config: TableConfig) -> bool:
    if indexes.INDEX_TYPE_KEY not in config.raw:
        return RECORD_INDEX in config.metadata_partitions
    return stored_index(config) is RECORD


def drop_record_index(state: TableState) -> ServiceResult:
    """Drop the record index, and roll back a build whose process died. Safe to repeat after a crash.

    The index is removed from the table's properties first, then its files are deleted. Afterwards writers, including
    JVM writers, find records by the index `global_simple`, unless another index type was stored. So keys stay unique in
    the whole table.

    Raises: UnsupportedError if the JVM is building an index; CommitConflictError if a build is running.
    """
    times = PhaseTimes()
    with locked_to_build(state) as view, times.phase("drop"):
        notes = end_dead_builds(view, of_records=True)
        had_index, files = drop_in(view.refreshed())
    counts = {"files_deleted": files} if had_index or files else {}
    return ServiceResult(operation="drop record index", counts=counts, seconds=times.seconds(), notes=notes)


def drop_in(view: TableView) -> tuple[bool, int]:
    """Drop the record index under the lock of the view; return whether there was one, and the number of its files."""
    had_index = RECORD_INDEX in view.config.metadata_partitions
    files = len(list_index_files(view.store))
    if had_index or RECORD_INDEX in view.config.metadata_partitions_inflight:
        is_partitioned = is_partitioned_record_index(view.store)
        update_table_config(view.store, off_properties(view.config, is_partitioned=is_partitioned))
    view.held_lock.ensure_held()
    MetadataTable(view.store, view.config).drop_partitions({RECORD_INDEX})
    return had_index, files
