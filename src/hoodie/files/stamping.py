"""Set the meta columns of rows: commit time, sequence number, record key, partition path, file name.

On-disk format: docs/format/table.md §3.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.schema.table_schema import META_FIELDS, with_meta_fields
from hoodie.records.change import LEADING, RECORD_KEY

FILE_NAME = "_hoodie_file_name"
_FILE_NAME_PLACE = META_FIELDS.index(FILE_NAME)


class SequenceNumbers:
    """Numbers the rows that one task writes, from 0, across all its files."""

    def __init__(self, instant_time: str, task: int) -> None:
        self._prefix = f"{instant_time}_{task}_"
        self._next = 0

    def take(self, count: int) -> pa.StringArray:
        """Return the next `count` sequence numbers: `<instant>_<task>_<number>`."""
        numbers = pa.array(np.arange(self._next, self._next + count)).cast(pa.string())
        self._next += count
        return pc.binary_join_element_wise(self._prefix, numbers, "")


class Stamper:
    """Sets the meta columns of the rows of one file."""

    def __init__(
        self, schema: pa.Schema, instant_time: str, numbers: SequenceNumbers, partition_path: str, file_name: str
    ) -> None:
        self._schema = with_meta_fields(schema)
        self._instant_time = instant_time
        self._numbers = numbers
        self._partition_path = partition_path
        self._file_name = file_name

    def new_rows(self, changes: pa.Table) -> pa.Table:
        """Return the rows of change batches as rows of the file, with the commit time of this instant."""
        count = changes.num_rows
        meta = [
            repeated(self._instant_time, count),
            self._numbers.take(count),
            changes[RECORD_KEY],
            repeated(self._partition_path, count),
            repeated(self._file_name, count),
        ]
        data = [changes[name] for name in changes.column_names if name not in LEADING]
        return pa.Table.from_arrays([*meta, *data], schema=self._schema)

    def kept_rows(self, stored: pa.Table) -> pa.Table:
        """Return rows of the previous base file with the new file name; their other meta columns stay."""
        return stored.set_column(
            _FILE_NAME_PLACE, self._schema.field(_FILE_NAME_PLACE), repeated(self._file_name, stored.num_rows)
        )


def repeated(text: str, count: int) -> pa.StringArray:
    """Return an array with the same text `count` times."""
    return pa.repeat(pa.scalar(text, pa.string()), count)
