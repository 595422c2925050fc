"""Base files: one Parquet file with Hudi's meta columns and footer keys, read and written as a stream of row groups.

On-disk format: docs/format/table.md §3. Compression is zstd unless the table sets another codec.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import StorageError
from hoodie.files.column_ranges import RangeObserver
from hoodie.files.damage import check_length, damaged_file, expected_file, readable_pages
from hoodie.files.encoding_threads import EncodingThreads
from hoodie.files.slices import BaseFile
from hoodie.files.stored_groups import StoredGroups, encoded_chunks
from hoodie.format.hashes.bloom import BloomFilter, FilterBuilder, FilterOptions, footer_entries
from hoodie.format.metadata_table.column_stats import ColumnRange
from hoodie.format.parquet_footer import (
    NAN_BOUNDS_KEY,
    Chunk,
    Footer,
    footer_of,
    has_nan_bounds,
    nan_leaves,
    parsed,
    trailer_of,
    with_nan_bounds,
)
from hoodie.format.schema.column_ids import SAME_NAMES, StoredNames
from hoodie.format.schema.table_schema import META_FIELDS, conform
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store

_ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Arrow bytes per row group: a write that changes none of its rows copies it. Larger ones are not scanned faster."""
_ENCODED_SHARE = 0.25
"""The guess of a file's bytes for each Arrow byte, until the first row group is encoded."""
_SAMPLE_ROWS = 4096
_REPEATED_SHARE = 0.5
"""A column gets a dictionary if at most this share of a sample's values are distinct: otherwise it saves no space."""
_DISTINCT = frozenset({RECORD_KEY, "_hoodie_commit_seqno"})
"""Columns that have another value in each row, and get no dictionary."""
_BATCH_ROWS = 128 * 1024
_BATCH_BYTES = 64 * 1024 * 1024
"""Approximate bytes read at once, decoded except for dictionaries; pieces of wide rows have fewer rows."""


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """The encoding of base files; `codec_level` is the level of zstd."""

    codec: str = "zstd"
    codec_level: int | None = 1
    row_group_bytes: int = _ROW_GROUP_BYTES
    range_columns: tuple[str, ...] | None = None
    """Columns whose ranges the writer returns, for column statistics; None if the table has no column statistics."""
    bloom: FilterOptions | None = None
    """Options of the bloom filter in the footer; None for the filter that may contain every key."""
    absent: tuple[str, ...] = ()
    """Columns of the rows that the file does not get: the partition path has their values."""
    has_meta: bool = True
    """Whether the meta columns have values. Without them they are null, and the footer has no keys."""


class BaseFileWriter:
    """Streams rows into one new base file and closes it with Hudi's footer keys.

    `schema` has all columns, meta columns included. `same` are text columns with the same value in each row: rows come
    without them, or with values that do not count. Memory: one row group, and the bloom filter. Use as a context
    manager: after an error in it, an unfinished file remains, which is found by its marker.

    `threads`: encode full row groups while the caller goes on, one at a time for each file. An error of one is raised
    by a later call.
    """

    def __init__(
        self,
        store: Store,
        path: str,
        schema: pa.Schema,
        options: ParquetOptions,
        same: Mapping[str, str] | None = None,
        threads: EncodingThreads | None = None,
    ) -> None:
        self.path = path
        self.rows = 0
        self.size_bytes = 0
        schema = pa.schema([child for child in schema if child.name not in options.absent])
        # As the JVM does, a table without meta fields keeps their columns, without values.
        self._same = _SameText((same or {}) if options.has_meta else dict.fromkeys(META_FIELDS), schema)
        self._options = options
        self._buffer: list[pa.Table] = []
        self.held_bytes = 0
        """Arrow bytes of rows that are not written yet, because their row group is not full."""
        self._filter = None if options.bloom is None or not options.has_meta else FilterBuilder(options.bloom)
        self._min_key: str | None = None
        self._max_key: str | None = None
        self.ranges: tuple[ColumnRange, ...] | None = None
        """After `close`: the ranges of the columns that the options name; None if they name none."""
        wanted = options.range_columns
        self._observer = None if wanted is None else RangeObserver(wanted, schema)
        self._metadata: list[pq.FileMetaData] = []
        self._nan_chunks: set[tuple[int, int]] = set()
        self._has_nan_bounds = True
        self._groups: list[int | bytes] = []
        """The row groups of the file in order: the number of an encoded group, or the entry of a copied one."""
        self._encoded_groups = 0
        self._threads = threads
        self._encoding: Future[None] | None = None
        self._encoding_bytes = 0
        self._encoded_bytes = 0
        self._file_bytes = 0
        self._sink = store.open_output(path)
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table) -> None:
        """Append rows; they are written to the file when a row group is full."""
        if rows.num_rows == 0:
            return
        self._buffer.append(rows.select(self._same.other_columns))
        self.held_bytes += self._buffer[-1].nbytes + rows.num_rows * self._same.row_bytes
        self.rows += rows.num_rows
        if self.held_bytes >= self._options.row_group_bytes:
            self.flush()

    @property
    def written_bytes(self) -> int:
        """Bytes of the row groups in the file; a row group still being encoded counts by the size of earlier ones."""
        share = self._file_bytes / self._encoded_bytes if self._encoded_bytes else _ENCODED_SHARE
        return self._file_bytes + int(share * self._encoding_bytes)

    def close(self) -> None:
        """Write the remaining rows and the footer; sets `size_bytes`."""
        self.flush()
        self._settle()
        writer = self._started(self._same.added(self._same.other_schema.empty_table()))
        if self._options.has_meta:
            writer.add_key_value_metadata(self._footer())
        writer.close()
        metadata, copies = self._metadata[0], self._encoded_groups < len(self._groups)
        footer = b""
        if self._nan_chunks or copies:
            # A second footer, as pyarrow writes neither these bounds nor copied row groups. Readers take the last one.
            own = Footer(with_nan_bounds(footer_of(metadata), self._nan_chunks))
            groups = [own.groups[found] if isinstance(found, int) else found for found in self._groups]
            footer = own.with_groups(groups)
            self._sink.write(footer + trailer_of(footer))
        self.size_bytes = self._sink.tell()
        self._sink.close()
        if self._observer is not None:
            self.ranges = self._observer.ranges(parsed(footer) if copies else metadata)

    def __enter__(self) -> BaseFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Stop writing: the file stays unfinished, and is found by its marker. Never fails."""
        if self._encoding is not None:
            wait((self._encoding,))
        # Otherwise pyarrow finishes the file when the writer is garbage-collected, after its sink is closed.
        if self._writer is not None:
            self._writer.is_open = False
        with contextlib.suppress(Exception):
            self._sink.close()

    def flush(self) -> None:
        """Write the held rows as row groups, or let a thread do it: one, or several if they came in a large piece."""
        if not self._buffer:
            return
        self._settle()
        rows, self._encoding_bytes = pa.concat_tables(self._buffer), self.held_bytes
        self._buffer, self.held_bytes = [], 0
        groups = max(1, round(self._encoding_bytes / self._options.row_group_bytes))
        if self._threads is None:
            self._encode(rows, groups)
            self._settle()
        else:
            self._encoding = self._threads.submit(lambda: self._encode(rows, groups))

    def copy(self, stored: StoredGroups, group: int, changed: pa.Table | None = None) -> None:
        """Append a row group of another file after the rows that are held. The bytes of its columns are copied.

        `changed`: columns that are encoded instead, with all rows of the row group; record keys are not among them.
        Columns that have one text get the text of this file. Raises: CorruptFileError if the other file is damaged.
        """
        self.flush()
        self._settle()
        rows = stored.rows(group)
        self._note_bounds(*stored.key_bounds)
        self._has_nan_bounds &= has_nan_bounds(stored.metadata)
        if self._filter is not None:
            self._filter.add(stored.column(group, RECORD_KEY))
        if self._observer is not None:
            self._observer.observe_copied(stored, group, changed)
        if self._writer is None:
            self._writer = self._open(self._same.schema, stored.dictionary_columns)
        chunks, starts = [], []
        for chunk, pages in stored.pages(group, self._anew(rows, changed)):
            chunks.append(chunk)
            starts.append(int(self._sink.tell()))
            self._sink.write(pages)
        self._groups.append(stored.footer.copied(group, chunks, starts))
        self.rows += rows
        self._settle()

    def _anew(self, count: int, changed: pa.Table | None) -> dict[tuple[str, ...], tuple[Chunk, bytes]]:
        """Return the column chunks that a copied row group of `count` rows gets instead of its own."""
        same = self._same.alone(count)
        anew = encoded_chunks(same, {**self._parquet_options, "use_dictionary": same.column_names})
        if changed is not None:
            options = {**self._parquet_options, "use_dictionary": dictionary_columns(changed)}
            anew |= encoded_chunks(changed, options)
        return anew

    def _settle(self) -> None:
        """Wait for the row group that a thread encodes. Raises: its error."""
        if self._encoding is not None:
            encoding, self._encoding = self._encoding, None
            encoding.result()
        self._file_bytes = int(self._sink.tell())
        self._encoded_bytes, self._encoding_bytes = self._encoded_bytes + self._encoding_bytes, 0

    def _encode(self, rows: pa.Table, groups: int) -> None:
        step = -(-rows.num_rows // groups)
        for start in range(0, rows.num_rows, step):
            self._encode_group(rows.slice(start, step))

    def _encode_group(self, rows: pa.Table) -> None:
        if self._options.has_meta:
            low, high = key_bounds(rows[RECORD_KEY])
            self._note_bounds(low, high)
        if self._filter is not None:
            self._filter.add(rows[RECORD_KEY])
        if self._observer is not None:
            self._observer.observe(rows)
        rows = self._same.added(rows)
        self._writer = self._started(rows)
        self._nan_chunks |= {(self._encoded_groups, leaf) for leaf in nan_leaves(rows)}
        self._groups.append(self._encoded_groups)
        self._encoded_groups += 1
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def _started(self, rows: pa.Table) -> pq.ParquetWriter:
        """Return the Parquet writer; the first rows decide which columns get a dictionary."""
        return self._writer or self._open(rows.schema, dictionary_columns(rows))

    def _open(self, schema: pa.Schema, dictionaries: list[str]) -> pq.ParquetWriter:
        options = self._parquet_options
        return pq.ParquetWriter(
            self._sink, schema, use_dictionary=dictionaries, metadata_collector=self._metadata, **options
        )

    @property
    def _parquet_options(self) -> dict[str, Any]:
        return {
            "compression": self._options.codec,
            "compression_level": self._options.codec_level if self._options.codec == "zstd" else None,
            "store_schema": False,
            # Without it, a changed byte in a page may give other values.
            "write_page_checksum": True,
        }

    def _note_bounds(self, low: str, high: str) -> None:
        self._min_key = low if self._min_key is None else min(self._min_key, low, key=_utf16)
        self._max_key = high if self._max_key is None else max(self._max_key, high, key=_utf16)

    def _footer(self) -> Mapping[str, str]:
        """Return the footer keys that bloom indexes read, and whether bounds leave out no NaN.

        The table's index decides about the bloom filter: without one the JVM's bloom index fails, so the footer has at
        least the filter that may contain every key. The key range still prunes. (docs/decisions/0001-bloom-footers.md)
        """
        found = BloomFilter.saturated() if self._filter is None else self._filter.build()
        entries = footer_entries(found, min_key=self._min_key or "", max_key=self._max_key or "")
        return {**entries, NAN_BOUNDS_KEY: "true"} if self._has_nan_bounds else entries


def dictionary_columns(rows: pa.Table) -> list[str]:
    """Return the Parquet paths of columns whose values repeat in a sample of the rows, and of all nested columns."""
    sample = rows.slice(0, _SAMPLE_ROWS)
    chosen = []
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            chosen += _leaf_paths(field)
        elif pa.types.is_dictionary(field.type) or (
            field.name not in _DISTINCT and len(sample[field.name].unique()) <= sample.num_rows * _REPEATED_SHARE
        ):
            chosen.append(field.name)
    return chosen


def _leaf_paths(field: pa.Field) -> list[str]:
    """Return the Parquet paths of a nested column's leaves."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.schema([field]).empty_table(), sink, store_schema=False)
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.schema
    return [columns.column(number).path for number in range(len(columns))]


def key_bounds(keys: pa.ChunkedArray) -> tuple[str, str]:
    """Return the smallest and greatest key in the JVM's order of strings (UTF-16 code units).

    Byte order is the same unless the keys contain characters from U+E000 up, whose UTF-8 starts with 0xEE or more.
    """
    array = keys.combine_chunks()
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    if len(data) and data.max() >= 0xEE:
        texts = array.to_pylist()
        return min(texts, key=_utf16), max(texts, key=_utf16)
    bounds = pc.min_max(array)
    return bounds["min"].as_py(), bounds["max"].as_py()


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def read_base_file(
    store: Store,
    file: BaseFile,
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = _BATCH_ROWS,
) -> Iterator[pa.Table]:
    """Stream a base file in the table's current schema: old files get new columns as nulls, and widened types.

    `columns` selects by name. Memory: one row group's selected columns, whatever the size of the file.

    Raises: as `open_base_file`; SchemaMismatchError if its columns do not match.
    """
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    with open_base_file(store, file) as (parquet, _):
        yield from stored_rows(parquet, wanted, where=store.uri(file.path), batch_rows=batch_rows)


def stored_rows(
    file: pq.ParquetFile,
    schema: pa.Schema,
    *,
    where: str,
    row_groups: Sequence[int] | None = None,
    batch_rows: int = _BATCH_ROWS,
    names: StoredNames = SAME_NAMES,
) -> Iterator[pa.Table]:
    """Stream the columns of `schema` from all or some row groups of an open base file; as `read_base_file`.

    `names` are the names in the file, where they differ.
    """
    # pyarrow builds `schema_arrow` and `names` anew at each use.
    stored = file.schema_arrow
    known = set(stored.names)
    present = [found for name in schema.names if (found := names.get(name, name)) in known]
    paths = present if names else [path for name in present for path in _paths(stored.field(name), schema.field(name))]
    groups = range(file.metadata.num_row_groups) if row_groups is None else row_groups
    with readable_pages(where):
        for run, run_rows in _runs(file.metadata, groups, set(present), batch_rows):
            for batch in file.iter_batches(run_rows, row_groups=run, columns=paths, use_threads=False):
                yield conform(pa.Table.from_batches([batch]), schema, stored=True, names=names)


def _paths(stored: pa.Field, wanted: pa.Field) -> list[str]:
    """Return the Parquet paths of the fields of a column to read: those of structs that the wanted type has too."""
    if stored.type == wanted.type or not (pa.types.is_struct(stored.type) and pa.types.is_struct(wanted.type)):
        return [stored.name]
    known = {child.name: child for child in stored.type}
    below = [path for child in wanted.type if child.name in known for path in _paths(known[child.name], child)]
    return [f"{stored.name}.{path}" for path in below] or [stored.name]


def _runs(
    metadata: pq.FileMetaData, groups: Sequence[int], columns: Collection[str], batch_rows: int
) -> Iterator[tuple[list[int], int]]:
    """Yield row groups to read together, and the rows of one piece of them: Arrow's pieces span row groups."""
    run: list[int] = []
    run_rows = run_bytes = 0
    for number in groups:
        group = metadata.row_group(number)
        size_bytes = group.total_byte_size
        if size_bytes > _BATCH_BYTES // 4:
            chunks = (group.column(place) for place in range(group.num_columns))
            size_bytes = sum(
                chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns
            )
        if run and (run_rows + group.num_rows > batch_rows or run_bytes + size_bytes > _BATCH_BYTES):
            yield run, batch_rows
            run, run_rows, run_bytes = [], 0, 0
        if size_bytes > _BATCH_BYTES:
            yield [number], max(1, min(batch_rows, group.num_rows * _BATCH_BYTES // size_bytes))
            continue
        run, run_rows, run_bytes = [*run, number], run_rows + group.num_rows, run_bytes + size_bytes
    if run:
        yield run, batch_rows


_WHOLE_BYTES_MAX: Final = 1024 * 1024
"""So many bytes come from an object store in less time than the round trips of a footer and of the rows take."""


@contextlib.contextmanager
def open_base_file(store: Store, file: BaseFile) -> Iterator[tuple[pq.ParquetFile, pa.NativeFile]]:
    """Open a base file and read its footer. Yields the Parquet file, and the handle that it is read from.

    A small file of an object store is read with one request. The length of the file is compared with the listing; an
    open handle has it, so this costs no request. Pages with checksums, as hoodie and the JVM write them, are compared
    with them when they are read.

    Raises:
        MissingFileError: the file does not exist.
        CorruptFileError: the file does not have the length that is listed, or is not a whole Parquet file.
    """
    with expected_file(store, file.path):
        if store.spec.is_remote and 0 < file.size_bytes <= _WHOLE_BYTES_MAX:
            source = pa.BufferReader(store.read(file.path))
        else:
            source = store.open_input(file.path)
    with source:
        try:
            # Source files of bootstrapped tables may have INT96, whose years nanoseconds do not cover.
            parquet = pq.ParquetFile(source, page_checksum_verification=True, coerce_int96_timestamp_unit="us")
        except StorageError:
            raise
        except (pa.ArrowInvalid, OSError) as error:
            problem = f"expected a whole Parquet file, found {source.size()} bytes that are not ({error})"
            raise damaged_file(store, file.path, problem) from error
        check_length(store, file.path, listed_bytes=file.size_bytes, found_bytes=source.size())
        yield parquet, source


class _SameText:
    """Adds the columns of `values` to the other columns of a schema: each has one text, or null, in all rows.

    They are dictionary-encoded: a row costs four bytes of memory, and the Parquet writer compares no texts.
    """

    def __init__(self, values: Mapping[str, str | None], schema: pa.Schema) -> None:
        encoded = pa.dictionary(pa.int32(), pa.string())
        names = set(schema.names)
        self._values = {name: text for name, text in values.items() if name in names}
        columns = [child.with_type(encoded) if values.get(child.name) is not None else child for child in schema]
        self.schema = pa.schema(columns, metadata=schema.metadata)
        self.other_schema = pa.schema([child for child in schema if child.name not in values])
        self.other_columns = self.other_schema.names
        self.row_bytes = sum(len((text or "").encode()) + 4 for text in self._values.values())
        """The bytes of a row's values for a reader that decodes them."""

    def added(self, rows: pa.Table) -> pa.Table:
        """Return the rows with all columns of the file."""
        if not self._values:
            return rows
        columns = [
            self.column(name, rows.num_rows) if name in self._values else rows[name] for name in self.schema.names
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def alone(self, count: int) -> pa.Table:
        """Return only the columns that have one text, with so many rows."""
        return pa.table({name: self.column(name, count) for name in self._values})

    def column(self, name: str, count: int) -> pa.Array:
        """Return such a column of so many rows."""
        text = self._values[name]
        if text is None:
            return pa.nulls(count, pa.string())
        numbers = pa.array(np.zeros(count, np.int32))
        return pa.DictionaryArray.from_arrays(numbers, pa.array([text], pa.string()))
