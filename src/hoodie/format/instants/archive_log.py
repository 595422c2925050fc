"""Log files of an archived timeline, table version 6: Avro records, one for each state of an instant.

On-disk format: docs/format/table.md §2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, decode_record, parse_record, record_to_bytes
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.log.data_block import data_records
from hoodie.format.log.log_block import BlockType, HeaderKey, parse_log_blocks

MERGE_PLAN_FILE: Final = "mergeArchivePlan"
"""Name of the plan by which a Hudi of 0.x merges archive files; the merged file is not whole while it exists."""
_NAME = re.compile(r"\.commits_\.archive\.(\d+)(?:_.*)?", re.ASCII)
_COMPLETED = "COMPLETED"
_CONTENT: Final = {
    "commit": ("hoodieCommitMetadata", "HoodieCommitMetadata"),
    "deltacommit": ("hoodieCommitMetadata", "HoodieCommitMetadata"),
    "replacecommit": ("hoodieReplaceCommitMetadata", "HoodieReplaceCommitMetadata"),
    "clean": ("hoodieCleanMetadata", "HoodieCleanMetadata"),
    "rollback": ("hoodieRollbackMetadata", "HoodieRollbackMetadata"),
    "savepoint": ("hoodieSavePointMetadata", "HoodieSavepointMetadata"),
    "indexing": ("hoodieIndexCommitMetadata", "HoodieIndexCommitMetadata"),
}
"""The field of a completed action's content, and the record that it has."""


def archive_log_number(name: str) -> int | None:
    """Return the number in the name of an archive file; greater is newer; None for other files."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def parse_archive_log(data: bytes, *, path: str) -> Iterator[ArchivedInstant]:
    """Yield the completed instants of an archive file; `metadata` is the content of an instant file, in Avro.

    Raises:
        CorruptFileError: the file is damaged, or has other records.
        UnsupportedError: a schema exceeds the limits of `format.avro.safe_schema`.
    """
    for block in parse_log_blocks(data, path=path):
        if block.block_type is BlockType.CORRUPT:
            raise CorruptFileError("a whole log block expected, found a torn one", path=path, offset=block.offset)
        if block.block_type is not BlockType.AVRO_DATA:
            continue
        schema = RecordSchema.of(block.headers.get(HeaderKey.SCHEMA, ""), path=path)
        for record, offset in data_records(block, path=path):
            found = _completed(decode_record(schema, record, path=path, offset=offset), path)
            if found is not None:
                yield found


def merged_file_of(plan: bytes, *, path: str) -> str:
    """Return the name of the file that a merge plan creates; empty for a plan without one. Raises: CorruptFileError."""
    name = parse_record(plan, path=path)[1].get("mergedArchiveFileName")
    return name if isinstance(name, str) else ""


def _completed(entry: Mapping[str, Any], path: str) -> ArchivedInstant | None:
    """Return the instant of a record; None for other states than completed. A record without state is completed."""
    if (entry.get("actionState") or _COMPLETED) != _COMPLETED:
        return None
    time, action = entry.get("commitTime"), entry.get("actionType")
    if not isinstance(time, str) or not isinstance(action, str):
        raise CorruptFileError("expected commitTime and actionType in a record of the archived timeline", path=path)
    name, record_name = _CONTENT.get(action, ("", ""))
    content = entry.get(name)
    try:
        metadata = None if content is None else record_to_bytes(RecordSchema.load(record_name), content)
    except ValueError as error:
        raise CorruptFileError(f"{name} of {time}: {error}", path=path) from error
    ended = entry.get("stateTransitionTime")
    return ArchivedInstant(
        requested_time=time,
        completion_time=ended if isinstance(ended, str) and ended else time,
        action=action,
        metadata=metadata,
    )
