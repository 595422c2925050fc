"""What an adoption of Parquet files found and wrote, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from hoodie.display import Result, counted, size_text
from hoodie.write.result import WriteResult

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Adoption(Result):
    """What an adoption found, and what it wrote.

    `refused`: why files or rows cannot be adopted; a call without `dry_run` raises an error if there are any.
    `duplicates`: rows whose key an earlier row has, and `duplicate_keys` a few of these keys; None without a record key
    and if files were refused before keys were read. `merges_duplicates`: such rows are merged, and `write.duplicates`
    is the number of rows that were merged away. `partitions`: rows by partition path. `schema`: the columns of the
    table; None if the files have no common schema. `write`: the result of the commit; None if nothing was
    written.
    """

    source: str
    target: str | None
    mode: str | Mapping[str, str]
    merges_duplicates: bool = False
    dry_run: bool
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    schema: pa.Schema | None = None
    partitions: Mapping[str, int] = field(default_factory=dict, hash=False)
    duplicates: int | None = None
    duplicate_keys: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    write: WriteResult | None = None

    @property
    def ok(self) -> bool:
        """Whether the files can be adopted: nothing is refused, and no key occurs twice or duplicates are merged."""
        return not self.refused and (self.merges_duplicates or not self.duplicates)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; columns by name."""
        plain = replace(self, schema=None, mode=self.mode if isinstance(self.mode, str) else dict(self.mode))
        return {**asdict(plain), "schema": self._columns}

    def __str__(self) -> str:
        files = f"{counted(self.files, 'files')}, {counted(self.rows, 'rows')}, {size_text(self.size_bytes)}"
        lines = [f"adopt {self.source} ({self._mode}): {files}"]
        lines.append("  columns: " + ", ".join(f"{name} {kind}" for name, kind in (self._columns or {}).items()))
        lines.append(f"  partitions: {self._partitions}")
        lines.append(f"  duplicates of keys: {self._duplicates}")
        lines += [f"  refused: {reason}" for reason in self.refused]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  {line}" for line in self._written.splitlines()]
        return "\n".join(lines)

    def facts(self) -> Mapping[str, object]:
        return {
            "source": self.source,
            "target": self.target or "",
            "mode": self._mode,
            "files": self.files,
            "rows": self.rows,
            "size": size_text(self.size_bytes),
            "columns": "\n".join(f"{name} {kind}" for name, kind in (self._columns or {}).items()),
            "partitions": self._partitions,
            "duplicates of keys": self._duplicates,
            "refused": "\n".join(self.refused),
            "notes": "\n".join(self.notes),
            "written": self._written,
        }

    @property
    def _mode(self) -> str:
        return self.mode if isinstance(self.mode, str) else ", ".join(f"{path}: {m}" for path, m in self.mode.items())

    @property
    def _written(self) -> str:
        return f"{'dry run: ' if self.dry_run else ''}nothing was written" if self.write is None else str(self.write)

    @property
    def _columns(self) -> dict[str, str] | None:
        return None if self.schema is None else {child.name: str(child.type) for child in self.schema}

    @property
    def _partitions(self) -> str:
        shown = [f"{path or '(none)'} {counted(rows, 'rows')}" for path, rows in list(self.partitions.items())[:_SHOWN]]
        return f"{len(self.partitions):,}: {', '.join(shown)}{', …' if len(self.partitions) > _SHOWN else ''}"

    @property
    def _duplicates(self) -> str:
        if self.duplicates is None:
            return "not counted"
        if not self.duplicates:
            return "0"
        outcome = "; rows of one key become one row" if self.merges_duplicates else ""
        return f"{self.duplicates:,}, e.g. {list(self.duplicate_keys)}{outcome}"
