"""The record-level index (RFC-08): every key's location, in buckets of HFiles, committed with the data."""

from hoodie.index.record.entries import EntryStage, EntryWriter, StagedEntries, WrittenEntries, write_entries
from hoodie.index.record.index import RecordIndex

__all__ = ["EntryStage", "EntryWriter", "RecordIndex", "StagedEntries", "WrittenEntries", "write_entries"]
