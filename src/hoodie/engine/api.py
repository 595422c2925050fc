"""What an engine does for a table operation: run tasks, and move batches between two functions.

Everything an engine runs is a plain function of Arrow batches or a frozen task, plus a `TaskContext`; it touches
storage through the store it opens from its task. Functions may run more than once (retries): whatever they write
carries the attempt's write token, and only the results of the attempt that succeeded come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Which attempt of which task runs: unique for every attempt of a job."""

    partition: int
    stage: int
    attempt: int


Prepare = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterator[pa.RecordBatch]]
Consume = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterable[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How rows meet between prepare and consume.

    `bucket_by` names an int32 column: rows of bucket b go to task `b % tasks`. `range_by` names columns: the tasks get
    ascending ranges of them. Neither: rows stay where they are. `sort_by` orders the rows inside each task, so that a
    consumer can work on runs of equal values in constant memory.
    """

    bucket_by: str | None = None
    range_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    tasks: int | None = None


class Dataset(Protocol):
    """The caller's data as an engine holds it: read once, in no particular order."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches."""
        ...


class Engine(Protocol):
    """Where the work runs: threads of this process, or Spark executors."""

    @property
    def name(self) -> str:
        """`local` or `spark`."""
        ...

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        ...

    def run(self, function: Callable[[Task, TaskContext], Result], tasks: Sequence[Task]) -> list[Result]:
        """Call the function once per task and return the results in the order of the tasks.

        Raises: whatever the first failing task raised, as the same error class where it is one of ours.
        """
        ...

    def process(
        self,
        data: Dataset,
        prepare: Prepare,
        prepared_schema: pa.Schema,
        consume: Consume[Result],
        exchange: Exchange | None = None,
    ) -> list[Result]:
        """Stream all batches of `data` through prepare, the exchange, and consume; return consume's results.

        The data is evaluated exactly once.
        """
        ...
