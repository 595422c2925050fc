"""Commits without a writer, for tests of the metadata table: one more base file with copied rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.files.table_properties import read_table_config, update_table_config
from hoodie.format.filenames import BaseFileName
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.format.table import table_keys as keys
from hoodie.format.table.table_config import TableConfig, TableType, TimelineZone
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.table import MetadataTable
from hoodie.storage import LocalStore, Store
from hoodie.timeline import (
    Action,
    ArchivedTimeline,
    ArchiveReader,
    Instant,
    InstantClock,
    Layout,
    State,
    Timeline,
    TimelineArchive,
    create_completed,
    create_inflight,
    create_requested,
    delete_instant_files,
    layout_for,
    load_timeline,
    read_instant,
)
from hoodie.view.listing import list_from_storage

PARTITIONS = ("city=nyc", "city=sf")
_COLUMNS_TO_CHANGE = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_file_name", "uuid")


@dataclass(frozen=True)
class FakeTable:
    """A copy of a golden table (partitioned by `city`, key `uuid`) that gets fake commits."""

    store: Store
    clock: InstantClock

    @classmethod
    def open(cls, path: Path) -> FakeTable:
        """Open the table in a folder."""
        return cls(LocalStore(str(path)), InstantClock(TimelineZone.LOCAL))

    def over(self, store: Store) -> FakeTable:
        """The same table through another store."""
        return replace(self, store=store)

    @property
    def config(self) -> TableConfig:
        """hoodie.properties, read anew."""
        return read_table_config(self.store)

    @property
    def layout(self) -> Layout:
        """Layout of the data timeline."""
        config = self.config
        return layout_for(config.version, config.timeline_path, zone=config.timezone)

    @property
    def timeline(self) -> Timeline:
        """The data timeline, read anew."""
        return load_timeline(self.store, self.layout)

    @property
    def locked(self) -> DataTable:
        """The table as a writer with its lock finds it."""
        return DataTable(
            store=self.store,
            config=self.config,
            timeline=self.timeline,
            clock=self.clock,
            create_last=self.store.replace,
            ensure_held=lambda: None,
            columns=lambda: pa.schema([]),
            has_archived_instants=lambda: False,
            list_files=self.storage_listing,
            slices=lambda _: [],
        )

    @property
    def action(self) -> Action:
        """What writes are called in this table."""
        is_cow = self.config.table_type is TableType.COPY_ON_WRITE
        return Action.COMMIT if is_cow else Action.DELTA_COMMIT

    def metadata_table(self) -> MetadataTable:
        """Open the metadata table, with nothing cached."""
        found = MetadataTable.open(self.store, self.config)
        assert found is not None
        return found

    @property
    def metadata_folder(self) -> MetadataFolder:
        """The folder of the metadata table."""
        return MetadataFolder(self.store, self.config)

    @property
    def metadata_timeline(self) -> Timeline:
        """The timeline of the metadata table, read anew."""
        return self.metadata_folder.timeline()

    def metadata_content(self, instant: Instant, state: State | None = None) -> bytes:
        """The content of a file of an instant of the metadata table."""
        return read_instant(self.store, self.metadata_folder.layout, instant, state)

    def change(self, metadata_table: MetadataTable, changes: MetadataChanges) -> str:
        """A delta commit whose data instant the timeline does not know: it is visible at once."""
        instant_time = self.clock.next_time(self.timeline)
        metadata_table.commit(instant_time, changes, self.locked)
        return instant_time

    def storage_listing(self) -> dict[str, dict[str, int]]:
        """What the metadata table must say."""
        return list_from_storage(self.store, self.config, self.timeline, no_archive(self.store))

    def drop_metadata_table(self) -> None:
        """Delete the metadata table, as if the table had never had one."""
        partitions = {*self.config.metadata_partitions, "files"}
        update_table_config(self.store, {keys.METADATA_PARTITIONS: None})
        MetadataTable(self.store, self.config).drop_partitions(partitions)

    def rebuild_metadata_table(self) -> MetadataTable:
        """Drop the metadata table that the JVM made, and build our own."""
        self.drop_metadata_table()
        MetadataTable.create(self.locked)
        update_table_config(self.store, {keys.METADATA_PARTITIONS: "files"})
        return self.metadata_table()

    def begin(self) -> str:
        """Request a write and put it in flight; gives its instant time."""
        instant_time = self.clock.next_time(self.timeline)
        create_requested(self.store, self.layout, instant_time, self.action)
        create_inflight(self.store, self.layout, instant_time, self.action)
        return instant_time

    def add_file(self, instant_time: str, partition: str, *, rows: int = 3) -> WriteStat:
        """Write a base file with copies of the partition's rows under new keys."""
        listed = self.store.list(partition)
        source = next(info.path for info in listed if info.name.endswith(".parquet"))
        with self.store.open_input(source) as stream:
            table = pq.read_table(stream).slice(0, rows)
        file_id = f"00000000-0000-0000-0000-{instant_time[-12:]}-0"
        name = BaseFileName(file_id, "0-1-0", instant_time).name
        new_keys = [f"{instant_time}-{row}" for row in range(table.num_rows)]
        values = ([instant_time] * table.num_rows, new_keys, [name] * table.num_rows, new_keys)
        for column, cells in zip(_COLUMNS_TO_CHANGE, values, strict=True):
            place = table.schema.get_field_index(column)
            field = table.schema.field(place)
            table = table.set_column(place, field, pa.array(cells, field.type))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        data = sink.getvalue().to_pybytes()
        self.store.create(f"{partition}/{name}", data)
        return WriteStat(
            file_id=file_id,
            path=f"{partition}/{name}",
            num_writes=table.num_rows,
            num_inserts=table.num_rows,
            total_write_bytes=len(data),
            file_size_bytes=len(data),
            partition_path=partition,
        )

    def tell_metadata_table(self, metadata_table: MetadataTable, instant_time: str, stat: WriteStat) -> None:
        """Write the metadata table's delta commit."""
        name = (stat.path or "").rpartition("/")[2]
        changes = MetadataChanges(files_added={stat.partition_path or "": {name: stat.file_size_bytes}})
        metadata_table.commit(instant_time, changes, self.locked)

    def complete(self, instant_time: str, stat: WriteStat) -> None:
        """Complete the write."""
        timeline = self.timeline
        writes = timeline.writes().completed().instants
        schema = CommitMetadata.parse(read_instant(self.store, self.layout, writes[-1])).extra_metadata["schema"]
        metadata = CommitMetadata(
            partition_to_write_stats={stat.partition_path or "": (stat,)},
            operation_type=WriteOperation.INSERT.value,
            extra_metadata={"schema": schema},
        )
        create_completed(
            self.store,
            self.layout,
            instant_time,
            self.action,
            metadata.to_bytes(self.config.version),
            completion_time=self.clock.next_time(timeline),
        )

    def commit(self, metadata_table: MetadataTable, partition: str = PARTITIONS[0], *, rows: int = 3) -> str:
        """One whole commit of one file."""
        instant_time = self.begin()
        stat = self.add_file(instant_time, partition, rows=rows)
        self.tell_metadata_table(metadata_table, instant_time, stat)
        self.complete(instant_time, stat)
        return instant_time

    def roll_back_data(self, instant_time: str) -> None:
        """Take a pending write out of the data table; its files go."""
        for partition in PARTITIONS:
            for info in self.store.list(partition):
                if f"_{instant_time}." in info.name:
                    self.store.delete(info.path)
        delete_instant_files(self.store, self.layout, instant_time, self.action, State.INFLIGHT, State.REQUESTED)


def no_archive(store: Store) -> ArchivedTimeline:
    """The archived timeline of a table that has none."""
    return ArchiveReader(TimelineArchive(store, "no-archive"))
