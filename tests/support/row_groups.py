"""Base files of many small row groups, and which of these are copied to the next base file."""

from __future__ import annotations

from functools import partial

import pytest

from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.stored_groups import StoredGroups
from hoodie.metadata.kinds import registry


def small_row_groups(monkeypatch: pytest.MonkeyPatch, row_group_bytes: int = 5000) -> list[int]:
    """Write row groups of so many Arrow bytes in this process; return the list of the numbers of those copied."""
    found: list[int] = []
    copy = BaseFileWriter.copy

    def noted(self: BaseFileWriter, stored: StoredGroups, group: int) -> None:
        found.append(group)
        copy(self, stored, group)

    monkeypatch.setattr(BaseFileWriter, "copy", noted)
    monkeypatch.setattr(registry, "ParquetOptions", partial(ParquetOptions, row_group_bytes=row_group_bytes))
    return found
