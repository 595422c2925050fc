"""Files of an archived timeline of version 6: log files of Avro records, one for each state of an instant.

On-disk format: docs/format/table.md §2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import (
    RecordSchema,
    decode_record,
    is_avro_file,
    parse_record,
    record_body,
    record_to_bytes,
)
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.log.data_block import data_records, records_block
from hoodie.format.log.log_block import BlockType, HeaderKey, parse_log_blocks
from hoodie.format.table.versions import TableVersion

MERGE_PLAN_FILE: Final = "mergeArchivePlan"
"""Name of the plan by which a Hudi of 0.x merges archive files; the merged file is not whole while it exists."""
_LOG_NAME = re.compile(r"\.commits_\.archive\.(\d+)(?:_.*)?", re.ASCII)
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

_PLANS: Final = {
    "HoodieCleanerPlan": ("hoodieCleanerPlan", "clean"),
    "HoodieCompactionPlan": ("hoodieCompactionPlan", "compaction"),
    "HoodieRequestedReplaceMetadata": ("hoodieRequestedReplaceMetadata", "replacecommit"),
}
"""The field of a plan, and the action of its requested file, by the record that it has."""
_COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
_ENTRY: Final = "HoodieArchivedMetaEntry"
_ENTRY_VERSION: Final = 1


def archive_log_name(number: int) -> str:
    """Return the name of the archive file with this number."""
    return f".commits_.archive.{number}_1-0-1"


def archive_log_to_bytes(instants: Iterable[ArchivedInstant]) -> bytes:
    """Encode completed instants as an archive file: one block with a record for each state of each instant."""
    schema = RecordSchema.load(_ENTRY)
    records = (record_body(schema, entry) for instant in instants for entry in _entries(instant))
    return records_block(records, schema.text).to_bytes()


def _entries(instant: ArchivedInstant) -> Iterator[dict[str, Any]]:
    """Yield the records of the requested, inflight and completed state, in this order."""
    common = {"commitTime": instant.requested_time, "version": _ENTRY_VERSION}
    action, plan = instant.action, {}
    if instant.plan and is_avro_file(instant.plan):
        schema, content = parse_record(instant.plan, path=f"the plan of {instant.requested_time}")
        name, action = _PLANS.get(schema.name, ("", action))
        plan = {name: content} if name else {}
    yield {**common, **plan, "actionType": action, "actionState": "REQUESTED"}
    yield {**common, "actionType": action, "actionState": "INFLIGHT"}
    name, _ = _CONTENT.get(instant.action, ("", ""))
    completed = {name: _content(instant)} if name and instant.metadata else {}
    ended = {"stateTransitionTime": instant.completion_time}
    yield {**common, **completed, **ended, "actionType": instant.action, "actionState": _COMPLETED}


def _content(instant: ArchivedInstant) -> Mapping[str, Any]:
    """Return the content of the completed file: commits of version 6 are JSON, the archive has them in Avro."""
    content, path = instant.metadata or b"", f"{instant.requested_time}.{instant.action}"
    if instant.action in _COMMITS:
        content = CommitMetadata.parse(content, path=path).to_bytes(TableVersion.NINE)
    return parse_record(content, path=path)[1]


def archive_log_number(name: str) -> int | None:
    """Return the number in the name of an archive file; greater is newer; None for other files."""
    match = _LOG_NAME.fullmatch(name)
    return None if match is None else int(match[1])


def parse_archive_log(data: bytes, *, path: str) -> Iterator[ArchivedInstant]:
    """Yield the completed instants of an archive file; `metadata` and `plan` are contents of instant files, in Avro.

    Raises:
        CorruptFileError: the file is damaged, or has other records.
        UnsupportedError: a schema exceeds the limits of `format.avro.safe_schema`.
    """
    plans: dict[str, bytes] = {}
    for block in parse_log_blocks(data, path=path):
        if block.block_type is BlockType.CORRUPT:
            raise CorruptFileError("a whole log block expected, found a torn one", path=path, offset=block.offset)
        if block.block_type is not BlockType.AVRO_DATA:
            continue
        schema = RecordSchema.of(block.headers.get(HeaderKey.SCHEMA, ""), path=path)
        for record, offset in data_records(block, path=path):
            entry = decode_record(schema, record, path=path, offset=offset)
            found = _completed(entry, plans, path)
            if found is not None:
                yield found
            elif (plan := _plan(entry, path)) is not None:
                plans[str(entry.get("commitTime"))] = plan


def merged_file_of(plan: bytes, *, path: str) -> str:
    """Return the name of the file that a merge plan creates; empty for a plan without one. Raises: CorruptFileError."""
    name = parse_record(plan, path=path)[1].get("mergedArchiveFileName")
    return name if isinstance(name, str) else ""


def _plan(entry: Mapping[str, Any], path: str) -> bytes | None:
    """Return the plan that the record of a requested instant has, as its file had it; None if it has none."""
    for record_name, (name, _) in _PLANS.items():
        if entry.get(name) is not None:
            return _to_bytes(record_name, entry[name], f"{name} of {entry.get('commitTime')}", path)
    return None


def _to_bytes(record_name: str, content: Any, what: str, path: str) -> bytes:
    try:
        return record_to_bytes(RecordSchema.load(record_name), content)
    except ValueError as error:
        raise CorruptFileError(f"{what}: {error}", path=path) from error


def _completed(entry: Mapping[str, Any], plans: dict[str, bytes], path: str) -> ArchivedInstant | None:
    """Return the instant of a record; None for other states than completed. A record without state is completed.

    `plans` are those of the requested instants before it; the one of the instant is taken out.
    """
    if (entry.get("actionState") or _COMPLETED) != _COMPLETED:
        return None
    time, action = entry.get("commitTime"), entry.get("actionType")
    if not isinstance(time, str) or not isinstance(action, str):
        raise CorruptFileError("expected commitTime and actionType in a record of the archived timeline", path=path)
    name, record_name = _CONTENT.get(action, ("", ""))
    content = entry.get(name)
    metadata = None if content is None else _to_bytes(record_name, content, f"{name} of {time}", path)
    ended = entry.get("stateTransitionTime")
    return ArchivedInstant(
        requested_time=time,
        completion_time=ended if isinstance(ended, str) and ended else time,
        action=action,
        metadata=metadata,
        plan=plans.pop(time, None),
    )
