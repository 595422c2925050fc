"""The key generator of a table whose properties do not tell how its keys are written: a stored row does.

On-disk format: docs/format/table.md §3.3 (COMPLEX keys of one field before table version 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from hoodie.config.writes import NEW_KEY_ENCODING
from hoodie.errors import InvalidConfigError
from hoodie.files.merged_slice import read_file_slice
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView


def view_key_generator(view: TableView, properties: Mapping[str, str] | None = None) -> KeyGenerator:
    """Return the key generator of a table; `properties` are the options of a write.

    In a table whose version has two encodings of its keys, the keys are written as those of the stored rows. This costs
    one listing of the table and a read of the first rows of a file slice. In a table without rows, the option decides.

    Raises: InvalidConfigError if the option contradicts the stored rows; as `table_key_generator`.
    """
    generator = table_key_generator(view.config, properties)
    if not generator.has_two_encodings or not view.config.populates_meta_fields:
        return generator
    if (stored := view.fact(_names_stored_keys)) is None:
        return generator
    if generator.with_names not in (None, stored):
        raise InvalidConfigError(
            f"{view.store.uri('')}: {NEW_KEY_ENCODING.key}={str(stored).lower()} contradicts the stored keys, which "
            f"are {'field:value' if stored else 'bare values'}; omit the option"
        )
    return replace(generator, with_names=stored)


def _names_stored_keys(view: TableView) -> bool | None:
    """Return whether the stored keys are `field:value`; None if the table has no row."""
    (field,) = view.config.record_key_fields
    column = field.partition(".")[0]
    read = replace(view.slice_read(), columns=(RECORD_KEY, column))
    bare = replace(table_key_generator(view.config), with_names=False)
    for file_slice in sorted(list_slices(view), key=lambda found: found.size_bytes):
        with closing(read_file_slice(view.store, file_slice, read)) as pieces:
            first = next((piece for piece in pieces if piece.num_rows), None)
        if first is not None:
            row = first.slice(0, 1).combine_chunks().to_batches()[0]
            return _is_named(view, row, bare.record_keys(row, stored=True)[0].as_py(), field)
    return None


def _is_named(view: TableView, row: pa.RecordBatch, value: str, field: str) -> bool:
    stored = row.column(RECORD_KEY)[0].as_py()
    if stored not in (value, f"{field}:{value}"):
        raise InvalidConfigError(
            f"{view.store.uri('')}: expected the stored key {value!r} or '{field}:{value}', found {stored!r}; rows of "
            "this table have another key column"
        )
    return bool(stored != value)
