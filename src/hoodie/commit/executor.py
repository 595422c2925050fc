"""The executor of a planned service, as the inflight file of its instant names it.

It is commit metadata with the owner's text, because the JVM reads it when it rolls the service back by listing.
"""

from __future__ import annotations

from typing import Final

from hoodie.errors import CorruptFileError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action

_EXECUTOR: Final = "hoodie.python.executor"
_AVRO: Final = b"Obj\x01"
_OPERATIONS: Final = {
    Action.COMPACTION: WriteOperation.COMPACT,
    Action.LOG_COMPACTION: WriteOperation.LOG_COMPACT,
    Action.CLUSTERING: WriteOperation.CLUSTER,
}


def executor_content(action: Action, text: bytes, version: TableVersion) -> bytes:
    """Return the content of the inflight file of a planned service; `text` names its executor."""
    metadata = CommitMetadata(
        operation_type=_OPERATIONS[action].value,
        extra_metadata={_EXECUTOR: text.decode()},
        # With replaced file ids, though none, it is written as the metadata of a replace commit.
        partition_to_replace_file_ids={} if action is Action.CLUSTERING else None,
    )
    return metadata.to_bytes(version)


def executor_text(content: bytes) -> bytes:
    """Return the text that names the executor; empty if the content names none, as that of a JVM.

    Earlier releases stored the text of compactions as it is.
    """
    if not content.startswith(_AVRO):
        return content
    try:
        metadata = CommitMetadata.parse(content, path="the inflight file of a planned service")
    except CorruptFileError:
        return b""
    return metadata.extra_metadata.get(_EXECUTOR, "").encode()
