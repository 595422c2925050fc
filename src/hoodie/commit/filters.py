"""The bloom filters of the base files of a commit, for the metadata partition `bloom_filters`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hoodie.files.filter_stash import FilterStash
from hoodie.files.slices import BaseFile
from hoodie.format.filenames import BaseFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.metadata_table.partition_names import BLOOM_FILTERS
from hoodie.view.table_view import TableView


@contextlib.contextmanager
def commit_filters(view: TableView, metadata: CommitMetadata) -> Iterator[FilterStash]:
    """Read the filters of a commit's base files before the lock is taken, if the table has a partition for them.

    Each footer is read once. Memory: as `FilterStash`.

    Raises: MissingFileError, CorruptFileError.
    """
    with FilterStash(view.store) as filters:
        add_filters(filters, view, metadata)
        yield filters


def add_filters(filters: FilterStash, now: TableView, metadata: CommitMetadata) -> FilterStash:
    """Read the filters that are not read yet: under the lock only those of a table that has just got the partition.

    Raises: MissingFileError, CorruptFileError.
    """
    if BLOOM_FILTERS not in {*now.config.metadata_partitions, *now.config.metadata_partitions_inflight}:
        filters.keep(())
        return filters
    files = []
    for stat in metadata.write_stats():
        name = name_of(stat.path or "")
        base = BaseFileName.parse(name)
        if base is not None:
            path = stat.partition_path or ""
            files.append(BaseFile(path, name, base.file_id, base.instant_time, stat.file_size_bytes))
    filters.add(files)
    return filters
