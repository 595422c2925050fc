"""How the data files of a table differ from the table's columns, and how their rows get these columns.

Four things can differ: names, in files from before a column was renamed or dropped (format/schema/column_ids.py);
partition columns, which some tables store in the partition path only; the record key, which tables without meta fields
do not store; and the rows of bootstrapped tables, which are beside their meta columns in other files (bootstrap.py).
docs/format/table.md §3.8 and §3.9.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.files.base_file import stored_rows
from hoodie.files.bootstrap import BootstrapSource
from hoodie.files.slices import BaseFile
from hoodie.format.schema.column_ids import SAME_NAMES, StoredNames
from hoodie.format.schema.conform import conform
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator
from hoodie.records.keys.partition_path import component_texts
from hoodie.storage import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumns:
    """The differences between the files of one table and its columns, for one schema of the table. Picklable.

    `names`: pairs of the first instant whose files have these names, and the names that differ, in ascending order;
    the first pair holds for all earlier files too. `path_columns` are the columns that files do not have, because the
    partition path has them. `key_columns` are set if the record key is not stored: the columns that it is made of.
    `source` is set if base files may be skeletons; these do not have the columns `source_path_columns` either, if
    their source files lack them. `key_generator` is set if one of these is set.
    """

    names: tuple[tuple[str, StoredNames], ...] = ()
    path_columns: tuple[pa.Field, ...] = ()
    key_columns: tuple[pa.Field, ...] = ()
    source: BootstrapSource | None = None
    source_path_columns: tuple[pa.Field, ...] = ()
    key_generator: KeyGenerator | None = None

    def names_at(self, instant_time: str) -> StoredNames:
        """Return the names that differ in files and log blocks of an instant."""
        if not self.names:
            return SAME_NAMES
        place = bisect_right(self.names, instant_time, key=lambda pair: pair[0])
        return self.names[max(place - 1, 0)][1]

    def are_in(self, file: BaseFile) -> bool:
        """Return whether the file has the table's columns under their names; it may lack columns that were added."""
        is_skeleton = self.source is not None and self.source.is_of(file)
        return not self.path_columns and not is_skeleton and not self.names_at(file.instant_time)

    @property
    def makes_keys(self) -> bool:
        """Whether record keys are made of other columns, because files do not store them."""
        return bool(self.key_columns)

    def base_rows(
        self,
        store: Store,
        parquet: pq.ParquetFile,
        schema: pa.Schema,
        file: BaseFile,
        *,
        row_groups: Sequence[int] | None = None,
        with_keys: bool = False,
    ) -> Iterator[pa.Table]:
        """Stream the columns of `schema` from an open base file; memory and errors as `stored_rows`.

        `with_keys`: record keys that the file does not store are made; otherwise they are as the file has them.
        `row_groups` are ignored for skeletons, whose rows are found by position.

        Raises: as `BootstrapSource.rows` too.
        """
        makes_keys = with_keys and self.makes_keys and RECORD_KEY in schema.names
        where, read = store.uri(file.path), self._read_schema(schema, makes_keys=makes_keys)
        if self.source is not None and self.source.is_of(file):
            given = self._path_values(self.source_path_columns, file.partition_path, where)
            found = self.source.rows(store, parquet, read, file, given)
        else:
            names = self.names_at(file.instant_time)
            found = stored_rows(parquet, read, where=where, row_groups=row_groups, names=names)
        for rows in found:
            yield self._completed(rows, schema, file.partition_path, where, makes_keys=makes_keys)

    def logged_columns(self, needed: set[str], instant_time: str) -> set[str]:
        """Return the columns of a log block to read for the needed columns, by their names in the block."""
        names = self.names_at(instant_time)
        wanted = needed | {child.name for child in self.key_columns}
        return {stored for name in wanted if (stored := names.get(name, name)) is not None}

    def log_rows(self, stored: pa.Table, schema: pa.Schema, instant_time: str) -> pa.Table:
        """Return the rows of a log block with the columns of `schema`; missing columns are null."""
        if not self.makes_keys:
            return conform(stored, schema, stored=True, names=self.names_at(instant_time))
        read = self._read_schema(schema, makes_keys=True)
        rows = conform(stored, read, stored=True, names=self.names_at(instant_time))
        return self._completed(rows, schema, "", "", makes_keys=True)

    def _read_schema(self, schema: pa.Schema, *, makes_keys: bool) -> pa.Schema:
        """Return the columns to read from a file."""
        absent = {child.name for child in self.path_columns}
        absent |= {RECORD_KEY} if makes_keys else set()
        wanted = {child.name: child for child in schema if child.name not in absent}
        if makes_keys:
            wanted |= {child.name: child for child in self.key_columns if child.name not in {*wanted, *absent}}
        # Without any column a batch would not have a number of rows.
        return pa.schema(wanted.values() if wanted else [pa.field(RECORD_KEY, pa.string())])

    def _completed(
        self, rows: pa.Table, schema: pa.Schema, partition_path: str, where: str, *, makes_keys: bool
    ) -> pa.Table:
        """Add the columns that the file does not have."""
        for name, value in self._path_values(self.path_columns, partition_path, where).items():
            rows = rows.append_column(pa.field(name, value.type), pa.repeat(value, rows.num_rows))
        if makes_keys:
            assert self.key_generator is not None
            (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
            rows = rows.append_column(schema.field(RECORD_KEY), self.key_generator.record_keys(batch, stored=True))
        return pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema)

    def _path_values(self, columns: tuple[pa.Field, ...], partition_path: str, where: str) -> dict[str, pa.Scalar]:
        """Return the values of partition columns in a partition path.

        Raises: CorruptFileError if the path does not have a value of each partition field's type.
        """
        keys = self.key_generator
        if not columns or keys is None:
            return {}
        texts = component_texts(
            partition_path, keys.partition_fields, hive_style=keys.hive_style, url_encode=keys.url_encode
        )
        if texts is None:
            raise CorruptFileError(
                f"the partition path {partition_path!r} has no value for each of the partition columns "
                f"{', '.join(keys.partition_fields)}, and the file does not have these columns",
                path=where,
            )
        try:
            return {child.name: pa.scalar(texts[child.name], pa.string()).cast(child.type) for child in columns}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise CorruptFileError(
                f"the partition path {partition_path!r} has no values of the types of the partition columns "
                f"({', '.join(f'{child.name} {child.type}' for child in columns)}), and the file does not have these "
                f"columns: {error}",
                path=where,
            ) from error


SAME_COLUMNS = StoredColumns()
"""Files have the table's columns."""
