"""Write the file that marks a folder as a partition: `.hoodie_partition_metadata` (docs/format/table.md §3.5)."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from hoodie.files.slices import join_path
from hoodie.format.filenames import PARTITION_METADATA_NAME
from hoodie.format.table.properties import PartitionMetadata
from hoodie.storage import Store


def ensure_partition_metadata(
    store: Store, partition_path: str, instant_time: str, *, is_likely_new: bool = False
) -> None:
    """Create the partition's metadata file unless it exists; call this before the first data file is written.

    It takes one request if the file exists, two if it does not. With `is_likely_new` it always takes one: the file is
    created without a look, which an object store charges more for.
    """
    path = join_path(partition_path, PARTITION_METADATA_NAME)
    if not is_likely_new and store.head(path) is not None:
        return
    depth = partition_path.count("/") + 1 if partition_path else 0
    content = PartitionMetadata(commit_time=instant_time, partition_depth=depth).to_bytes(datetime.now(UTC))
    with contextlib.suppress(FileExistsError):
        store.create(path, content)
