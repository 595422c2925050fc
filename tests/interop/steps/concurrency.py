"""Concurrency control: modes, lock providers, early conflict detection, two writers at once, non-blocking writes."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.interop.steps import script
from tests.interop.steps.script import COLUMNS, MERGE_ON_READ, Page, Script
from tests.support.zookeeper_server import running_zookeeper

PAGE = Page("Concurrency control: modes, locks, several writers")
KEYED = {**script.KEYED, "hoodie.metadata.index.column.stats.enable": "false"}
LOCKS = "org.apache.hudi.client.transaction.lock"
MODE, PROVIDER = "hoodie.write.concurrency.mode", "hoodie.write.lock.provider"
OCC = {MODE: "optimistic_concurrency_control", "hoodie.clean.failed.writes.policy": "LAZY"}
IN_PROCESS = {**OCC, PROVIDER: f"{LOCKS}.InProcessLockProvider"}
FILE_SYSTEM = {**OCC, PROVIDER: f"{LOCKS}.FileSystemBasedLockProvider"}
ZOOKEEPER = {
    **OCC,
    PROVIDER: f"{LOCKS}.ZookeeperBasedLockProvider",
    "hoodie.write.lock.zookeeper.base_path": "/hudi",
    "hoodie.write.lock.zookeeper.lock_key": "steps",
}
BUCKETS = {
    **MERGE_ON_READ,
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
}
NON_BLOCKING = {**IN_PROCESS, MODE: "NON_BLOCKING_CONCURRENCY_CONTROL"}
STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
_SECONDS_MAX = 120.0


def _upsert(it: Script, options: dict[str, str], *rows: Sequence[Any]) -> None:
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **options})


def _at_once(*writes: Callable[[], None]) -> None:
    """Run writes in threads that begin together, and raise the first error."""
    together = threading.Barrier(len(writes))

    def run(write: Callable[[], None]) -> None:
        together.wait()
        write()

    with ThreadPoolExecutor(len(writes)) as threads:
        for future in [threads.submit(run, write) for write in writes]:
            future.result()


def _during(it: Script, options: dict[str, str], row: Sequence[Any], other: Callable[[], None]) -> str:
    """Write a row whose column waits until another write is done; return the text of the error, if it was refused."""
    from pyspark.sql import functions as F

    with tempfile.TemporaryDirectory() as folder:
        begun, go = Path(folder, "begun"), Path(folder, "go")

        def waiting(text: str) -> str:
            begun.touch()
            _wait_for(go)
            return text

        def run_other() -> None:
            try:
                _wait_for(begun, go)
                other()
            finally:
                go.touch()

        frame = it.frame(COLUMNS, row).withColumn("v", F.udf(waiting, "string")("v"))
        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(run_other)
            try:
                it.save(frame, "append", {**KEYED, **options})
            except Exception as error:
                return str(error) or "refused"
            finally:
                go.touch()
                done.result()
    return ""


def _wait_for(*files: Path) -> None:
    """Wait until one of the files exists."""
    end = time.monotonic() + _SECONDS_MAX
    while not any(file.exists() for file in files):
        assert time.monotonic() < end
        time.sleep(0.05)


def _values(it: Script) -> dict[int, str]:
    return {row.id: row.v for row in it.load().select("id", "v").collect()}


def _commits(it: Script) -> Any:
    """Return how many commits the table has."""
    return it.frame("commits int", (len(it.instants()),))


PAGE.add("a single writer", lambda it: _upsert(it, {MODE: "single_writer"}, (1, 1, "a", "x"), (2, 1, "b", "y")))
PAGE.add(
    "optimistic concurrency control with the in-process lock",
    lambda it: _upsert(it, IN_PROCESS, (1, 2, "a2", "x"), (3, 1, "c", "y")),
)


@PAGE.step("the older name of the policy of failed writes")
def _(it: Script) -> None:
    options = {name: value for name, value in IN_PROCESS.items() if "failed" not in name}
    _upsert(it, {**options, "hoodie.cleaner.policy.failed.writes": "LAZY"}, (1, 3, "a3", "x"))


PAGE.add(
    "optimistic concurrency control with the policy EAGER",
    lambda it: _upsert(it, {**IN_PROCESS, "hoodie.clean.failed.writes.policy": "EAGER"}, (1, 4, "a4", "x")),
)
PAGE.add("optimistic concurrency control without a lock provider", lambda it: _upsert(it, OCC, (1, 5, "a5", "x")))
PAGE.add(
    "the file-system lock",
    lambda it: _upsert(it, {**FILE_SYSTEM, "hoodie.write.lock.filesystem.expire": "10"}, (1, 6, "a6", "x")),
)


@PAGE.step("the file-system lock in a folder of its own")
def _(it: Script) -> None:
    folder = Path(it.path).parent / "locks"
    folder.mkdir()
    _upsert(it, {**FILE_SYSTEM, "hoodie.write.lock.filesystem.path": str(folder)}, (1, 7, "a7", "x"))


@PAGE.step("waiting times and retries of locks")
def _(it: Script) -> None:
    waits = {
        "hoodie.write.lock.wait_time_ms": "30000",
        "hoodie.write.lock.num_retries": "10",
        "hoodie.write.lock.wait_time_ms_between_retry": "500",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "2000",
        "hoodie.write.lock.client.num_retries": "5",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "500",
        "hoodie.write.num.retries.on.conflict.failures": "2",
    }
    _upsert(it, {**IN_PROCESS, **waits}, (1, 8, "a8", "x"))


@PAGE.step("the lock in ZooKeeper: url and port")
def _(it: Script) -> None:
    with tempfile.TemporaryDirectory() as folder, running_zookeeper(Path(folder)) as address:
        port = address.partition(":")[2]
        server = {"hoodie.write.lock.zookeeper.url": address, "hoodie.write.lock.zookeeper.port": port}
        _upsert(it, {**ZOOKEEPER, **server}, (1, 9, "a9", "x"))
        _upsert(it, {**ZOOKEEPER, **server}, (4, 1, "d", "y"))


PAGE.add(
    "a lock provider that does not exist",
    lambda it: _upsert(it, {**OCC, PROVIDER: "com.example.NoLock"}, (1, 99, "no", "x")),
)
PAGE.add(
    "a concurrency mode that does not exist",
    lambda it: _upsert(it, {**IN_PROCESS, MODE: "pessimistic"}, (1, 99, "no", "x")),
)


@PAGE.step("early conflict detection")
def _(it: Script) -> None:
    early = {
        "hoodie.write.concurrency.early.conflict.detection.enable": "true",
        "hoodie.write.concurrency.early.conflict.check.commit.conflict": "true",
    }
    _upsert(it, {**IN_PROCESS, **early}, (1, 10, "a10", "x"))


@PAGE.step("the conflict resolution strategy of writers by name")
def _(it: Script) -> None:
    name = "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy"
    _upsert(it, {**IN_PROCESS, STRATEGY: name}, (1, 11, "a11", "x"))


@PAGE.step("the conflict resolution strategy that prefers writers to services")
def _(it: Script) -> None:
    name = "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
    _upsert(it, {**IN_PROCESS, STRATEGY: name}, (1, 12, "a12", "x"))


@PAGE.step("SQL with the options in the session")
def _(it: Script) -> None:
    given = {**IN_PROCESS, "hoodie.write.lock.wait_time_ms": "30000"}
    it.use("by_sql")
    try:
        for name, value in given.items():
            it.sql(f"SET {name}={value}")
        it.sql("DROP TABLE IF EXISTS {t}")
        it.sql(
            "CREATE TABLE {t} (id int, ts bigint, v string, p string) USING hudi LOCATION '{path}' "
            "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (p)"
        )
        it.sql("INSERT INTO {t} VALUES (1, 1, 'a', 'x'), (2, 1, 'b', 'y')")
        it.sql("UPDATE {t} SET v = 'b2' WHERE id = 2")
    finally:
        for name in given:
            it.spark.conf.unset(name)


@PAGE.step("two writers at once, each with its own partition")
def _(it: Script) -> Any:
    it.use("two")
    _upsert(it, IN_PROCESS, (1, 1, "a", "x"), (2, 1, "b", "y"))
    _at_once(
        lambda: _upsert(it, IN_PROCESS, (1, 2, "a2", "x"), (3, 1, "c", "x")),
        lambda: _upsert(it, IN_PROCESS, (2, 2, "b2", "y"), (4, 1, "d", "y")),
    )
    return _commits(it)


@PAGE.step("two inserts at once, with the file-system lock")
def _(it: Script) -> Any:
    insert = {**FILE_SYSTEM, "hoodie.datasource.write.operation": "insert"}
    _at_once(lambda: _upsert(it, insert, (5, 1, "e", "v")), lambda: _upsert(it, insert, (6, 1, "f", "w")))
    return _commits(it)


@PAGE.step("a write that ends while another one of other partitions runs")
def _(it: Script) -> Any:
    refused = _during(it, IN_PROCESS, (1, 3, "a3", "x"), lambda: _upsert(it, IN_PROCESS, (2, 3, "b3", "y")))
    return it.frame("refused boolean", (bool(refused),))


@PAGE.step("a write that ends while another one of the same file group runs: the rows are those of a serial order")
def _(it: Script) -> Any:
    once = {**IN_PROCESS, "hoodie.write.num.retries.on.conflict.failures": "0"}
    before = _values(it)
    refused = _during(it, once, (1, 5, "first", "x"), lambda: _upsert(it, once, (3, 5, "second", "x")))
    after = _values(it)
    expected = {**before, 3: "second", **({} if refused else {1: "first"})}
    _upsert(it, IN_PROCESS, (1, 6, "a6", "x"))  # the same table, whoever was refused
    return it.frame("serial boolean", (after == expected,))


@PAGE.step("the same with retries after conflicts: both are there")
def _(it: Script) -> Any:
    again = {**IN_PROCESS, "hoodie.write.num.retries.on.conflict.failures": "3"}
    refused = _during(it, again, (1, 7, "a7", "x"), lambda: _upsert(it, again, (3, 7, "c7", "x")))
    return it.frame("refused boolean", (bool(refused),))


PAGE.add(
    "after all: a single writer again",
    lambda it: _upsert(it, {MODE: "single_writer", "hoodie.clean.failed.writes.policy": "EAGER"}, (7, 1, "g", "x")),
)


@PAGE.step("non-blocking: a merge-on-read table with a bucket index")
def _(it: Script) -> None:
    it.use("free")
    _upsert(it, {**BUCKETS, **NON_BLOCKING}, (1, 1, "a", "x"), (2, 1, "b", "y"))
    _upsert(it, {**BUCKETS, **NON_BLOCKING}, (1, 2, "a2", "x"), (3, 1, "c", "x"))


@PAGE.step("non-blocking: two writers of one file group")
def _(it: Script) -> Any:
    options = {**BUCKETS, **NON_BLOCKING}
    refused = _during(it, options, (1, 9, "a9", "x"), lambda: _upsert(it, options, (1, 8, "a8", "x"), (4, 1, "d", "x")))
    return it.frame("refused boolean", (bool(refused),))


@PAGE.step("non-blocking: a copy-on-write table is refused")
def _(it: Script) -> None:
    it.use("two")
    _upsert(it, NON_BLOCKING, (1, 99, "no", "x"))


@PAGE.step("non-blocking: a merge-on-read table without a bucket index")
def _(it: Script) -> None:
    it.use("plain")
    _upsert(it, {**NON_BLOCKING, **MERGE_ON_READ}, (1, 1, "a", "x"))
