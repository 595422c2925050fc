"""The rows of the files of an adoption as a dataset of this process: one schema, read in batches, once or often."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.packing import cuts
from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import blanks
from hoodie.format.schema.evolution import evolve
from hoodie.format.schema.int96 import with_utc
from hoodie.format.schema.plain_types import plain_batches, plain_schema
from hoodie.format.schema.table_schema import conform
from hoodie.storage import StoreSpec, open_store
from hoodie.write.adopting.source_files import SourceFile, open_source

_BATCH_ROWS: Final = 128 * 1024
_BATCH_BYTES: Final = 64 * 1024 * 1024
_INTEGERS: Final = (pa.int32(), pa.int64())


def unified(files: Sequence[SourceFile], where: str, *, has_dates: bool = True) -> pa.Schema:
    """Return one schema for all files: the columns of the first, then further columns, then those of the folders.

    A column has the widest of its types: int and long become long, float and double become double, integers and doubles
    become double if each value is exact, decimals get the most digits. A column that a file lacks allows null. Columns
    of folders are int, long or date (with `has_dates`) if all their texts are, else text.

    Raises: SchemaMismatchError, with the two files, for types that have no common one; for a column that no file has
        with a type.
    """
    firsts: dict[pa.Schema, SourceFile] = {}
    for file in files:
        firsts.setdefault(file.schema, file)
    schema: pa.Schema = files[0].schema
    for found, file in firsts.items():
        if len(firsts) > 1:
            found = pa.schema([child.with_nullable(True) for child in found])
            schema = pa.schema([child.with_nullable(True) for child in schema])
        try:
            schema = evolve(schema, found)
        except SchemaMismatchError as error:
            try:
                schema = evolve(found, schema)
            except SchemaMismatchError:
                raise SchemaMismatchError(
                    f"{where}: {file.path} does not have the columns of {files[0].path} ({error}); adopt the files in "
                    "two tables, or rewrite one of them"
                ) from error
    for file in files:
        if untyped := sorted(set(file.untyped) - set(schema.names)):
            raise SchemaMismatchError(
                f"{where}: column {untyped[0]!r} of {file.path} has only nulls and no type, and no other file names "
                "its type: write the file with a type of this column, or without the column"
            )
    if any(file.untyped for file in files):
        nulls = {name for file in files for name in file.untyped}
        schema = pa.schema([child.with_nullable(True) if child.name in nulls else child for child in schema])
    names = [name for name, _ in files[0].values]
    kinds = (*_INTEGERS, pa.date32()) if has_dates else _INTEGERS
    return pa.schema([*schema, *(pa.field(name, _type_of_texts(name, files, kinds)) for name in names)])


def _type_of_texts(name: str, files: Sequence[SourceFile], kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type of a column of folders: a type in which all its texts stay what they are, else text."""
    texts = pa.array({text for file in files for column, text in file.values if column == name} - {None}, pa.string())
    for kind in kinds:
        try:
            same = pc.equal(pc.cast(texts, kind).cast(pa.string()), texts)
        except pa.ArrowInvalid:
            continue
        if len(texts) and pc.all(same).as_py():
            return kind
    return pa.string()


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The rows of files in one schema, as threads of this process read them (`PartedDataset`).

    `streams_max`: the greatest number of streams; None: as many as there are threads. Memory: for each stream a batch
    of at most 64 MiB, and one row group's compressed bytes.
    """

    store: StoreSpec
    files: tuple[SourceFile, ...]
    schema: pa.Schema
    streams_max: int | None = None

    def parts(self, count: int) -> list[Iterator[pa.RecordBatch]]:
        """Return up to `count` streams of about the same size that together have every row.

        The streams raise: CorruptFileError, MissingFileError: a file changed since it was planned, or is damaged;
        SchemaMismatchError: a value does not fit the schema.
        """
        return [self._batches(part) for part in self._pieces(min(count, self.streams_max or count))]

    def of_columns(self, names: Sequence[str]) -> SourceRows:
        """Return the same rows with some columns."""
        return SourceRows(self.store, self.files, pa.schema([self.schema.field(name) for name in names]))

    def _pieces(self, count: int) -> list[list[tuple[SourceFile, list[int]]]]:
        """Divide the row groups of all files into up to `count` parts; row groups of a file stay together in a part."""
        groups = [(file, number) for file in self.files for number in range(len(file.row_groups))]
        parts: list[list[tuple[SourceFile, list[int]]]] = []
        for start, end in cuts([file.row_groups[number][1] for file, number in groups], count):
            by_file = [list(own) for _, own in groupby(groups[start:end], key=lambda group: id(group[0]))]
            parts.append([(own[0][0], [number for _, number in own]) for own in by_file])
        return parts or [[]]

    def _batches(self, pieces: Sequence[tuple[SourceFile, list[int]]]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.store)
        for file, groups in pieces:
            where = store.uri(file.path)
            try:
                yield from self.of_file(file, groups)
            except SchemaMismatchError as error:
                raise SchemaMismatchError(f"{where}: {error}") from error

    def of_file(self, file: SourceFile, groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the batches of one file, or of some of its row groups. Raises: as the streams of `parts`."""
        chosen = range(len(file.row_groups)) if groups is None else groups
        given = path_scalars(file, self.schema)
        wanted = pa.schema([child for child in self.schema if child.name not in given])
        stored = {*file.schema.names, *file.untyped}
        names = [name for name in wanted.names if name in stored]
        if not names:
            yield from self._without_columns(file, chosen, given)
            return
        size = sum(file.row_groups[number][1] for number in chosen)
        rows = sum(file.row_groups[number][0] for number in chosen)
        step = max(1, min(_BATCH_ROWS, rows * _BATCH_BYTES // max(size, 1)))
        done = 0
        with open_source(open_store(self.store), file.path, file.size_bytes) as (parquet, _):
            for found in parquet.iter_batches(step, row_groups=list(chosen), columns=names, use_threads=False):
                for batch in plain_batches(found, plain_schema(found.schema), done):
                    done += batch.num_rows
                    yield self._whole(conform(_with_points(batch, file.int96), wanted), given)

    def _without_columns(
        self, file: SourceFile, groups: Sequence[int], given: Mapping[str, pa.Scalar]
    ) -> Iterator[pa.RecordBatch]:
        for number in groups:
            rows = file.row_groups[number][0]
            for start in range(0, rows, _BATCH_ROWS):
                count = min(_BATCH_ROWS, rows - start)
                columns = [
                    pa.repeat(given[child.name], count)
                    if child.name in given
                    else blanks(child.type, count, is_null=True)
                    for child in self.schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _whole(self, batch: pa.RecordBatch, given: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
        """Return a batch with the columns of the folders, in the order of the schema."""
        if not given:
            return batch
        columns = [
            pa.repeat(given[name], batch.num_rows) if name in given else batch.column(name)
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _with_points(batch: pa.RecordBatch, int96: Collection[str]) -> pa.RecordBatch:
    """Return the batch with UTC as the zone of the columns of INT96."""
    if not int96:
        return batch
    columns = {
        name: column.cast(with_utc(column.type)) if name in int96 else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def path_scalars(file: SourceFile, schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of a file's columns of folders that the schema has, in its types."""
    types = {child.name: child.type for child in schema}
    return {name: pc.cast(pa.scalar(text, pa.string()), types[name]) for name, text in file.values if name in types}
