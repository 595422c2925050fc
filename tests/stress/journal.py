"""The journal of a worker: what it is about to do, and what it was told, each line on disk before it goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

INTENT, DONE, REFUSED, UNKNOWN = "intent", "done", "refused", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line. `kind` and `keys` belong to an intent, `instant` to what is done, `error` to what was refused."""

    state: str
    operation: str
    kind: str = ""
    keys: tuple[str, ...] = ()
    instant: str = ""
    error: str = ""


class Journal:
    """A file that only one process appends to."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def note(self, line: Line) -> None:
        """Append the line; it survives the process and the machine."""
        self._file.write(json.dumps(asdict(line)).encode() + b"\n")
        os.fsync(self._file.fileno())


def read_journal(path: Path) -> Iterator[Line]:
    """The whole lines: what follows the last line break was cut by a kill, and its writer had not gone on."""
    for text in path.read_bytes().split(b"\n")[:-1]:
        fields = json.loads(text)
        yield Line(**{**fields, "keys": tuple(fields["keys"])})
