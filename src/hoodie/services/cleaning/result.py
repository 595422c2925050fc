"""The result of a clean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.services.result import ServiceResult


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CleanResult(ServiceResult):
    """The outcome of a clean. `counts` has `files_deleted`, `bytes_freed` and `partitions_dropped`.

    `files`: the names of the files by partition path; only a dry run fills it. `oldest_readable`: the requested time of
    the oldest instant from which on every snapshot stays readable; None if all do. `readable_savepoints`: older commits
    whose snapshots stay readable, because a savepoint keeps their files.
    """

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    oldest_readable: str | None = None
    readable_savepoints: tuple[str, ...] = ()
