"""Spill tables to files, distributed over parts by record key: all rows of a key are in one part."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.sorting import HASH_END, spread
from hoodie.storage import ScratchFolder

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class SpilledParts:
    """Spilled rows: one file for each part; inside a part, rows keep the order in which they were written.

    Memory: twice the table that is being written or read. Close it before reading.
    """

    def __init__(self, folder: ScratchFolder, name: str, schema: pa.Schema, count: int) -> None:
        self._folder = folder
        self._names = [f"{name}-{number}" for number in range(count)]
        self._sinks: list[pa.NativeFile] = []
        self._writers: list[pa.ipc.RecordBatchStreamWriter] = []
        for own in self._names:
            self._sinks.append(folder.open_output(own))
            self._writers.append(pa.ipc.new_stream(self._sinks[-1], schema, options=_OPTIONS))

    def write(self, rows: pa.Table) -> None:
        """Append rows, each to the part of its key."""
        if rows.num_rows == 0:
            return
        count = len(self._writers)
        numbers = spread(rows[RECORD_KEY].combine_chunks()).astype(np.uint64) * np.uint64(count) // np.uint64(HASH_END)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(count + 1))
        in_order = rows.combine_chunks().take(pa.array(order))
        for number, writer in enumerate(self._writers):
            if bounds[number] < bounds[number + 1]:
                writer.write_table(in_order.slice(bounds[number], bounds[number + 1] - bounds[number]))

    def close(self) -> None:
        """Finish all files; may be called several times."""
        while self._writers:
            self._writers.pop().close()
            self._sinks.pop().close()

    def read(self, number: int) -> Iterator[pa.Table]:
        """Yield the rows of one part, in pieces."""
        with self._folder.open_input(self._names[number]) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])


class KeyFilter:
    """Tests whether keys may have been added: false positives are possible, false negatives are not. Memory: 32 MiB."""

    _BITS = 25

    def __init__(self) -> None:
        self._seen = np.zeros(1 << self._BITS, np.bool_)

    def add(self, keys: pa.ChunkedArray) -> None:
        """Add keys."""
        self._seen[self._slots(keys)] = True

    def may_hold(self, keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return one flag per key; a key with false was not added."""
        found: npt.NDArray[np.bool_] = self._seen[self._slots(keys)]
        return found

    def _slots(self, keys: pa.ChunkedArray) -> npt.NDArray[np.uint32]:
        return spread(keys.combine_chunks()) >> np.uint32(32 - self._BITS)
