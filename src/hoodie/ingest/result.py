"""What an ingestion did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.display import Result, counted
from hoodie.write.result import WriteResult


def described(first: str, *details: object) -> str:
    """Return a text of several lines: the first one, and the details that are not empty, indented."""
    return "\n  ".join([first, *(str(detail) for detail in details if detail)])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchResult(Result):
    """The outcome of one batch: its write, the place behind it, and how many of its rows were bad.

    `about`: what the batch read. `lag_rows` and `lag_seconds`: what is left in the source behind it; None if not known.
    """

    write: WriteResult
    place: str
    about: str = ""
    bad_rows: int = 0
    lag_rows: int | None = None
    lag_seconds: float | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        bad = self.bad_rows and counted(self.bad_rows, "bad rows")
        return described(self.about, *str(self.write).splitlines(), bad, *(f"note: {note}" for note in self.notes))

    def facts(self) -> Mapping[str, object]:
        return {
            "batch": self.about,
            **self.write.facts(),
            "place": self.place,
            "bad rows": self.bad_rows or "",
            "notes": "\n".join((*self.write.notes, *self.notes)),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Preview(Result):
    """What the next batch of a flow would read and change; nothing was written.

    `rows` are the good rows; the table lacks the keys of `new` of them. None if the operation looks up no keys.
    """

    flow: str
    about: str
    place: str
    rows: int
    bad_rows: int = 0
    new: int | None = None
    lag_rows: int | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        new = "" if self.new is None else f", {self.new:,} of them with new keys"
        return described(
            f"{self.flow} (dry run): would read {self.about or 'a batch'}: {counted(self.rows, 'rows')}{new}",
            self.bad_rows and counted(self.bad_rows, "bad rows"),
            self.lag_rows and f"{counted(self.lag_rows, 'rows')} would be left",
            f"the next place: {self.place}",
            *(f"note: {note}" for note in self.notes),
        )

    def facts(self) -> Mapping[str, object]:
        return {
            "flow": f"{self.flow} (dry run)",
            "batch": self.about,
            "rows": self.rows,
            "new keys": "" if self.new is None else self.new,
            "bad rows": self.bad_rows or "",
            "next place": self.place,
            "notes": "\n".join(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestResult(Result):
    """The outcome of a flow: the sums of its batches, and where it goes on.

    `place`: where the next batch begins; None if no commit stores a place. `error`: why it ended early; None for
    success. `preview`: of a dry run, the next batch; None if there is nothing new. `lag_rows` and `lag_seconds`: what
    is left in the source; None if not known.
    """

    flow: str
    batches: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    bad_rows: int = 0
    bytes_written: int = 0
    instants: tuple[str, ...] = ()
    place: str | None = None
    lag_rows: int | None = None
    lag_seconds: float | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: str | None = None
    preview: Preview | None = None

    def __str__(self) -> str:
        if self.preview is not None:
            return str(self.preview)
        changed = f"{self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted"
        batches = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        what = f"{batches}, {changed}" if self.batches else "nothing new"
        return described(
            f"{self.flow}: {what} in {self.seconds:.2f} s",
            self.bad_rows and counted(self.bad_rows, "bad rows"),
            self.place and f"the next place: {self.place}",
            self.lag_rows and f"{counted(self.lag_rows, 'rows')} left in the source",
            *(f"note: {note}" for note in self.notes),
            self.error and f"failed: {self.error}",
        )

    def facts(self) -> Mapping[str, object]:
        if self.preview is not None:
            return self.preview.facts()
        return {
            "flow": self.flow,
            "batches": self.batches,
            "inserted": self.inserted,
            "updated": self.updated,
            "deleted": self.deleted,
            "bad rows": self.bad_rows or "",
            "place": self.place or "",
            "rows left": "" if self.lag_rows is None else self.lag_rows,
            "took": f"{self.seconds:.2f} s",
            "notes": "\n".join(self.notes),
            "failed": self.error or "",
        }
