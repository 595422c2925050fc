"""Partition columns that data files do not have: their values are the texts in the partition path.

On-disk format: docs/format/table.md §3.8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import PartitionPathError
from hoodie.format.schema.java_text import java_text
from hoodie.records.keys.key_generator import KeyGenerator


def text_schema(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the schema in which these columns are text."""
    return pa.schema([pa.field(child.name, pa.string()) if child.name in names else child for child in schema])


def with_texts(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Return the batch in which these columns are the texts that partition paths contain.

    Raises: UnsupportedError for types without a text.
    """
    wrong = [name for name in batch.schema.names if name in names and not pa.types.is_string(batch.column(name).type)]
    for name in wrong:
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, pa.field(name, pa.string()), java_text(batch.column(place)))
    return batch


def check_read_back(rows: pa.RecordBatch, paths: pa.StringArray, generator: KeyGenerator) -> None:
    """Refuse texts that differ in a read of the partition path: it would be the only place that has them.

    Each distinct path is read once. Raises: PartitionPathError, with a few of the texts.
    """
    coded = paths.dictionary_encode()
    found: list[Mapping[str, str | None]] = [
        generator.partition_values(path) or {} for path in coded.dictionary.to_pylist()
    ]
    for name in generator.partition_fields:
        texts = pa.array([values.get(name) for values in found], pa.string()).take(coded.indices)
        given = rows.column(name)
        same = pc.or_kleene(pc.fill_null(pc.equal(texts, given), False), pc.and_(pc.is_null(texts), pc.is_null(given)))
        wrong = given.filter(pc.invert(same))
        if len(wrong):
            raise PartitionPathError(
                f"{len(wrong):,} values of the partition column {name!r} cannot be read back from their path, e.g. "
                f"{wrong.unique().slice(0, 3).to_pylist()}, and the table's data files do not have this column: write "
                "null instead of empty text, and texts without slashes"
            )
