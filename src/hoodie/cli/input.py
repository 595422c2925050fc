"""Read the input files of writes (Parquet, CSV, JSON lines) with pyarrow as one stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from hoodie.errors import InvalidConfigError, SchemaMismatchError

_COMPRESSIONS = frozenset({".gz", ".bz2", ".zst", ".lz4"})
_JSON_NAMES = frozenset({".json", ".jsonl", ".ndjson"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """Rules for the conversion of text to values.

    `types` has types by column name; the types of other columns are inferred. `null_texts` are the strings that are
    null in CSV. An empty CSV field is null; an empty field in quotes is an empty string.
    """

    types: pa.Schema | None = None
    null_texts: tuple[str, ...] = ()


def open_files(paths: Sequence[str], options: InputOptions) -> pa.RecordBatchReader:
    """Open the files as one stream, in order. Memory: a block of one file.

    Raises: InvalidConfigError if a file is missing or has another format; SchemaMismatchError if the files' columns
    differ. If a file is damaged after its beginning, the stream raises pyarrow's error.
    """
    readers = [_open_file(path, options) for path in paths]
    schema = readers[0].schema
    for path, reader in zip(paths, readers, strict=True):
        if reader.schema != schema:
            raise SchemaMismatchError(
                f"{path}: expected the columns of {paths[0]} ({_described(schema)}), found "
                f"{_described(reader.schema)}; write the files one by one"
            )

    def batches() -> Iterator[pa.RecordBatch]:
        for reader in readers:
            yield from reader

    return pa.RecordBatchReader.from_batches(schema, batches())


def infers_types(path: str) -> bool:
    """Return whether the types of columns that `InputOptions.types` lacks are inferred: the file declares none."""
    name = Path(path)
    return (name.with_suffix("").suffix if name.suffix in _COMPRESSIONS else name.suffix) != ".parquet"


def _open_file(name: str, options: InputOptions) -> pa.RecordBatchReader:
    path = Path(name)
    if not path.is_file():
        raise InvalidConfigError(f"{name}: no such file")
    kind = path.with_suffix("").suffix if path.suffix in _COMPRESSIONS else path.suffix
    try:
        if kind == ".parquet":
            return _open_parquet(path)
        if kind == ".csv":
            return _open_csv(path, options)
        if kind in _JSON_NAMES:
            return _open_json(path, options)
    except pa.ArrowInvalid as error:
        raise InvalidConfigError(f"{name}: expected a {kind[1:]} file, but it cannot be read ({error})") from error
    raise InvalidConfigError(f"{name}: expected .parquet, .csv, or one of {', '.join(sorted(_JSON_NAMES))}")


def _open_parquet(path: Path) -> pa.RecordBatchReader:
    file = pq.ParquetFile(path)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())


def _open_csv(path: Path, options: InputOptions) -> pa.RecordBatchReader:
    convert = pa_csv.ConvertOptions(
        column_types=options.types,
        null_values=["", *options.null_texts],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pa_csv.open_csv(path, convert_options=convert)


def _open_json(path: Path, options: InputOptions) -> pa.RecordBatchReader:
    """Open a JSON lines file; a column of `types` that no line has is null, because JSON may omit nulls."""
    parse = pa_json.ParseOptions(explicit_schema=options.types)
    source = pa.input_stream(str(path))
    # pyarrow 18 has no streaming reader.
    if not hasattr(pa_json, "open_json"):
        return pa_json.read_json(source, parse_options=parse).to_reader()
    return pa_json.open_json(source, parse_options=parse)


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
