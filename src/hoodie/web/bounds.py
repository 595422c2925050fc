"""Bounds of answers with what others wrote: long values and long answers are cut, with notes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from hoodie.display import counted

_VALUE_MAX: Final = 8_000
_ANSWER_MAX: Final = 8_000_000
"""Characters, or bytes, after which no row is added; the texts of the last row are `…` from there on."""
_FILES_MAX: Final = 2_000
_SUMS: Final = ("numInserts", "numUpdateWrites", "numDeletes", "numWrites", "totalWriteBytes", "totalWriteErrors")


@dataclass(slots=True)
class Cut:
    """Cuts the values of one answer, and counts what it cut."""

    left: int = _ANSWER_MAX
    values: int = 0
    is_ended: bool = False

    def items(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the values, each cut, until the answer is full."""
        for value in values:
            if self.left <= 0:
                self.is_ended = True
                return
            yield self.value(value)

    def value(self, value: Any) -> Any:
        """Return a plain value; a long text or binary value in it is cut, and has its whole length at the end."""
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [*self.items(value)]
        if not isinstance(value, str | bytes):
            self.left -= 10
            return value
        greatest = _VALUE_MAX if self.left > 0 else 0
        self.left -= min(len(value), greatest) + 10
        if len(value) <= greatest:
            return value
        self.values += 1
        start = value[:greatest] if isinstance(value, str) else base64.b64encode(value[:greatest]).decode()
        return f"{start}… ({len(value):,} {'characters' if isinstance(value, str) else 'bytes'})"

    def notes(self, whole: str) -> list[str]:
        """Return what was cut, for people; `whole` names what has all."""
        cut = [f"{counted(self.values, 'long values')} cut"] if self.values else []
        cut += [f"the answer ends after {_ANSWER_MAX:,} characters"] if self.is_ended else []
        return [f"{' and '.join(cut)}: {whole}"] if cut else []


def files_cut(content: Any, whole: str) -> tuple[Any, dict[str, Any] | None, list[str]]:
    """Return the content of a commit with the statistics of at most 2,000 files, sums of all files, and notes.

    The sums are None without statistics; those by partition are of at most 2,000 partitions.
    """
    found = content.get("partitionToWriteStats") if isinstance(content, dict) else None
    if not isinstance(found, dict):
        return content, None, []
    kept, by_partition, total = dict[str, Any](), dict[str, Any](), dict.fromkeys(("files", *_SUMS), 0)
    for path, listed in found.items():
        stats = [stat for stat in listed or () if isinstance(stat, dict)]
        sums = {"files": len(stats), **{name: sum(stat.get(name) or 0 for stat in stats) for name in _SUMS}}
        if total["files"] < _FILES_MAX:
            kept[path] = stats[: _FILES_MAX - total["files"]]
        if len(by_partition) < _FILES_MAX:
            by_partition[path] = sums
        total = {name: number + sums[name] for name, number in total.items()}
    note = f"statistics of the first {_FILES_MAX:,} of {total['files']:,} files, and the sums of all: {whole}"
    statistics = {"partitions": len(found), "all": total, "by_partition": by_partition}
    return {**content, "partitionToWriteStats": kept}, statistics, [note] * (total["files"] > _FILES_MAX)
