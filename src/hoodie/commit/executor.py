"""The executor of a planned service, as the inflight file of its instant names it.

A compaction's inflight file is the owner's text. A clustering's is commit metadata with that text, because the JVM
reads it when it rolls the clustering back by listing.
"""

from __future__ import annotations

from typing import Final

from hoodie.errors import CorruptFileError
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action

_EXECUTOR: Final = "hoodie.python.executor"
_AVRO: Final = b"Obj\x01"


def executor_content(action: Action, text: bytes, version: TableVersion) -> bytes:
    """Return the content of the inflight file of a planned service; `text` names its executor."""
    if action is not Action.CLUSTERING:
        return text
    extra = {_EXECUTOR: text.decode()}
    operation = WriteOperation.CLUSTER.value
    # With replaced file ids, though none, it is written as the metadata of a replace commit.
    metadata = CommitMetadata(operation_type=operation, extra_metadata=extra, partition_to_replace_file_ids={})
    return metadata.to_bytes(version)


def executor_text(content: bytes) -> bytes:
    """Return the text that names the executor; empty if the content names none, as that of a JVM."""
    if not content.startswith(_AVRO):
        return content
    try:
        metadata = CommitMetadata.parse(content, path="the inflight file of a planned service")
    except CorruptFileError:
        return b""
    return metadata.extra_metadata.get(_EXECUTOR, "").encode()
