"""Columns of a base file that have the same text in each row, as the file's name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa


class SameText:
    """Adds the columns of `values` to the other columns of a schema: each has one text, in all rows.

    They are dictionary-encoded: a row costs four bytes of memory, and the Parquet writer compares no texts.
    """

    def __init__(self, values: Mapping[str, str], schema: pa.Schema) -> None:
        encoded = pa.dictionary(pa.int32(), pa.string())
        names = set(schema.names)
        self._values = {name: text for name, text in values.items() if name in names}
        columns = [child.with_type(encoded) if child.name in values else child for child in schema]
        self._schema = pa.schema(columns, metadata=schema.metadata)
        self.other_schema = pa.schema([child for child in schema if child.name not in values])
        self.other_columns = self.other_schema.names
        self.row_bytes = sum(len(text.encode()) + 4 for text in self._values.values())
        """The bytes of a row's values for a reader that decodes them."""

    def added(self, rows: pa.Table) -> pa.Table:
        """Return the rows with all columns of the file."""
        if not self._values:
            return rows
        numbers = pa.array(np.zeros(rows.num_rows, np.int32))
        columns = [
            pa.DictionaryArray.from_arrays(numbers, pa.array([self._values[name]], pa.string()))
            if name in self._values
            else rows[name]
            for name in self._schema.names
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)
