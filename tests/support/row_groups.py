"""Base files of many small row groups, and which of these are copied to the next base file."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

from hoodie.files import stored_groups
from hoodie.files.base_file import BaseFileWriter, ParquetOptions
from hoodie.files.stored_groups import StoredGroups
from hoodie.metadata.kinds import registry


def small_row_groups(monkeypatch: pytest.MonkeyPatch, row_group_bytes: int = 5000) -> list[tuple[str, ...]]:
    """Write row groups of so many Arrow bytes in this process; return the changed columns of each that is copied."""
    found: list[tuple[str, ...]] = []
    copy = BaseFileWriter.copy

    def noted(self: BaseFileWriter, stored: StoredGroups, group: int, changed: pa.Table | None = None) -> None:
        found.append(() if changed is None else tuple(changed.column_names))
        copy(self, stored, group, changed)

    monkeypatch.setattr(BaseFileWriter, "copy", noted)
    monkeypatch.setattr(stored_groups, "_SINGLE_BYTES_MIN", 0)
    monkeypatch.setattr(registry, "ParquetOptions", partial(ParquetOptions, row_group_bytes=row_group_bytes))
    return found
