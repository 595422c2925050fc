"""Look up keys in one index file group (docs/format/metadata.md §5; RFC-08)."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.metadata_table.record_location import LocationColumn, RecordLocation
from hoodie.metadata.slice_content import SliceContent


class LookUp(StrEnum):
    """The way to search the files of an index file group."""

    SEEK = "seek"
    """Decompress only the blocks that may have a searched key."""
    SCAN = "scan"
    """Read the whole files once."""


SCAN_SHARE = 0.5
"""Share of a file group's keys from which on a scan is cheaper than seeking.

RFC-08 gives about 30%; measured with this library: 40% of 100,000 keys, 61% of a million
(docs/record-index/measured.md).
"""


def way_of(wanted: int, content: SliceContent) -> LookUp:
    """Return the cheaper way to look up `wanted` distinct keys in a file group."""
    stored = sum(len(block) for block in content.blocks) + (0 if content.base is None else len(content.base))
    return LookUp.SCAN if wanted >= SCAN_SHARE * stored else LookUp.SEEK


def find(content: SliceContent, keys: pa.StringArray, *, look_up: LookUp = LookUp.SEEK) -> LocationColumn:
    """Find the locations of keys that belong to the file group, in their order; keys without an entry have none.

    Memory: the keys, the blocks that are decompressed, and one location for each distinct value.

    Raises:
        CorruptFileError: a file of the file group does not parse.
    """
    wanted = keys.cast(pa.binary())
    found = _Found(len(wanted))
    path = content.file_slice.file_id
    for block in reversed(content.blocks):
        rows = np.flatnonzero(found.is_open)
        places, values = block.find(wanted.take(pa.array(rows)), seek=look_up is LookUp.SEEK)
        found.set_locations(rows[places], values, schema_json=block.schema_json, path=path)
    rows = np.flatnonzero(found.is_open)
    if content.base is not None and len(rows):
        open_keys = wanted.take(pa.array(rows))
        if look_up is LookUp.SEEK:
            values = content.base.get_many(open_keys)
        else:
            base_keys, base_values = content.base.entries()
            values = base_values.take(pc.index_in(open_keys, value_set=base_keys))
        found.set_locations(rows, values, schema_json=content.base_schema_json, path=path)
    return LocationColumn(tuple(found.locations), found.codes)


class _Found:
    """Collects locations, newest block first. An older block does not change the result of a newer block."""

    def __init__(self, count: int) -> None:
        self.locations: list[RecordLocation] = []
        self.codes = np.full(count, -1, np.int64)
        self.is_open = np.ones(count, np.bool_)

    def set_locations(
        self, rows: npt.NDArray[np.int64], values: pa.BinaryArray | None, *, schema_json: str, path: str
    ) -> None:
        """Set the locations of rows; without values, the rows are deleted."""
        self.is_open[rows] = False
        if values is None or not len(rows):
            return
        column = LocationColumn.parse(values, schema_json=schema_json, path=path)
        self.codes[rows] = np.where(column.codes >= 0, column.codes + len(self.locations), -1)
        self.locations.extend(column.locations)
