"""Search incoming keys in a file slice, and decide the route of each row; for all indexes that read data files.

`KeyRange` is the key range of a base file, as its footer stores it, in an order that tests of UTF-8 bytes can use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.files.base_file import open_base_file, read_base_file
from hoodie.files.merged_slice import SliceRead, logged_keys, read_file_slice
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.format.hashes.bloom import MAX_KEY_FOOTER_KEY, MIN_KEY_FOOTER_KEY
from hoodie.index.api import Route
from hoodie.records.change import KIND, PARTITION_PATH, RECORD_KEY, Kind
from hoodie.storage import Store, StoreSpec

_BEYOND: Final = 0xEE
"""UTF-8 of characters from U+E000 up begins with this byte or a greater one."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The least and greatest key of a file, both inclusive; None if they are not known."""

    low: str | None = None
    high: str | None = None

    @classmethod
    def of(cls, low: str | None, high: str | None) -> KeyRange:
        """Return the range between two keys in UTF-8 or UTF-16 order; unknown if the two orders may differ.

        The JVM orders keys by UTF-16. Both orders place a key on the same side of a bound whose characters are all
        below U+E000, whatever the characters of the key.
        """
        if not low or not high or max(low.encode() + high.encode()) >= _BEYOND:
            return cls()
        return cls(low, high)

    @classmethod
    def of_footer(cls, footer: Mapping[bytes, bytes] | None) -> KeyRange:
        """Return the range that the footer of a base file stores; unknown if it stores none."""
        found = footer or {}
        low, high = found.get(MIN_KEY_FOOTER_KEY.encode()), found.get(MAX_KEY_FOOTER_KEY.encode())
        return cls() if not low or not high else cls.of(low.decode(), high.decode())

    def excludes(self, least: str, greatest: str) -> bool:
        """Return whether no key between `least` and `greatest` (in UTF-8 order) is in the range."""
        if self.low is None or self.high is None:
            return False
        return greatest.encode() < self.low.encode() or least.encode() > self.high.encode()


Rows = npt.NDArray[np.int64]
Routes = npt.NDArray[np.int8]

_KEY_BATCH_ROWS = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySearch:
    """The properties of the table that a search needs. Picklable.

    `is_global`: merged records are searched, so a deleted record is not found; the rows come from any partition.
    `update_partition_path`: with a global search, a row whose key is in another partition may move.
    """

    store: StoreSpec
    read: SliceRead
    is_global: bool
    update_partition_path: bool
    prunes: bool = True
    """Whether files are left out by the key range in their footer; false if the caller did so."""

    @property
    def decides_moves(self) -> bool:
        """Whether the search decides about each row whether it moves."""
        return self.is_global and self.update_partition_path

    @property
    def columns(self) -> tuple[str, ...]:
        """The staged columns that a search needs."""
        more = (KIND, PARTITION_PATH, *self.read.merger.ordering_columns) if self.is_global else ()
        return (RECORD_KEY, *more)


@dataclass(frozen=True, slots=True)
class Incoming:
    """Staged rows to search: their keys, their ordinals, and the columns that decide whether a record moves."""

    search: KeySearch
    rows: pa.Table
    ordinals: Rows
    unique_keys: pa.StringArray
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, search: KeySearch, rows: pa.Table, ordinals: Rows) -> Incoming:
        """Prepare rows with the columns of the search; `ordinals[i]` is the number of row i in the write."""
        keys = rows[RECORD_KEY].combine_chunks().dictionary_encode()
        return cls(search, rows, ordinals, keys.dictionary, np.asarray(keys.indices))

    def find(self, store: Store, file_slice: FileSlice) -> tuple[Rows, Routes]:
        """Return the ordinals, ascending, of the rows whose key is in the file slice, and the route of each row."""
        decides_moves = self.search.decides_moves
        stored_row = np.full(len(self.unique_keys), -1)
        kept: list[pa.Table] = []
        count = 0
        for batch in self._stored(store, file_slice):
            places = pc.index_in(batch[RECORD_KEY].combine_chunks(), value_set=self.unique_keys)
            matched = np.asarray(pc.is_valid(places))
            stored_row[np.asarray(places.drop_null())] = count + np.arange(int(matched.sum()))
            count += int(matched.sum())
            if decides_moves:
                kept.append(batch.filter(pa.array(matched)))
        hits = np.flatnonzero(stored_row[self.codes] >= 0)
        routes = np.zeros(len(hits), np.int8)
        if self.search.is_global and len(hits):
            stored = pa.array(stored_row[self.codes[hits]])
            routes = self._routes(hits, pa.concat_tables(kept).take(stored) if kept else None, file_slice)
        order = np.argsort(self.ordinals[hits])
        return self.ordinals[hits][order], routes[order]

    def _stored(self, store: Store, file_slice: FileSlice) -> Iterator[pa.Table]:
        """Yield the stored keys, with ordering values if these decide moves; a global index reads merged records."""
        read = self.search.read
        columns = (RECORD_KEY, *(read.merger.ordering_columns if self.search.decides_moves else ()))
        if self.search.is_global and file_slice.log_files:
            yield from read_file_slice(store, file_slice, replace(read, columns=columns))
            return
        base = file_slice.base_file
        if base is not None and not self._outside(store, base):
            yield from self._of_base(store, base, columns)
        if file_slice.log_files:
            yield pa.table({RECORD_KEY: logged_keys(store, file_slice, read)})

    def _of_base(self, store: Store, base: BaseFile, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield these columns of a base file; keys that it does not store are made."""
        read, stored = self.search.read, self.search.read.stored
        if stored.are_in(base) and not stored.makes_keys:
            yield from read_base_file(store, base, read.schema, columns=columns, batch_rows=_KEY_BATCH_ROWS)
            return
        schema = pa.schema([read.schema.field(name) for name in columns])
        with open_base_file(store, base) as (parquet, _):
            yield from stored.base_rows(store, parquet, schema, base, with_keys=True)

    def _routes(self, hits: Rows, stored: pa.Table | None, file_slice: FileSlice) -> Routes:
        """Return the route of each hit of a global look-up."""
        newer = self.rows.take(pa.array(hits))
        elsewhere = np.asarray(pc.not_equal(newer[PARTITION_PATH], file_slice.partition_path).combine_chunks())
        routes = np.full(len(hits), np.int8(Route.UPDATE))
        if stored is None:
            return routes
        wins = self.search.read.merger.newer_wins(stored, newer)
        kinds = np.asarray(newer[KIND].combine_chunks())
        deletes = kinds != Kind.ROW
        routes[elsewhere & ~deletes & wins] = Route.MOVE
        routes[elsewhere & ~deletes & ~wins] = Route.DROP
        return routes

    def _outside(self, store: Store, file: BaseFile) -> bool:
        """Return whether no incoming key is in the key range that the file's footer stores."""
        if not self.search.prunes or len(self.unique_keys) == 0:
            return len(self.unique_keys) == 0
        with open_base_file(store, file) as (parquet, _):
            stored = KeyRange.of_footer(parquet.metadata.metadata)
        bounds = pc.min_max(self.unique_keys)
        return stored.excludes(bounds["min"].as_py(), bounds["max"].as_py())
