"""Convert bare Avro binary rows to Arrow tables and back, one column at a time (docs/format/table.md §4.3)."""

from __future__ import annotations

from hoodie.format.avro.rows.decode import decode_rows
from hoodie.format.avro.rows.encode import encode_rows

__all__ = ["decode_rows", "encode_rows"]
