"""The metadata table: listings for readers, one delta commit for every commit of the data table.

docs/format/metadata.md §3. Everything in it can be rebuilt from the data files.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

import pyarrow as pa

from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.files.table_properties import read_table_config
from hoodie.format.hfile import HFileReader
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.metadata_table.metadata_record import ALL_PARTITIONS_KEY
from hoodie.format.table.table_config import TableConfig
from hoodie.metadata.delta_commit import FileGroupDelta, write_delta_commit
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.files_partition import (
    PARTITION,
    FileChanges,
    FileList,
    FilesPartition,
    apply_blocks,
    base_rows,
    deleted_keys_of,
    file_group_id,
    key_of,
    partition_path_of,
    rows_of,
    rows_to_columns,
)
from hoodie.metadata.kinds.partition_kind import PartitionKind, check_maintained
from hoodie.metadata.record_index import partition as record_index
from hoodie.metadata.record_index.partition import RecordIndexPartition
from hoodie.metadata.rollback import discard, roll_back
from hoodie.metadata.services.context import EngineFor, ServiceContext, local_engine
from hoodie.metadata.services.limits import ServiceLimits
from hoodie.metadata.services.run import run_services
from hoodie.metadata.slice_reader import SliceContent, SliceReader, believed
from hoodie.storage import Store
from hoodie.timeline import Action, InstantClock, Timeline

_KINDS: dict[str, PartitionKind] = {PARTITION: FilesPartition(), record_index.PARTITION: RecordIndexPartition()}
MAINTAINED = frozenset(_KINDS)
"""Names of the metadata partitions that commits keep up to date."""


class MetadataTable:
    """The metadata table of one data table of version 8 or 9. Thread-safe; commits need the table's lock besides.

    Files are parsed once per object: a call costs one listing of the metadata timeline, one of the partition's folder,
    and what is new since the last call.
    """

    def __init__(self, store: Store, config: TableConfig) -> None:
        self._folder = MetadataFolder(store, config)
        self._reader = SliceReader(store)
        self._base_rows: dict[str, FileList] = {}
        self._base: HFileReader | None = None
        self._lock = threading.RLock()

    @classmethod
    def open(cls, store: Store, config: TableConfig) -> MetadataTable | None:
        """Open the metadata table, or None if the table has none that may be believed (or is of version 6).

        Nothing is read yet.
        """
        if not (config.version.has_known_metadata_table and config.has_metadata_table):
            return None
        return cls(store, config)

    def listing(self, data_timeline: Timeline, partitions: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """Partition path (`""` if the table has none) -> file name -> size in bytes, committed files only.

        `data_timeline` is the whole active timeline of the data table, pending instants too. With `partitions` exactly
        these are returned, unknown ones empty.

        Raises:
            CorruptFileError: a file of the metadata table does not parse, or its partition `files` is gone.
        """
        with self._lock:
            content = self._files_slice(believed(self._folder.timeline(), data_timeline))
            if partitions is None:
                listed = self._rows(content, {ALL_PARTITIONS_KEY}).get(ALL_PARTITIONS_KEY, {})
                partitions = [partition_path_of(key) for key, size_bytes in listed.items() if size_bytes is not None]
            rows = self._rows(content, {key_of(path) for path in partitions})
        return {
            path: {name: size for name, size in rows.get(key_of(path), {}).items() if size is not None}
            for path in sorted(partitions)
        }

    def commit(
        self,
        instant_time: str,
        changes: FileChanges,
        *,
        written: Collection[WriteStat] = (),
        data_timeline: Timeline,
        clock: InstantClock,
        engine_for: EngineFor = local_engine,
    ) -> None:
        """Write the delta commit of a data instant, before that instant completes, under the table's lock.

        `written` are the log files of the record index that were written for it (`delta_commit.write_log`).
        Table services that are due run first, on the engine for so many bytes of work. What an earlier attempt at the
        same instant left behind is taken back.

        Raises:
            UnsupportedError: the metadata table has partitions that would go stale.
            CommitConflictError: another process writes the same instant, or removed the metadata table.
        """
        # Read anew, as another writer may have added partitions since this object was opened.
        config = read_table_config(self._folder.store)
        if not config.has_metadata_table:
            where = self._folder.store.uri("")
            raise CommitConflictError(f"{where}: the metadata table was removed while this write ran; write again")
        partitions = {*config.metadata_partitions, *config.metadata_partitions_inflight}
        check_maintained(partitions, MAINTAINED)
        timeline = self._folder.timeline()
        if timeline.get(instant_time, Action.DELTA_COMMIT) is not None:
            kept = {stat.path or "" for stat in written}
            self._folder.undo(instant_time, Action.DELTA_COMMIT, keep=kept)
            timeline = self._folder.timeline()
        timeline = run_services(
            ServiceContext(
                folder=self._folder,
                kinds={name: kind for name, kind in _KINDS.items() if name in partitions},
                clock=clock,
                data_timeline=data_timeline,
                metadata_timeline=timeline,
                limits=ServiceLimits.of(config.raw),
                engine_for=engine_for,
                unfinished=frozenset(config.metadata_partitions_inflight),
            )
        )
        keys, values = rows_to_columns(rows_of(changes))
        deleted = pa.array(deleted_keys_of(changes), pa.string())
        write_delta_commit(
            self._folder,
            instant_time,
            [FileGroupDelta(PARTITION, file_group_id(), keys, values, deleted)],
            written=written,
            clock=clock,
            data_timeline=data_timeline,
            metadata_timeline=timeline,
        )

    def rollback(self, target_instant: str, *, rollback_instant: str, clock: InstantClock) -> None:
        """Take back the delta commit of a data instant that is rolled back, under the table's lock.

        Of an instant that never got there, what its writer left of the record index goes. Safe to repeat after an
        interruption.

        Raises:
            UnsupportedError: the instant was compacted into a base file; the metadata table must be built anew.
        """
        roll_back(self._folder, target_instant, rollback_time=rollback_instant, clock=clock)

    def take_back(self, instant_time: str) -> None:
        """Take back what was told of a data instant that is still pending, under the table's lock: nobody believed it.

        Safe to repeat; of an instant that never got here nothing happens.
        """
        if self._folder.timeline().get(instant_time, Action.DELTA_COMMIT) is not None:
            self._folder.undo(instant_time, Action.DELTA_COMMIT)

    def discard(self, instant_time: str) -> None:
        """Delete log files of an instant that never reached the metadata table's timeline: no reader believed them."""
        discard(self._folder, instant_time)

    def _files_slice(self, timeline: Timeline) -> SliceContent:
        contents = self._reader.read(PARTITION, timeline)
        if len(contents) != 1:
            raise CorruptFileError(
                f"expected one file group, found {len(contents)}: drop the metadata table and build it anew",
                path=self._folder.store.uri(f".hoodie/metadata/{PARTITION}"),
            )
        return contents[0]

    def _rows(self, content: SliceContent, keys: Collection[str]) -> dict[str, FileList]:
        """Merged rows of these keys. Rows of the base file are decoded once, log blocks each time (there are few)."""
        if content.base is not self._base:
            # Another file, even if of the same name: a metadata table that was built anew begins with the same names.
            self._base_rows, self._base = {}, content.base
        missing = set(keys) - self._base_rows.keys()
        for key, record in base_rows(content, missing):
            self._base_rows[key] = dict(record.files)
        rows = {key: dict(self._base_rows[key]) for key in keys if key in self._base_rows}
        apply_blocks(rows, content.blocks, content, set(keys))
        return rows
