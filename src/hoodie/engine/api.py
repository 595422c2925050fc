"""The interface of engines: run tasks, and pass batches from one function to another.

An engine runs plain functions. Their arguments are Arrow batches or a frozen task, plus a `TaskContext`. A function
accesses storage only with the store that it opens from its task. A function may run more than once (retries): each file
that it writes has the attempt's write token, and only the results of the successful attempt are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from hoodie.format.filenames import write_token

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Identity of one attempt of one task; unique for every attempt of a job."""

    partition: int
    stage: int
    attempt: int

    @property
    def write_token(self) -> str:
        """The write token of the files that the attempt writes."""
        return write_token(self.partition, self.stage, self.attempt)


Prepare = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterator[pa.RecordBatch]]
Consume = Callable[[Iterator[pa.RecordBatch], TaskContext], Iterable[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How rows are distributed to tasks between prepare and consume.

    `bucket_by` names an int32 column: task `b % tasks` receives the rows of bucket b. `range_by` names columns: the
    tasks receive ascending ranges of their values. If neither is set, rows are not moved. `sort_by` sorts the rows
    inside each task, so that a consumer can process runs of equal values in constant memory.
    """

    bucket_by: str | None = None
    range_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    tasks: int | None = None


class Dataset(Protocol):
    """The caller's data in the form that an engine reads: once, in no particular order."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the batches."""
        ...


class Engine(Protocol):
    """Runs the work of an operation: on threads of this process, or on Spark executors."""

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at once."""
        ...

    def run(
        self,
        function: Callable[[Task, TaskContext], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int] | None = None,
    ) -> list[Result]:
        """Call the function once per task and return the results in the order of the tasks.

        `sizes`: the bytes that each task reads. Spark then runs several small tasks one after the other in one of its
        own tasks.

        Raises: the error of the first failing task; with the same class if it is an error of hoodie.
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

        The data is read exactly once.
        """
        ...


EngineFor = Callable[[int], Engine]
"""Returns the engine for work on a number of bytes."""
