"""What an overwrite is to replace, in the extra metadata of its plan, and the files that a commit gave up.

The completed file of an overwrite names the file groups that it replaced, and no other file does. A repair that writes
a lost completed file anew derives them from this entry (docs/format/table.md §3.4). Files that are given up:
docs/operations/verify-and-repair.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from hoodie.errors import CorruptFileError
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.instants.replaced_files import FileGroup
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata

REPLACES: Final = "hoodie.python.replaces"
ACCEPTED_LOSS: Final = "hoodie.python.accepted.loss"


@dataclass(frozen=True, slots=True)
class PlannedReplacement:
    """What a write of this library replaces.

    `groups`: exactly these file groups. None: all file groups that the table had when the write began, of the
    partitions that get rows and of `partitions`; of an overwrite of the whole table, all. `lost`: the paths of the
    files that an accepted loss gives up.
    """

    partitions: tuple[str, ...] = ()
    groups: tuple[FileGroup, ...] | None = None
    lost: tuple[str, ...] = ()

    @classmethod
    def of_groups(cls, groups: Iterable[FileGroup], lost: Iterable[str]) -> PlannedReplacement:
        """Return the replacement of exactly these file groups, because these files of them are lost."""
        return cls(groups=tuple(sorted(groups)), lost=tuple(lost))

    @classmethod
    def parse(cls, content: bytes, *, path: str) -> PlannedReplacement | None:
        """Parse the requested file of a replace commit; None if its writer stored nothing, or it is damaged."""
        try:
            extra = RequestedReplaceMetadata.parse(content, path=path).extra_metadata if content else None
            found = json.loads((extra or {}).get(REPLACES) or "null")
        except (CorruptFileError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        partitions, groups, lost = (found.get(name, []) for name in ("partitions", "groups", "lost"))
        is_known = _is_texts(partitions) and _is_texts(lost) and isinstance(groups, list)
        if not is_known or not all(_is_texts(group) and len(group) == 2 for group in groups):
            return None
        pairs = tuple((partition_path, file_id) for partition_path, file_id in groups)
        return cls(tuple(partitions), pairs if "groups" in found else None, tuple(lost))

    def to_plan(self) -> bytes:
        """Return the content of the requested file."""
        stored: dict[str, Any] = {"partitions": self.partitions}
        if self.groups is not None:
            stored = {"groups": self.groups, "lost": self.lost}
        return RequestedReplaceMetadata(extra_metadata={REPLACES: json.dumps(stored)}).to_bytes()


def accepted_losses(commits: Iterable[CommitMetadata]) -> Iterator[str]:
    """Yield the paths of the files that commits gave up."""
    for commit in commits:
        try:
            found = json.loads((commit.extra_metadata or {}).get(ACCEPTED_LOSS) or "[]")
        except ValueError:
            continue
        yield from (path for path in found if isinstance(path, str)) if isinstance(found, list) else ()


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
