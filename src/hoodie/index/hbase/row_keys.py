"""Row keys of HBase: the record keys in UTF-8."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import RecordKeyError
from hoodie.index.hbase.versions import IDENTITY_ROW

BYTES_MAX: Final = 2**15 - 1
"""Length of a row key that HBase accepts (`HConstants.MAX_ROW_LENGTH`)."""
_SHOWN = 40


def row_keys(keys: pa.StringArray) -> list[bytes]:
    """Return the row keys of record keys. Memory: a Python object for each.

    Raises: RecordKeyError for a key that HBase cannot have as a row key, or that is the row of the index's identity.
    """
    binary = keys.cast(pa.binary())
    lengths = pc.binary_length(binary)
    longest = pc.max(lengths).as_py() or 0
    if longest > BYTES_MAX:
        example = keys[pc.index(lengths, longest).as_py()].as_py()
        raise RecordKeyError(
            f"a record key has {longest:,} bytes, and HBase has row keys of at most {BYTES_MAX:,}: "
            f"{example[:_SHOWN]!r}…; nothing was committed. Shorten the key, or use another index"
        )
    if pc.index(binary, IDENTITY_ROW).as_py() >= 0:
        raise RecordKeyError(f"the record key {IDENTITY_ROW.decode()!r} is the row of the HBase index's identity")
    found: list[bytes] = binary.to_pylist()
    return found
