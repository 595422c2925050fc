"""What a source of rows is: it plans one batch at a time from a place, and reads it.

A *place* (Hudi: checkpoint) is a text: the begin of the next batch. The commit of a batch stores the place
behind it, so a flow that starts again goes on after the newest commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a flow requests from its source.

    `after`: the place of the newest commit; None for the first batch. `place_version`: of Hudi's checkpoint that has
    this place (1 or 2); None if the user gave it. `limit`: the most rows of the batch; for files the most files; None:
    no limit. `spark`: the session that reads the batch; None: this process reads it. `schema`: the Arrow schema of the
    rows, if the caller or the table has one; else the source infers it. `is_look`: the batch is for a preview or a
    status: nothing may be changed, in `plan` and in `Batch.read`. `takes_arrow`: a small batch may come as Arrow data
    in spite of `spark`, which is quicker than a job of Spark. `keys`: the record key of the table. `deletes_by`: its
    other columns without which a row that deletes may find no record, or lose against it.
    """

    after: str | None = None
    place_version: int | None = None
    limit: int | None = None
    spark: Any = None
    schema: Any = None
    is_look: bool = False
    takes_arrow: bool = False
    keys: tuple[str, ...] = ()
    deletes_by: tuple[str, ...] = ()


class BadRows(Protocol):
    """The rows of a batch that could not be decoded."""

    def count(self) -> int:
        """Return their number. On Spark it is known after the good rows were read, which counts them."""
        ...

    def rows(self, limit: int | None = None) -> Any:
        """Return them, at most `limit`: a DataFrame or Arrow table with the text columns reason, position and value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Rows of a batch, and those that could not be decoded.

    `rows`: a Spark DataFrame or Arrow data. `order`: columns of `rows` by which later events of a key come after
    earlier ones; the flow keeps the last event of each key, and drops these columns before the write. `deletes_tie`:
    rows that delete have the ordering values of the rows that they delete. `has_no_rows`: the batch has no rows, and
    its columns are not known, so that it is not transformed.
    """

    rows: Any
    bad: BadRows | None = None
    order: tuple[str, ...] = ()
    deletes_tie: bool = False
    has_no_rows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of a source, planned but not yet read.

    `place`: where the batch after this one begins; empty if the source reads everything each time, so that no place is
    stored. `read`: returns the rows: a Spark DataFrame, Arrow data, a frame of pandas or Polars, or `Decoded`. It may
    be called again after a failure, and then returns the same rows. `about`: what the batch reads, in one line.
    `rows`: their number, if it is known. `lag_rows` and `lag_seconds`: the rows of the source behind this batch, and
    the age of the oldest of them, if known. `after_commit` is called after the commit; an error there becomes a note.
    `notes`: what the user should know, such as skipped offsets.
    """

    place: str
    read: Callable[[], Any]
    about: str = ""
    rows: int | None = None
    lag_rows: int | None = None
    lag_seconds: float | None = None
    after_commit: Callable[[], None] | None = None
    notes: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """A source of rows; a class of your own needs the method `plan` only. If it has `close`, that is called at the end.

    `plan` must return the same batch for the same place and limit, or a longer one, until a commit stores its place:
    a flow that dies plans again.

    >>> import hoodie, pyarrow as pa
    >>> class Numbers:
    ...     '''The numbers from 0 to 4, two at a time; a place is the next number.'''
    ...
    ...     def plan(self, request: hoodie.Request) -> hoodie.Batch | None:
    ...         first = int(request.after or 0)
    ...         last = min(first + 2, 5)
    ...         if first == last:
    ...             return None
    ...         return hoodie.Batch(place=str(last), read=lambda: pa.table({"id": list(range(first, last))}))
    >>> result = hoodie.ingest(Numbers(), "memory://doc-source", create={"record_key": "id"})
    >>> result.batches, result.inserted, result.place
    (3, 5, '5')
    """

    def plan(self, request: Request) -> Batch | None:
        """Return the next batch; None if there is nothing new.

        Raises: SourceError if the source cannot go on from the place, for example because rows are gone.
        """
        ...
