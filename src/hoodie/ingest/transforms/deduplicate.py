"""The transform `deduplicate`: one row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hoodie.ingest.latest import latest
from hoodie.ingest.transforms.transform import Context, arrow_rows, checked_texts
from hoodie.table.sessions import is_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicate:
    """Keeps the row of each key that has the greatest values in the columns `by`; null and NaN are the least.

    Rows with a null in a key column are all kept: the write refuses them.
    """

    keys: str | Sequence[str]
    by: str | Sequence[str]

    def __post_init__(self) -> None:
        checked_texts(self.keys, "transform deduplicate, keys")
        checked_texts(self.by, "transform deduplicate, by")

    def __call__(self, rows: Any, context: Context) -> Any:
        """Return one row of each key. Memory in process: all rows. Raises: as `latest`."""
        keys = checked_texts(self.keys, "transform deduplicate, keys")
        by = checked_texts(self.by, "transform deduplicate, by")
        return latest(rows if is_spark(rows) else arrow_rows(rows), keys, by)
