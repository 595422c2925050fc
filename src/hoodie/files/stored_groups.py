"""Row groups of a base file whose column chunks a new base file takes as they are: bytes are copied, not decoded.

Only the file name changes in every row of a new base file. It is one constant column chunk, which is written anew, as
are the columns that changed. docs/decisions/0022-copied-row-groups.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.files.damage import readable_pages
from hoodie.format.hashes.bloom import MAX_KEY_FOOTER_KEY, MIN_KEY_FOOTER_KEY
from hoodie.format.parquet_footer import Chunk, Footer, damage_of_pages, footer_of, nan_leaves, with_nan_bounds
from hoodie.records.change import RECORD_KEY

_TRAILER_BYTES: Final = 8
LIKELY_KEYS: Final = 4
"""If so many changed keys are expected in a row group, it is read at once; otherwise its keys are read first."""
_MANY_CHUNKS, _TINY_CHUNK_BYTES = 2000, 16 * 1024
"""Of many column chunks that are tiny, the entries of the footer cost more than to encode them anew."""
_SINGLE_BYTES_MIN: Final = 1024 * 1024
"""The only row group of a file is encoded anew if it has fewer bytes than these before compression."""
_SKIPPED_BYTES_MIN: Final = 64 * 1024
"""Smaller stored chunks of columns that changed are read with their neighbours: a request costs more than they do."""
_RUN_BYTES_MAX: Final = 32 * 1024 * 1024
"""Column chunks that are read together have so many bytes, unless one of them has more."""
MERGED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of a row group with more bytes before compression, the rows with a changed key are not held to copy its columns."""
_TINY_GROUPS: Final = 4
"""A file may have so many more row groups than full ones would be, and twice as many; then it is encoded anew."""


class StoredGroups:
    """The row groups of an open base file. Memory: the footer, and one row group while it is copied.

    `where` is for messages.

    Raises: ValueError if a column chunk cannot be copied.
    """

    def __init__(self, parquet: pq.ParquetFile, source: pa.NativeFile, footer: Footer, where: str) -> None:
        self.parquet = parquet
        self._source = source
        self.footer = footer
        self.where = where
        self.metadata: pq.FileMetaData = parquet.metadata
        self._key_place = parquet.schema_arrow.names.index(RECORD_KEY)
        self._chunks = [footer.chunks(group) for group in range(self.metadata.num_row_groups)]
        end = source.size() - _TRAILER_BYTES
        if any(chunk.start + chunk.size_bytes > end for chunks in self._chunks for chunk in chunks):
            raise ValueError("a column chunk ends after the file")

    @classmethod
    def of(cls, parquet: pq.ParquetFile, source: pa.NativeFile, schema: pa.Schema, where: str) -> StoredGroups | None:
        """Return the row groups that a file with these columns can take; None if rows must be encoded anew.

        A row group can be taken from a file of the same Parquet schema. Files with many small row groups are encoded
        anew, to have few full ones.
        """
        metadata = parquet.metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if not metadata.num_rows or len(rows) > 2 * -(-metadata.num_rows // max(rows)) + _TINY_GROUPS:
            return None
        if len(rows) == 1 and metadata.row_group(0).total_byte_size < _SINGLE_BYTES_MIN:
            return None
        chunks = len(rows) * metadata.num_columns
        if chunks > _MANY_CHUNKS and source.size() < chunks * _TINY_CHUNK_BYTES:
            return None
        if not {MIN_KEY_FOOTER_KEY.encode(), MAX_KEY_FOOTER_KEY.encode()} <= (metadata.metadata or {}).keys():
            return None
        try:
            footer = Footer.of(metadata)
            return cls(parquet, source, footer, where) if footer.form == _form_of(schema) else None
        except ValueError:
            return None

    @property
    def key_bounds(self) -> tuple[str, str]:
        """The smallest and the greatest record key of the file by its footer."""
        found = self.metadata.metadata
        return found[MIN_KEY_FOOTER_KEY.encode()].decode(), found[MAX_KEY_FOOTER_KEY.encode()].decode()

    @property
    def dictionary_columns(self) -> list[str]:
        """The Parquet paths of the columns that have a dictionary in the first row group."""
        group = self.metadata.row_group(0)
        chunks = (group.column(place) for place in range(group.num_columns))
        return [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page]

    @property
    def has_large(self) -> bool:
        """Whether a row group is large."""
        return any(map(self.is_large, range(self.metadata.num_row_groups)))

    def is_large(self, group: int) -> bool:
        """Return whether the rows of a row group should not be held as a whole."""
        return bool(self.metadata.row_group(group).total_byte_size > MERGED_BYTES_MAX)

    def rows(self, group: int) -> int:
        """Return the number of rows of a row group."""
        count: int = self.metadata.row_group(group).num_rows
        return count

    def may_hold(self, group: int, keys: pa.Array) -> int:
        """Return how many of the keys are in the range of the keys of a row group; all if the range is not known."""
        found = keys_in_range(self.metadata.row_group(group).column(self._key_place), keys)
        return len(keys) if found is None else found

    def column(self, group: int, name: str) -> pa.ChunkedArray:
        """Read one column of a row group. Raises: CorruptFileError."""
        with readable_pages(self.where):
            return self.parquet.read_row_group(group, columns=[name], use_threads=False)[name]

    def pages(
        self, group: int, instead: Mapping[tuple[str, ...], tuple[Chunk, bytes]]
    ) -> Iterator[tuple[Chunk, bytes]]:
        """Yield the column chunks of a row group with their bytes, whose checksums are compared.

        `instead` are the chunks of columns that changed, by their paths. Memory: 32 MiB, or one column chunk.

        Raises: CorruptFileError if a page is damaged, or the file ends before.
        """
        chunks = self._chunks[group]
        large = {chunk.path for chunk in chunks if chunk.path in instead and chunk.size_bytes > _SKIPPED_BYTES_MIN}
        for run in _runs(chunks, large):
            start, end = run[0].start, run[-1].start + run[-1].size_bytes
            data = b"" if run[0].path in large else self._read(start, end - start)
            for chunk in run:
                if chunk.path in instead:
                    yield instead[chunk.path]
                    continue
                pages = data[chunk.start - start : chunk.start - start + chunk.size_bytes]
                if problem := damage_of_pages(pages):
                    raise CorruptFileError(f"the column {chunk.name}: {problem}", path=self.where)
                yield chunk, pages

    def _read(self, start: int, size_bytes: int) -> bytes:
        self._source.seek(start)
        data: bytes = self._source.read(size_bytes)
        if len(data) < size_bytes:
            raise CorruptFileError(f"expected {size_bytes:,} bytes of pages, found {len(data):,}", path=self.where)
        return data


def keys_in_range(chunk: pq.ColumnChunkMetaData, keys: pa.Array | pa.ChunkedArray) -> int | None:
    """Return how many keys are between the bounds of a column chunk of keys; None if the bounds are not known."""
    if not chunk.is_stats_set or not chunk.statistics.has_min_max:
        return None
    try:
        low, high = chunk.statistics.min, chunk.statistics.max
    except UnicodeDecodeError:
        return None
    return int(pc.sum(pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))).as_py() or 0)


def _runs(chunks: list[Chunk], alone: Set[tuple[str, ...]]) -> Iterator[list[Chunk]]:
    """Yield chunks that follow each other in the file: they are read together. Those of some paths come alone."""
    run: list[Chunk] = []
    for chunk in chunks:
        ends = run and chunk.start != run[-1].start + run[-1].size_bytes
        is_full = run and chunk.start + chunk.size_bytes - run[0].start > _RUN_BYTES_MAX
        if run and (ends or is_full or chunk.path in alone or run[-1].path in alone):
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run


@lru_cache(maxsize=64)
def _form_of(schema: pa.Schema) -> object:
    """Return the form of a file that pyarrow writes for a schema."""
    return Footer.of(pq.read_metadata(pa.BufferReader(_encoded(schema.empty_table(), {})))).form


def encoded_chunks(rows: pa.Table, options: Mapping[str, Any]) -> dict[tuple[str, ...], tuple[Chunk, bytes]]:
    """Encode columns as column chunks; return them and their bytes, by their paths."""
    data = _encoded(rows, options)
    footer = with_nan_bounds(
        footer_of(pq.read_metadata(pa.BufferReader(data))), {(0, leaf) for leaf in nan_leaves(rows)}
    )
    chunks = Footer(footer).chunks(0)
    return {chunk.path: (chunk, data[chunk.start : chunk.start + chunk.size_bytes].to_pybytes()) for chunk in chunks}


def _encoded(rows: pa.Table, options: Mapping[str, Any]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=max(rows.num_rows, 1), **{"store_schema": False, **options})
    return sink.getvalue()
