"""What travels between the driver and Spark: sessions of other threads, tasks, small tables, files without a commit."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import TaskContext
from hoodie.spark import SparkEngine, small_tables, tasks
from hoodie.spark.small_tables import to_arrow
from hoodie.table.sessions import active_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect]


def test_another_thread_finds_the_session(spark: SparkSession) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(active_session()))
    thread.start()
    thread.join()
    assert found == [spark]


@pytest.mark.parametrize("carried_bytes", [1 << 20, 0], ids=["carried", "sent"])
def test_a_worker_unpickles_its_own_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, carried_bytes: int
) -> None:
    monkeypatch.setattr(tasks, "_CARRIED_BYTES_MAX", carried_bytes)

    class Counted:
        """A task that counts how many of its kind were unpickled with it."""

        unpickled = 0

        def __init__(self, number: int) -> None:
            self.number = number

        def __setstate__(self, state: dict[str, int]) -> None:
            self.number = state["number"]
            type(self).unpickled += 1

    def work(task: Counted, context: TaskContext) -> tuple[int, int, int]:
        return task.number, context.partition, type(task).unpickled

    results = SparkEngine(spark).run(work, [Counted(number) for number in range(5)])
    assert [number for number, _, _ in results] == list(range(5))
    assert len({partition for _, partition, _ in results}) == 5
    assert {unpickled for _, _, unpickled in results} == {1}


def test_small_tasks_share_a_task_of_spark_and_keep_their_numbers(spark: SparkSession) -> None:
    def look(task: int, context: TaskContext) -> tuple[int, TaskContext]:
        return task, context

    def places(sizes: list[int] | None) -> int:
        found = SparkEngine(spark).run(look, list(range(20)), sizes)
        assert [task for task, _ in found] == [context.partition for _, context in found] == list(range(20))
        return len({context.attempt for _, context in found})

    few = places([1000] * 20)
    assert few == SparkEngine(spark).slots < 20
    assert places([1 << 30] * 20) == places(None) == 20
    # One task is as large as all others: it has a task of Spark for itself.
    assert places([19_000, *[1000] * 19]) == few


def test_the_error_of_small_tasks_is_that_of_the_first(spark: SparkSession) -> None:
    def fail(task: int, context: TaskContext) -> int:
        if task in (3, 4, 7):
            raise hoodie.CommitConflictError(f"task {task}")
        return task

    for sizes in ([1] * 8, [1, 1, 1, 9, 1, 1, 1, 1]):
        with pytest.raises(hoodie.CommitConflictError, match=r"^task 3$"):
            SparkEngine(spark).run(fail, list(range(8)), sizes)


def test_workers_exempt_modules_from_garbage_collection_once(spark: SparkSession) -> None:
    """Once for each number of modules: a worker that imported one in between exempts its objects again."""

    def look(task: int, context: TaskContext) -> tuple[int, int, int, int]:
        import gc
        import os

        from hoodie.spark import tasks

        return os.getpid(), tasks._exempted_modules, gc.get_freeze_count(), len(gc.get_objects())

    known: dict[tuple[int, int], int] = {}
    for _ in range(3):
        found = SparkEngine(spark).run(look, list(range(4)))
        assert all(exempt > 10_000 > tracked for _, _, exempt, tracked in found)
        assert all(exempt <= known.get((pid, modules), exempt) for pid, modules, exempt, _ in found)
        known |= {(pid, modules): exempt for pid, modules, exempt, _ in found}


def test_small_tables_come_without_any_method_for_it(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"n": pa.array([(1 << 53) + 1, None], pa.int64()), "s": ["é", None]})

    class Bare:
        """A DataFrame of Connect as PySpark 3.5 has it."""

        def __init__(self, frame: object) -> None:
            self.schema = frame.schema  # type: ignore[attr-defined]
            self.sparkSession = frame.sparkSession  # type: ignore[attr-defined]
            self.mapInArrow = frame.mapInArrow  # type: ignore[attr-defined]

    frame = small_tables.from_arrow(spark, rows)
    assert to_arrow(Bare(frame)).to_pylist() == to_arrow(frame).to_pylist() == rows.to_pylist()
    assert to_arrow(Bare(frame.limit(0))).num_rows == 0
