"""The file group of each bucket of a partition."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import bucket_of_file_id
from hoodie.index.bucket.rule import BucketRule

_REMEDY = (
    "a writer without the bucket index wrote here; roll that write back (t.rollback), or write the rows to a new table"
)


def file_ids_by_bucket(slices: Iterable[FileSlice], rule: BucketRule, *, where: str) -> dict[str, dict[int, str]]:
    """Return the file id of each bucket that has a file group, by partition path.

    Raises: UnsupportedError if a file group has no bucket of its partition, or a bucket has two file groups: keys of
        that partition could be in several file groups.
    """
    found: dict[str, dict[int, str]] = {}
    for file_slice in slices:
        path, file_id = file_slice.partition_path, file_slice.file_id
        bucket, count = bucket_of_file_id(file_id), rule.count_in(path)
        name = f"{path}/{file_id}" if path else file_id
        if bucket is None or bucket >= count:
            raise UnsupportedError(f"{where}: the file group {name} belongs to none of the {count} buckets: {_REMEDY}")
        other = found.setdefault(path, {}).setdefault(bucket, file_id)
        if other != file_id:
            raise UnsupportedError(
                f"{where}: the file groups {name} and {other} are of one bucket, where one is expected: {_REMEDY}"
            )
    return found


def looks_bucketed(file_ids: Iterable[str]) -> bool:
    """Return whether all these file ids, at least one, look like those of buckets with numbers below 10,000.

    A file id that a random uuid begins looks like this once in 400,000 times.
    """
    found = list(file_ids)
    return bool(found) and all(name.startswith("0000") and bucket_of_file_id(name) is not None for name in found)
