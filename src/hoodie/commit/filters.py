"""The bloom filters of the base files of a commit, for the metadata partition `bloom_filters`."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.engine import LocalEngine
from hoodie.files.slices import BaseFile
from hoodie.files.stored_filters import ReadFilter
from hoodie.format.filenames import BaseFileName
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.view.table_view import TableView


def commit_filters(now: TableView, metadata: CommitMetadata) -> Mapping[str, Mapping[str, FilterRow]]:
    """Return the filters of the commit's base files; empty if the table has no partition for them.

    Call it under the table's lock. Each footer is read once, on threads of this process: the filters of a task's files
    may be more than Spark carries. Memory: the filters, 431 KB for each file by default.

    Raises: MissingFileError, CorruptFileError.
    """
    if BLOOM_FILTERS not in {*now.config.metadata_partitions, *now.config.metadata_partitions_inflight}:
        return {}
    files = []
    for stat in metadata.write_stats():
        name = (stat.path or "").rpartition("/")[2]
        base = BaseFileName.parse(name)
        if base is not None:
            path = stat.partition_path or ""
            files.append(BaseFile(path, name, base.file_id, base.instant_time, stat.file_size_bytes))
    found: dict[str, dict[str, FilterRow]] = {}
    for file, row in zip(files, LocalEngine().run(ReadFilter(now.store.spec), files), strict=True):
        found.setdefault(file.partition_path, {})[file.name] = row
    return found
