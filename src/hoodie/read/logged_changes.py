"""Change data that a commit logged: CDC log files that have both images of each change (docs/format/table.md §4.8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.files.damage import check_length, damaged_file, expected_file
from hoodie.files.logs.log_scan import problem_of_blocks
from hoodie.format.avro.rows import arrow_schema
from hoodie.format.filenames import BaseFileName, name_of
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.write_stat import NULL_COMMIT, WriteStat
from hoodie.format.log.cdc_block import CdcMode
from hoodie.format.log.data_block import read_data_block
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.table.table_config import TableConfig
from hoodie.storage import Store

_IMAGES = ("before", "after")
_Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LoggedGroups:
    """What a commit tells of its file groups: CDC log files with their sizes, and which groups are new."""

    files: Mapping[_Group, Mapping[str, int]] = field(default_factory=dict)
    new: frozenset[_Group] = frozenset()

    @classmethod
    def of(cls, config: TableConfig, commit: CommitMetadata) -> LoggedGroups:
        """Find the groups whose base file was rewritten and whose log has both images; the others are left out."""
        if not config.is_cdc_enabled or config.cdc_logging_mode != CdcMode.DATA_BEFORE_AFTER:
            return cls()
        stats: dict[_Group, list[WriteStat]] = {}
        for stat in commit.write_stats():
            stats.setdefault((stat.partition_path or "", stat.file_id), []).append(stat)
        files: dict[_Group, Mapping[str, int]] = {}
        new = set[_Group]()
        for group, found in stats.items():
            first = found[0]
            if len(found) > 1 or BaseFileName.parse(name_of(first.path or "")) is None:
                continue
            if first.cdc_stats:
                files[group] = first.cdc_stats
            elif first.prev_commit == NULL_COMMIT:
                new.add(group)
        return cls(files, frozenset(new))

    def tell_all_of(self, groups: set[_Group]) -> bool:
        """Return whether no state before the commit is needed to know the changes of these groups."""
        return groups <= {*self.files, *self.new}


def logged_rows(store: Store, files: Mapping[str, int], images: list[pa.Field]) -> Iterator[pa.Table] | None:
    """Return the logged changes block by block, with the columns `op`, `before` and `after`.

    None if a block lacks an image, or its images do not have exactly the columns `images`: the log is older than the
    table's columns, or was written with another logging mode. Memory: the log files, and the rows of a block.

    Raises: MissingFileError; CorruptFileError for a log that is not whole.
    """
    blocks = [(path, block) for path, size in files.items() for block in _blocks(store, path, size)]
    if not all(_has_images(block, images) for _, block in blocks):
        return None
    return (read_data_block(block, path=store.uri(path), columns=("op", *_IMAGES)) for path, block in blocks)


def _blocks(store: Store, path: str, size_bytes: int) -> list[LogBlock]:
    with expected_file(store, path):
        data = store.read(path)
    check_length(store, path, listed_bytes=size_bytes, found_bytes=len(data))
    blocks = parse_log_blocks(data, path=store.uri(path))
    problem = problem_of_blocks(blocks)
    if problem or any(block.block_type is not BlockType.CDC_DATA for block in blocks):
        raise damaged_file(store, path, problem or "expected blocks of change data only")
    return blocks


def _has_images(block: LogBlock, images: list[pa.Field]) -> bool:
    stored = arrow_schema(block.headers[HeaderKey.SCHEMA])
    wanted = [(child.name, child.type) for child in images]
    return all(
        stored.get_field_index(name) >= 0 and [(child.name, child.type) for child in stored.field(name).type] == wanted
        for name in _IMAGES
    )
