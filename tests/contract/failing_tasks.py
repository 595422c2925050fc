"""Writes with automatic keys while tasks fail: a program of its own, because such a Spark has executors to kill.

`python -m tests.contract.failing_tasks classic|connect FOLDER CASE…` prints what each case wrote, as one JSON document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from tests.support.sessions import CLUSTER, RETRIES, cluster_confs, open_classic_session, open_connect_session

ROWS, PARTS = 2_000, 4
TYPES = "id long, part int"
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])
CONFS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}


def failing(folder: Path, fault: str | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A step of the caller's plan that notes each attempt in the folder, and in one attempt has the fault.

    `kill`: the Python worker ends. `executor`: its JVM ends, and with it the shuffle files there. `raise`: an error.
    Speculative attempts are not here: Spark starts none on the machine of the first attempt.
    """

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import contextlib
        import os
        import pathlib
        import signal

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        (folder / f"{context.partitionId()}-{context.taskAttemptId()}").touch()
        mine = False
        if fault is not None and context.partitionId() == 2:
            with contextlib.suppress(FileExistsError):
                (folder / "fault").touch(exist_ok=False)
                mine = True
        for batch in batches:
            yield batch
            if not mine:
                continue
            if fault == "raise":
                raise RuntimeError("this attempt fails")
            if fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "executor":
                daemon = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)

    return step


def at_random(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Other parts in each attempt."""
    import numpy
    import pyarrow

    for batch in batches:
        parts = pyarrow.array(numpy.random.default_rng().integers(0, 4, batch.num_rows), pyarrow.int32())
        yield pyarrow.record_batch([batch.column(0), parts], names=["id", "part"])


@dataclass(frozen=True)
class Case:
    """A write of rows from a plan."""

    method: str
    fault: str | None
    plan: str = "source"

    def frame(self, session: Any, folder: Path) -> Any:
        """The caller's data: straight from the source, or repartitioned by its columns or at random."""
        rows = session.range(0, ROWS, 1, PARTS).selectExpr("id", "CAST(id % 7 AS INT) AS part")
        if self.plan == "random":
            rows = rows.mapInArrow(at_random, TYPES)
        if self.plan != "source":
            rows = rows.repartition(PARTS, "part")
        if self.plan == "sorted":
            rows = rows.sortWithinPartitions("id")
        return rows.mapInArrow(failing(folder, self.fault), TYPES)


CASES = {
    "insert, quiet": Case("insert", None),
    "insert, worker killed": Case("insert", "kill"),
    "insert, sorted, quiet": Case("insert", None, "sorted"),
    "insert, sorted, executor killed": Case("insert", "executor", "sorted"),
    "insert, random, worker killed": Case("insert", "kill", "random"),
    "bulk_insert, quiet": Case("bulk_insert", None),
    "bulk_insert, task fails": Case("bulk_insert", "raise"),
    "source, task fails": Case("source", "raise"),
    "bulk_insert, random, executor killed": Case("bulk_insert", "executor", "random"),
}


def run(session: Any, case: Case, folder: Path) -> dict[str, Any]:
    """Write the case's rows; return what the table has, and the attempts of the tasks that made them."""
    folder.mkdir(parents=True)
    attempts = folder / "attempts"
    attempts.mkdir()
    table = hoodie.create(folder / "table", SCHEMA, spark=False)
    frame = case.frame(session, attempts)
    try:
        if case.method == "source":
            frame.write.format("hoodie").mode("append").save(str(folder / "table"))
        else:
            getattr(table, case.method)(frame)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "rows": table.count(), "ok": table.verify(full=True).ok}
    rows = table.to_arrow(["_hoodie_record_key", "id"])
    (written,) = table.history().to_pylist()
    return {
        "instant": written["instant"],
        "inserted": written["inserted"],
        "keys": rows["_hoodie_record_key"].to_pylist(),
        "ids": rows["id"].to_pylist(),
        "attempts": sorted(path.name for path in attempts.iterdir()),
        "ok": table.verify(full=True).ok,
    }


def main(lane: str, folder: Path, names: list[str]) -> None:
    """Run the cases in one session."""
    start = open_connect_session if lane == "connect" else open_classic_session
    if "executor" in {CASES[name].fault for name in names}:
        session = start(folder / "warehouse", {**CONFS, **cluster_confs()}, master=CLUSTER)
    else:
        session = start(folder / "warehouse", CONFS, master=RETRIES)
    found = {name: run(session, CASES[name], folder / str(number)) for number, name in enumerate(names)}
    print(json.dumps(found), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
