"""Content of `.hoodie_partition_metadata`, the file that marks a folder as a partition.

On-disk format: docs/format/table.md §3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hoodie.errors import CorruptFileError
from hoodie.format.table.properties import java_date, parse_properties, properties_to_bytes

_COMMIT_TIME = "commitTime"
_PARTITION_DEPTH = "partitionDepth"
_DIGITS_MAX = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """First instant that wrote to a partition, and the number of folders between it and the base path.

    `commit_time` is None in files of a few old writers that did not store it. `partition_depth` is 0 in a
    non-partitioned table.
    """

    commit_time: str | None
    partition_depth: int

    @classmethod
    def parse(cls, data: bytes, *, path: str = "<memory>") -> PartitionMetadata:
        """Parse the file's content.

        Raises:
            CorruptFileError: the depth is missing or is not a number.
        """
        properties = parse_properties(data, path=path)
        depth = properties.get(_PARTITION_DEPTH, "")
        if not (depth.isascii() and depth.isdigit() and len(depth) <= _DIGITS_MAX):
            raise CorruptFileError(f"expected {_PARTITION_DEPTH}=<number>, found {depth[:100]!r}", path=path)
        return cls(commit_time=properties.get(_COMMIT_TIME), partition_depth=int(depth))

    def to_bytes(self, now: datetime) -> bytes:
        """Return the file's content in the JVM's form; `now` is the time in the date line."""
        properties = {} if self.commit_time is None else {_COMMIT_TIME: self.commit_time}
        properties[_PARTITION_DEPTH] = str(self.partition_depth)
        return properties_to_bytes(properties, ("partition metadata", java_date(now)))
