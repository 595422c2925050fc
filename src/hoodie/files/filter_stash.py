"""The bloom filters of many base files in bounded memory, as rows of the metadata partition `bloom_filters`.

docs/format/metadata.md §4.6. A filter has 431 KB by default: those of some thousand files do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from hoodie.engine import LocalEngine, TaskContext
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile
from hoodie.files.staging.staged import StageReader, new_staged_file, stage_folder
from hoodie.format.hashes.bloom import FOOTER_KEY, TYPE_FOOTER_KEY, BloomFilter, BloomFilterType
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.storage import Store, StoreSpec, open_store


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """Callable for `Engine.run`: the filter of one base file. A file without one has the filter of every key."""

    store: StoreSpec

    def __call__(self, file: BaseFile, _context: TaskContext) -> FilterRow:
        with open_base_file(open_store(self.store), file) as (parquet, _):
            footer = parquet.metadata.metadata or {}
        text = footer.get(FOOTER_KEY.encode())
        if text is None:
            saturated = BloomFilter.saturated()
            return FilterRow(saturated.filter_type.value, file.instant_time, saturated.to_base64().encode())
        code = footer.get(TYPE_FOOTER_KEY.encode(), BloomFilterType.SIMPLE.value.encode())
        return FilterRow(code.decode(), file.instant_time, text)


Place = tuple[str, str]
"""Partition path and name of a base file."""

HELD_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of filters that are kept in memory; the others are staged in files of the table's temporary folder."""
_READ_TOGETHER: Final = 8
"""Footers that are read at the same time, on threads of this process."""
_SCHEMA: Final = pa.schema([("value", pa.binary())])


class FilterStash:
    """Reads filters from footers and keeps them, encoded, until they are written. Use as a context manager.

    Memory: `HELD_BYTES_MAX`, eight filters more while footers are read, and what `read` returns.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held_bytes = 0
        self._held: dict[Place, bytes] = {}
        self._staged: dict[Place, tuple[str, int]] = {}
        self._sizes: dict[Place, int] = {}
        self._stack = ExitStack()
        self._folder: str | None = None
        self._paths = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def places(self) -> Collection[Place]:
        """The files whose filters are kept."""
        return self._sizes.keys()

    @property
    def total_bytes(self) -> int:
        """The size of all encoded rows."""
        return sum(self._sizes.values())

    def size_bytes(self, place: Place) -> int:
        """Return the size of an encoded row."""
        return self._sizes[place]

    def add(self, files: Iterable[BaseFile]) -> int:
        """Read the footers of files whose filter is not kept; return their number.

        They are read on threads of this process: the filters of a task's files may be more than Spark carries.

        Raises: MissingFileError, CorruptFileError.
        """
        new = [file for file in files if (file.partition_path, file.name) not in self._sizes]
        read = ReadFilter(self._store.spec)
        with ExitStack() as open_files:
            writer: pa.ipc.RecordBatchFileWriter | None = None
            path, batches = "", 0
            for start in range(0, len(new), _READ_TOGETHER):
                part = new[start : start + _READ_TOGETHER]
                for file, row in zip(part, LocalEngine().run(read, part), strict=True):
                    place, value = (file.partition_path, file.name), row.to_bytes()
                    if self._held_bytes + len(value) <= HELD_BYTES_MAX:
                        self._held[place] = value
                        self._held_bytes += len(value)
                    else:
                        if writer is None:
                            path = self._new_path()
                            sink = open_files.enter_context(new_staged_file(self._store, path))
                            writer = open_files.enter_context(pa.ipc.new_file(sink, _SCHEMA))
                        # A record batch has one row.
                        writer.write_batch(pa.record_batch([pa.array([value], pa.binary())], schema=_SCHEMA))
                        self._staged[place] = path, batches
                        batches += 1
                    self._sizes[place] = len(value)
        return len(new)

    def keep(self, places: Collection[Place]) -> None:
        """Forget all other files."""
        for place in [place for place in self._sizes if place not in places]:
            self._held_bytes -= len(self._held.pop(place, b""))
            self._staged.pop(place, None)
            del self._sizes[place]

    def read(self, places: Sequence[Place]) -> pa.BinaryArray:
        """Return the encoded rows of files that are kept, in this order. Memory: these rows."""
        with StageReader(self._store) as reader:
            found = [
                self._held.get(place) or reader.read_batch(*self._staged[place]).column(0)[0].as_py()
                for place in places
            ]
        return pa.array(found, pa.binary())

    def _new_path(self) -> str:
        if self._folder is None:
            self._folder = self._stack.enter_context(stage_folder(self._store, in_process=True))
        self._paths += 1
        return f"{self._folder}/filters-{self._paths}.arrow"
