"""The record index (RFC-08): the location of every key, in file groups of HFiles, committed with the data."""

from hoodie.index.record.entries import (
    EntryStage,
    EntryWriter,
    StagedEntries,
    WrittenEntries,
    write_entries,
    write_partitioned_entries,
)
from hoodie.index.record.index import RecordIndex
from hoodie.index.record.look_up import FoundLocations, look_up
from hoodie.index.record.partitioned import PartitionedRecordIndex

__all__ = [
    "EntryStage",
    "EntryWriter",
    "FoundLocations",
    "PartitionedRecordIndex",
    "RecordIndex",
    "StagedEntries",
    "WrittenEntries",
    "look_up",
    "write_entries",
    "write_partitioned_entries",
]
