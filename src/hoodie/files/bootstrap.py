"""Bootstrapped file groups: a skeleton file with the meta columns, and the file it was made for, joined by position.

JVM Hudi makes such a table of Parquet files that stay where they are: `hoodie.bootstrap.base.path` is the one folder
outside a table that a read opens. On-disk format: docs/format/table.md §3.9.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.files.base_file import open_base_file, stored_rows
from hoodie.files.slices import BaseFile
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD
from hoodie.format.bootstrap_index import BY_FILE_ID, INSTANT, file_group_key, parse_source
from hoodie.format.hfile import HFileReader
from hoodie.format.schema.int96 import int96_columns, without_zone
from hoodie.storage import Store, StoreSpec, open_store

_COMMIT_TIME: Final = pa.field(META_FIELDS[0], pa.string())
_META: Final = frozenset({*META_FIELDS, OPERATION_FIELD})


@dataclass(frozen=True, slots=True)
class BootstrapSource:
    """The folder with the files for which the skeleton files of a table were made. Picklable."""

    folder: StoreSpec

    def is_of(self, file: BaseFile) -> bool:
        """Return whether the file is a skeleton. Files of full-record bootstraps have another instant."""
        return file.instant_time == INSTANT

    def rows(
        self,
        store: Store,
        skeleton: pq.ParquetFile,
        schema: pa.Schema,
        file: BaseFile,
        path_values: Mapping[str, pa.Scalar],
    ) -> Iterator[pa.Table]:
        """Stream the columns of `schema` of a skeleton and its source file, row by row beside each other.

        Columns that the source file lacks are taken from `path_values`, else they are null. Costs up to three requests
        for the index, and those of the source file. Memory: as `stored_rows` of both files.

        Raises: CorruptFileError if the index does not name the source file, names a file outside the folder, or the
        files differ in their number of rows; MissingFileError if the source file does not exist.
        """
        where = store.uri(file.path)
        folder = open_store(self.folder)
        (source,) = self._sources_of(store, [file])
        with open_base_file(folder, source) as (parquet, _):
            counts = (skeleton.metadata.num_rows, parquet.metadata.num_rows)
            if counts[0] != counts[1]:
                found = f"as many rows as in {folder.uri(source.path)} ({counts[1]}) expected, found {counts[0]}"
                raise CorruptFileError(f"{found}; restore that file to what it was at the bootstrap", path=where)
            stored = set(parquet.schema_arrow.names)
            given = {name: value for name, value in path_values.items() if name not in stored}
            meta = [child for child in schema if child.name in _META]
            own = [child for child in schema if child.name not in _META and child.name not in given]
            points = int96_columns(parquet.schema)
            read = [child.with_type(without_zone(child.type)) if child.name in points else child for child in own]
            # Without a column a batch would not have a number of rows.
            left = stored_rows(skeleton, pa.schema(meta or [_COMMIT_TIME]), where=where)
            right = stored_rows(parquet, pa.schema(read or [_COMMIT_TIME]), where=folder.uri(source.path))
            for rows, others in beside(left, right):
                columns = {**_columns(others), **_columns(rows)}
                columns |= {child.name: columns[child.name].cast(child.type) for child in own if child.name in points}
                columns |= {name: pa.repeat(value, rows.num_rows) for name, value in given.items()}
                yield pa.table([columns[name] for name in schema.names], schema=schema)

    def uris_of(self, store: Store, skeletons: Sequence[BaseFile]) -> list[str]:
        """Return the source file of each skeleton. Costs: the blocks of the index that name them. Errors: as `rows`."""
        folder = open_store(self.folder)
        return [folder.uri(file.path) for file in self._sources_of(store, skeletons)] if skeletons else []

    def _sources_of(self, store: Store, skeletons: Sequence[BaseFile]) -> list[BaseFile]:
        """Find the source files of skeletons in the bootstrap index."""
        path = store.uri(BY_FILE_ID)
        keys = [file_group_key(file.partition_path, file.file_id) for file in skeletons]
        with store.open_input(BY_FILE_ID) as stored:
            values = HFileReader(_Ranges(stored), path=path).get_many(pa.array(keys, pa.binary()))
        return [self._parsed(value.as_py(), file, path) for value, file in zip(values, skeletons, strict=True)]

    def _parsed(self, value: bytes | None, skeleton: BaseFile, path: str) -> BaseFile:
        """Return the source file that an entry of the index names; `path`: the path of the index."""
        if value is None:
            raise CorruptFileError(
                f"an entry for the skeleton file {skeleton.path!r} expected, found none; restore the bootstrap index "
                "from a copy of the table",
                path=path,
            )
        uri, length = parse_source(value, path=path)
        base = _bare(self.folder.uri).rstrip("/") + "/"
        relative = _bare(uri).removeprefix(base)
        if not _bare(uri).startswith(base) or posixpath.normpath(relative) != relative or relative.startswith("../"):
            raise CorruptFileError(
                f"a source file inside hoodie.bootstrap.base.path ({self.folder.uri}) expected, found {uri!r}",
                path=path,
            )
        return BaseFile("", relative, skeleton.file_id, skeleton.instant_time, length)


def beside(left: Iterator[pa.Table], right: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Cut two streams with equally many rows in all into pairs of tables with equally many rows."""
    others = next(right, None)
    for rows in left:
        rest = rows
        while rest.num_rows:
            while others is not None and others.num_rows == 0:
                others = next(right, None)
            assert others is not None
            count = min(rest.num_rows, others.num_rows)
            yield rest.slice(0, count), others.slice(0, count)
            rest, others = rest.slice(count), others.slice(count)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _bare(uri: str) -> str:
    """Return a path or URI in one spelling: local paths without a scheme, S3 with one name of its scheme."""
    if uri.startswith("file:"):
        return "/" + uri.removeprefix("file:").lstrip("/")
    scheme, separator, rest = uri.partition("://")
    return f"s3://{rest}" if separator and scheme in ("s3a", "s3n") else uri


@dataclass(frozen=True, slots=True)
class _Ranges:
    """An open file as a source of an HFile."""

    stored: pa.NativeFile

    @property
    def size(self) -> int:
        return int(self.stored.size())

    def read(self, offset: int, length: int) -> bytes:
        self.stored.seek(offset)
        return bytes(self.stored.read(length))
