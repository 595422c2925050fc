"""The files that a write found in the file groups that it changed, as its metadata and the plan of a service name them.

The entry of a base file names the file before it; a plan has all files that the service reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hoodie.format.filenames import BaseFileName, LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import CommitMetadata

FileGroup = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a write found in a file group that it changed: the names of the files that it is known to have read.

    `is_ended`: the write replaced the whole file group; its newest files were there, even if they are not named.
    """

    group: FileGroup
    base: BaseFileName | None
    logs: tuple[LogFileName, ...] = ()
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """What one write found: the file groups that it wrote, and what it replaced."""

    groups: frozenset[FileGroup] = frozenset()
    replaced: tuple[Replaced, ...] = ()

    def __len__(self) -> int:
        return len(self.groups) + len(self.replaced)


def found_by(commit: CommitMetadata, read: Iterable[tuple[str, str]] = ()) -> Findings:
    """Return what a write found; `read` are the partition paths and names of the files in the plan of a service."""
    groups = frozenset((stat.partition_path or "", stat.file_id or "") for stat in commit.write_stats())
    return Findings(groups, tuple(_replaced(commit, read)))


def _replaced(commit: CommitMetadata, read: Iterable[tuple[str, str]]) -> Iterator[Replaced]:
    for stat in commit.write_stats():
        group = (stat.partition_path or "", stat.file_id or "")
        base = BaseFileName.parse(name_of(stat.prev_base_file or stat.base_file or ""))
        if base is not None and base.file_id == stat.file_id:
            yield Replaced(group, base)
    planned: dict[FileGroup, list[BaseFileName | LogFileName]] = {}
    for path, text in read:
        name = parse_data_file(text)
        if name is not None:
            planned.setdefault((path, name.file_id), []).append(name)
    for group, names in planned.items():
        bases = (name for name in names if isinstance(name, BaseFileName))
        yield Replaced(group, next(bases, None), tuple(name for name in names if isinstance(name, LogFileName)))
    for path, file_ids in (commit.partition_to_replace_file_ids or {}).items():
        yield from (Replaced((path, file_id), None, is_ended=True) for file_id in file_ids)
