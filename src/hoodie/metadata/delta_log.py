"""Bytes of the metadata table's files: the log file of a delta commit, and base files.

docs/format/metadata.md §2, §3.4.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.format.hfile import hfile_to_bytes
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock
from hoodie.format.metadata_table.metadata_record import metadata_schema


def log_to_bytes(instant_time: str, keys: pa.Array, values: pa.Array, deleted_keys: pa.Array, partition: str) -> bytes:
    """Encode the rows and deletes of one file group in one delta commit: an HFile block, then a delete block.

    `keys` ascend strictly by their UTF-8 bytes. `keys` and `deleted_keys` may be empty; an empty block is omitted.
    """
    headers = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: metadata_schema()}
    blocks: list[LogBlock] = []
    if len(keys):
        content = hfile_to_bytes(keys, values, schema_json=metadata_schema())
        blocks.append(LogBlock(block_type=BlockType.HFILE_DATA, headers=headers, content=content))
    if len(deleted_keys):
        deletes = DeleteRecords.without_ordering(deleted_keys, partition)
        blocks.append(LogBlock(block_type=BlockType.DELETE, headers=headers, content=deletes.to_bytes()))
    return b"".join(block.to_bytes() for block in blocks)


def initial_log_to_bytes(instant_time: str) -> bytes:
    """Encode the log file that creates a new file group: one delete block without deletes, 80 bytes."""
    nothing = DeleteRecords.without_ordering(pa.array([], pa.string()), "")
    return LogBlock(
        block_type=BlockType.DELETE, headers={HeaderKey.INSTANT_TIME: instant_time}, content=nothing.to_bytes()
    ).to_bytes()


def base_file_to_bytes(keys: pa.Array, values: pa.Array) -> bytes:
    """Encode a base file; `keys` ascend strictly by their UTF-8 bytes."""
    as_bytes = keys.cast(pa.binary())
    first, last = (as_bytes[0].as_py(), as_bytes[-1].as_py()) if len(keys) else (b"", b"")
    return hfile_to_bytes(
        keys,
        values,
        schema_json=metadata_schema(),
        file_info={"minRecordKey": first, "maxRecordKey": last},
    )
