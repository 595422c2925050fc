"""The parsed content of a file slice of the metadata table, and its merge into the next base file.

docs/format/metadata.md §2, §3.8. The content is a base HFile, and the rows and deletes of its log files.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.logs.log_scan import merge_order
from hoodie.files.slices import FileSlice
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.metadata_record import zero_bytes_to_add
from hoodie.storage import ExistingFileError, FileInfo, Store, StoreSpec

_NOWHERE: Final = pa.scalar(-1, pa.int32())


class RowBlock:
    """Rows that a log block adds (`values` set), or keys that it deletes (`values` None).

    A large block is passed as its `reader`. Its rows are parsed when `keys` or `values` is read; `find` can seek in it.
    """

    __slots__ = ("_entries", "_reader", "instant_time", "replaces", "schema_json")

    def __init__(
        self,
        keys: pa.Array | None,
        values: pa.BinaryArray | None,
        schema_json: str,
        instant_time: str,
        replaces: frozenset[str],
        *,
        reader: HFileReader | None = None,
    ) -> None:
        """Create a block. `replaces`: the instants whose blocks it replaces (after a log compaction); usually none."""
        self._entries = None if keys is None else (keys, values)
        self._reader = reader
        self.schema_json = schema_json
        self.instant_time = instant_time
        self.replaces = replaces

    def __len__(self) -> int:
        return len(self._reader) if self._reader is not None else len(self.keys)

    @property
    def keys(self) -> pa.Array:
        """All keys."""
        return self._parsed()[0]

    @property
    def values(self) -> pa.BinaryArray | None:
        """The value of each key; None if the block deletes them."""
        return self._parsed()[1]

    @property
    def held_bytes(self) -> int:
        """Bytes of the parsed columns. The bytes of the file are not counted."""
        if self._entries is None:
            return 0
        return sum(column.nbytes for column in self._entries if column is not None)

    def find(self, keys: pa.BinaryArray, *, seek: bool) -> tuple[npt.NDArray[np.int64], pa.BinaryArray | None]:
        """Return the positions in `keys` of the keys that the block has, and their values (None: it deletes them).

        `seek` decompresses only the HFile blocks that may hold one of the keys, and keeps nothing.
        """
        if seek and self._reader is not None:
            values = self._reader.get_many(keys)
            return np.asarray(values.is_valid()).nonzero()[0], values.drop_null()
        block_keys, block_values = self._parsed() if self._reader is None else self._entries or self._reader.entries()
        places = np.asarray(pc.coalesce(pc.index_in(keys, value_set=block_keys), _NOWHERE))
        rows = (places >= 0).nonzero()[0]
        return rows, None if block_values is None else block_values.take(pa.array(places[rows]))

    def _parsed(self) -> tuple[pa.Array, pa.BinaryArray | None]:
        if self._entries is None:
            assert self._reader is not None
            self._entries = self._reader.entries()
        return self._entries


@dataclass(frozen=True, slots=True)
class LogContent:
    """The rows and deletes of a log file, in the order of its blocks.

    `undone`: commands that roll back the earlier blocks of an instant (version 6), each as the number of `blocks`
    before it, and the instant.
    """

    blocks: tuple[RowBlock, ...]
    block_count: int
    undone: tuple[tuple[int, str], ...] = ()


class WrittenLogs:
    """The content of the small log files that this process wrote last, by their bytes and their tags. Thread-safe.

    What a log file holds follows from its bytes, so a reader that finds these bytes need not parse them. In an object
    store it need not even read them: the listing has the ETag that the put returned, and the services give two contents
    of a path two ETags.
    """

    def __init__(self, count_max: int = 64, bytes_max: int = 16 * 1024) -> None:
        """Create an empty memory for `count_max` files of up to `bytes_max` bytes."""
        self._known: OrderedDict[bytes, LogContent] = OrderedDict()
        self._files: OrderedDict[tuple[StoreSpec, str, str], LogContent] = OrderedDict()
        self._lock = threading.Lock()
        self._count_max, self._bytes_max = count_max, bytes_max

    def note(self, data: bytes, blocks: Iterable[RowBlock]) -> None:
        """Note the blocks of a log file that is about to be written."""
        if len(data) <= self._bytes_max:
            found = tuple(blocks)
            with self._lock:
                self._known[data] = LogContent(found, len(found))
                while len(self._known) > self._count_max:
                    self._known.popitem(last=False)

    def find(self, data: bytes) -> LogContent | None:
        """Return the content of a file with these bytes; None if it is not known."""
        with self._lock:
            return self._known.get(data) if len(data) <= self._bytes_max else None

    def create(self, store: Store, path: str, data: bytes) -> None:
        """Create a log file, and note its tag if its content is known. Raises: ExistingFileError."""
        known = self.find(data) if store.spec.is_remote else None
        if known is None:
            store.create(path, data)
            return
        created = store.replace_version(path, data, None)
        if created is None:
            raise ExistingFileError(store.uri(path))
        if created.tag is not None:
            with self._lock:
                self._files[store.spec, path, created.tag] = known
                while len(self._files) > self._count_max:
                    self._files.popitem(last=False)

    def find_file(self, store: Store, info: FileInfo) -> LogContent | None:
        """Return the content of a listed file; None if it is not known."""
        if info.tag is None:
            return None
        with self._lock:
            return self._files.get((store.spec, info.path, info.tag))


written_logs: Final = WrittenLogs()


@dataclass(frozen=True, slots=True)
class SliceContent:
    """A parsed file slice: its base file (None if it has none) and its row blocks, oldest first."""

    file_slice: FileSlice
    base: HFileReader | None
    blocks: tuple[RowBlock, ...]
    log_block_count: int

    @property
    def base_schema_json(self) -> str:
        """Schema of the values in the base file."""
        return "" if self.base is None else self.base.file_info.get("schema", b"").decode("utf-8", errors="replace")


def assembled(file_slice: FileSlice, base: HFileReader | None, logs: Sequence[LogContent]) -> SliceContent:
    """Combine the parsed files of a slice into its content; `logs` oldest first."""
    blocks = merge_order(_counted(file_slice, logs))
    return SliceContent(file_slice, base, tuple(blocks), sum(log.block_count for log in logs))


def _counted(file_slice: FileSlice, logs: Sequence[LogContent]) -> list[RowBlock]:
    """Return the blocks that count, oldest first: those of completed instants that no later command rolls back."""
    rule, found = file_slice.counted, list[RowBlock]()
    for log in logs:
        place = 0
        for number, target in (*log.undone, (len(log.blocks), "")):
            found += [block for block in log.blocks[place:number] if rule is None or rule.accepts(block.instant_time)]
            found = [block for block in found if block.instant_time != target] if target else found
            place = number
    return found


def compact_newest(content: SliceContent, field: str) -> tuple[pa.Array, pa.Array]:
    """Merge a file slice into the keys and values of its next base file, which has no deletions.

    `field`: the field of a metadata record with the content of the rows. Memory: three times the file slice's keys and
    values.

    Raises: CorruptFileError if a file has rows of an unknown schema.
    """
    keys, values = _newest(content, field)
    live = pc.is_valid(values)
    if content.base is not None:
        base_keys, base_values = content.base.entries()
        base_values = _in_known_schema(base_values, content.base_schema_json, field, content)
        kept = pc.invert(pc.is_in(base_keys, value_set=keys))
        keys = pa.concat_arrays([base_keys.filter(kept), keys.filter(live)])
        values = pa.concat_arrays([base_values.filter(kept), values.filter(live)])
    else:
        keys, values = keys.filter(live), values.filter(live)
    order = pc.sort_indices(keys)
    return keys.take(order).cast(pa.string()), values.take(order)


def _in_known_schema(values: pa.BinaryArray, schema_json: str, field: str, content: SliceContent) -> pa.BinaryArray:
    """Return rows of older releases in the form of `metadata_schema()`, which the next base file names."""
    missing = zero_bytes_to_add(schema_json, field, path=content.file_slice.file_id)
    return pc.binary_join_element_wise(values, bytes(missing), b"") if missing else values


def _newest(content: SliceContent, field: str) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return the newest value of each key in the blocks (oldest first); null if the key is deleted."""
    blocks = content.blocks
    if not blocks:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    keys = pa.concat_arrays([block.keys.cast(pa.binary()) for block in blocks])
    values = pa.concat_arrays(
        [
            pa.nulls(len(block.keys), pa.binary())
            if block.values is None
            else _in_known_schema(block.values, block.schema_json, field, content)
            for block in blocks
        ]
    )
    encoded = keys.dictionary_encode()
    last = np.zeros(len(encoded.dictionary), np.int64)
    np.maximum.at(last, np.asarray(encoded.indices), np.arange(len(keys)))
    return encoded.dictionary, values.take(pa.array(last))
