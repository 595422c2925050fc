"""Make record keys and partition paths of rows: from Hudi's meta columns if present, else from the key columns.

A key contains the text of values, so values are first converted to the table's types: the text of a timestamp in
nanoseconds differs from the text of the same timestamp in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import SchemaMismatchError
from hoodie.format.schema.arrow_types import type_at
from hoodie.format.schema.table_schema import conform
from hoodie.records.change import PARTITION_PATH, RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator, is_text

_META = {name: pa.schema([pa.field(name, pa.string(), nullable=False)]) for name in (RECORD_KEY, PARTITION_PATH)}


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Makes record keys and partition paths of rows that may have no other columns. `schema` is the table schema."""

    generator: KeyGenerator
    schema: pa.Schema

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the columns among `names` from which record keys and partition paths are made.

        Columns that differ in case only are returned too, and all columns if there are no others: errors list them.

        Raises: SchemaMismatchError if a key column occurs twice.
        """
        fields = (*self.generator.record_key_fields, *self.generator.partition_fields)
        wanted = {RECORD_KEY, PARTITION_PATH, *_top_level(fields)}
        lower = {name.lower() for name in wanted}
        found = [name for name in names if name.lower() in lower]
        if len({*found} & wanted) < sum(name in wanted for name in found):
            raise SchemaMismatchError(f"keys: expected each key column once, found columns {list(names)}; drop one")
        return found or list(names)

    def tells_paths(self, schema: pa.Schema) -> bool:
        """Return whether partition paths can be made from rows of this schema."""
        return PARTITION_PATH in schema.names or not self.missing_paths(schema)

    def missing_paths(self, schema: pa.Schema) -> list[str]:
        """Return the partition fields that rows of this schema lack; a struct may lack the field that is inside it."""
        return _missing(schema, self.generator.partition_fields)

    def record_keys(self, rows: pa.RecordBatch) -> pa.StringArray:
        """Return the record key of every row.

        Raises: SchemaMismatchError if the rows have neither the key columns nor `_hoodie_record_key`, or values do not
        fit the table's types; RecordKeyError for null and empty keys.
        """
        names, fields = rows.schema.names, self.generator.record_key_fields
        if RECORD_KEY in names:
            return _meta_column(rows, RECORD_KEY)
        if not fields:
            raise SchemaMismatchError(
                f"the table makes its record keys automatically, so no columns name a record: expected the column "
                f"{RECORD_KEY} of rows that were read from the table, found columns {names}"
            )
        missing = _missing(rows.schema, fields)
        if missing:
            raise SchemaMismatchError(
                f"expected the record key columns {list(fields)} or the column {RECORD_KEY}, found columns {names}, "
                f"which lack {missing}"
            )
        return self.generator.record_keys(self._typed(rows, fields))

    def partition_paths(self, rows: pa.RecordBatch) -> pa.StringArray | None:
        """Return the partition path of every row; None if the columns do not determine it.

        Raises: SchemaMismatchError, PartitionPathError.
        """
        if PARTITION_PATH in rows.schema.names:
            return _meta_column(rows, PARTITION_PATH)
        if not self.tells_paths(rows.schema):
            return None
        return self.generator.partition_paths(self._typed(rows, self.generator.partition_fields))

    def table_of(self, values: pa.Array) -> pa.Table:
        """Return bare values as a table of keys.

        In tables with one key column, the values are values of that column. In tables with several key columns, they
        are texts of whole record keys. Texts are also whole record keys if the only key column is not a text column,
        and in tables with automatic keys. Structs have a value for each key column: by name, or without names in the
        order of the key columns.

        Raises: SchemaMismatchError if the table has not exactly one key column and the values are not texts.
        """
        fields = self.generator.record_key_fields
        if pa.types.is_struct(values.type) and fields and len(values):
            return _of_structs(values, fields)
        has_texts = is_text(values.type)
        if len(fields) == 1 and (not has_texts or is_text(type_at(self.schema, fields[0]))):
            first, *rest = fields[0].split(".")
            for name in reversed(rest):
                values = pa.StructArray.from_arrays([values], names=[name])
            return pa.table({first: values})
        if not fields and not has_texts and len(values):
            raise SchemaMismatchError(
                f"the table makes its record keys automatically: expected values of {RECORD_KEY}, which are texts, "
                f"found values of type {values.type}"
            )
        if not has_texts and len(values):
            raise SchemaMismatchError(
                f"keys of the columns {list(fields)}: expected a table with these columns, or whole record keys as "
                f"texts such as {','.join(f'{name}:...' for name in fields)!r}, found values of type {values.type}"
            )
        return pa.table({RECORD_KEY: values.cast(pa.string())})

    def _typed(self, rows: pa.RecordBatch, fields: Sequence[str]) -> pa.RecordBatch:
        """Return the columns of these fields in the table's types; the key generator checks for nulls."""
        names = _top_level(fields)
        if not names:  # A batch without columns would lose its row count.
            return rows
        return conform(rows.select(names), pa.schema([_optional(self.schema.field(name)) for name in names]))


def _missing(schema: pa.Schema, fields: Sequence[str]) -> list[str]:
    return [name for name in fields if type_at(schema, name) is None]


def _of_structs(values: pa.StructArray, fields: Sequence[str]) -> pa.Table:
    """Return keys of several columns as a table. Raises: SchemaMismatchError for fields that are no key columns."""
    names = [field.name for field in values.type]
    names = list(fields) if names == [""] * len(fields) else names
    if sorted(names) != sorted(fields) or any("." in name for name in fields):
        raise SchemaMismatchError(
            f"keys of the columns {list(fields)}: expected a table with these columns, or tuples of their values in "
            f"this order, found {values.type.num_fields} values named {names}"
        )
    return pa.Table.from_arrays(values.flatten(), names)


def _top_level(fields: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(field.split(".")[0] for field in fields))


def _meta_column(rows: pa.RecordBatch, name: str) -> pa.StringArray:
    return conform(rows.select([name]), _META[name]).column(0)


def _optional(field: pa.Field) -> pa.Field:
    """Return the field with all its children nullable: rows with only key values need not fill the rest of a struct."""
    if pa.types.is_struct(field.type):
        return pa.field(field.name, pa.struct([_optional(child) for child in field.type.fields]))
    return field.with_nullable(True)
