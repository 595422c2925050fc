"""Make the meta columns of rows: commit time, sequence number, record key, partition path, file name.

On-disk format: docs/format/table.md §3.2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.format.schema.table_schema import META_FIELDS, with_meta_fields
from hoodie.records.change import LEADING, RECORD_KEY

COMMIT_TIME, SEQUENCE_NUMBER = META_FIELDS[:2]
FILE_NAME = META_FIELDS[4]
_ZERO = ord("0")


class SequenceNumbers:
    """Numbers the rows that one task writes, from 0, across all its files."""

    def __init__(self, instant_time: str, task: int) -> None:
        self._prefix = f"{instant_time}_{task}_"
        self._next = 0

    def take(self, count: int) -> pa.StringArray:
        """Return the next `count` sequence numbers: `<instant>_<task>_<number>`."""
        start, self._next = self._next, self._next + count
        return numbered(self._prefix, start, self._next)


class Stamper:
    """Makes the meta columns of new rows of one file.

    `values` are the values of commit time, partition path and file name. A column that has none is left out: the
    writer of the base file adds it.
    """

    def __init__(self, schema: pa.Schema, numbers: SequenceNumbers, values: Mapping[str, str]) -> None:
        names = {SEQUENCE_NUMBER, RECORD_KEY, *values}
        self._meta = [name for name in META_FIELDS if name in names]
        self._schema = pa.schema(
            [child for child in with_meta_fields(schema) if child.name in names or child.name not in META_FIELDS]
        )
        self._numbers = numbers
        self._values = values

    def new_rows(self, changes: pa.Table) -> pa.Table:
        """Return the rows of change batches as rows of the file."""
        meta = [self._column(name, changes) for name in self._meta]
        data = [changes[name] for name in changes.column_names if name not in LEADING]
        return pa.Table.from_arrays([*meta, *data], schema=self._schema)

    def _column(self, name: str, changes: pa.Table) -> pa.Array | pa.ChunkedArray:
        if name == SEQUENCE_NUMBER:
            return self._numbers.take(changes.num_rows)
        return changes[RECORD_KEY] if name == RECORD_KEY else repeated(self._values[name], changes.num_rows)


def repeated(text: str, count: int) -> pa.StringArray:
    """Return an array with the same text `count` times."""
    return pa.repeat(pa.scalar(text, pa.string()), count)


def numbered(prefix: str, start: int, stop: int) -> pa.StringArray:
    """Return texts of the prefix and each number from `start` to `stop`, exclusive.

    Numbers with as many digits have texts of one length, whose bytes are computed together, digit by digit.

    >>> numbered("a_", 9, 11).to_pylist()
    ['a_9', 'a_10']
    """
    head = np.frombuffer(prefix.encode(), np.uint8)
    texts: list[npt.NDArray[np.uint8]] = []
    lengths: list[npt.NDArray[np.int32]] = [np.zeros(1, np.int32)]
    first = start
    while first < stop:
        digits = len(str(first))
        end = min(stop, 10**digits)
        text = np.empty((end - first, len(head) + digits), np.uint8)
        text[:, : len(head)] = head
        rest = np.arange(first, end, dtype=np.uint32 if end <= 1 << 32 else np.uint64)
        for place in reversed(range(len(head), len(head) + digits)):
            tens = rest // 10
            text[:, place] = rest - tens * 10 + _ZERO
            rest = tens
        texts.append(text.reshape(-1))
        lengths.append(np.full(len(text), text.shape[1], np.int32))
        first = end
    offsets = np.cumsum(np.concatenate(lengths), dtype=np.int32)
    data = np.concatenate([np.zeros(0, np.uint8), *texts])
    return pa.StringArray.from_buffers(stop - start, pa.py_buffer(offsets), pa.py_buffer(data))
