"""Our writer and the JVM's at the same time on one table: nothing is lost, and nothing is stored twice.

Both take the file-system lock and check conflicts when they commit. Our writer retries by itself; the JVM's write is
called again by the test, as its users do.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.storage import LocalStore
from tests.interop.judges import HIVE, Jvm
from tests.support.deaths import check_tidy
from tests.support.index_check import check_index
from tests.support.steps import once_at

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("writer", pa.string())])
OPTIMISTIC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.num_retries": "60",
}
TRIES_MAX = 8
SHARED = [f"shared {number}" for number in range(6)]


def batch(writer: str, number: int) -> pa.Table:
    """Rows of the shared keys, of a key of the writer, and of a new key; `ts` grows with the write."""
    keys = [*SHARED, f"{writer} own", f"{writer} {number}"]
    cities = ["sf", "nyc", "sf", "nyc", "sf", "nyc", "sf", "la"]
    return pa.table([keys, cities, [number] * len(keys), [writer] * len(keys)], schema=SCHEMA)


def is_conflict(error: Exception) -> bool:
    """Whether the JVM refused the write because of another one, or did not get the lock."""
    text = str(error)
    return any(
        name in text for name in ("HoodieWriteConflictException", "HoodieLockException", "ConcurrentModification")
    )


class Pair:
    """The two writers of one table, and how often each wrote and met the other."""

    def __init__(self, path: Path, jvm: Jvm, table_type: str) -> None:
        self.path, self.jvm, self.table_type = path, jvm, table_type
        self.table = hoodie.create(
            path, SCHEMA, record_key="id", partition_by="city", type=table_type, name="trips", spark=False
        )
        self.written = {"ours": -1, "jvm": -1}
        self.retried = self.conflicts = 0

    def ours(self) -> None:
        """Write, with our own retries."""
        notes = self.table.upsert(batch("ours", self.written["ours"] + 1)).notes
        self.written["ours"] += 1
        self.retried += any(note.startswith("retried") for note in notes)

    def theirs(self) -> None:
        """Write with the JVM, and again after each conflict."""
        for _ in range(TRIES_MAX):
            try:
                self.jvm.write(
                    batch("jvm", self.written["jvm"] + 1), self.path, table_name="trips", key="id", partition="city",
                    table_type=self.table_type.upper(), options={**OPTIMISTIC, **HIVE},
                )  # fmt: skip
            except Exception as error:
                if not is_conflict(error):
                    raise
                self.conflicts += 1
            else:
                self.written["jvm"] += 1
                return
        raise AssertionError(f"{TRIES_MAX} conflicts in a row")

    def check(self) -> None:
        """Both see every key once, and the newest rows."""
        expected = {*SHARED, *(f"{name} own" for name in self.written)}
        expected |= {f"{name} {number}" for name, newest in self.written.items() for number in range(newest + 1)}
        columns = ["id", "ts", "writer"]
        for found in (self.table.to_arrow(columns=columns), self.jvm.read(self.path, columns)):
            rows = {row["id"]: row for row in found.to_pylist()}
            assert found.num_rows == len(rows), "a key is stored twice"
            assert rows.keys() == expected
            assert all(rows[f"{name} own"]["ts"] == newest for name, newest in self.written.items())
            assert len({rows[key]["writer"] for key in SHARED}) == 1, "rows of two writes are mixed"
            assert all(rows[key]["ts"] == self.written[rows[key]["writer"]] for key in SHARED), "an old row came back"
        check_index(self.table.view())


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_our_retries_beside_commits_of_the_jvm(tmp_path: Path, jvm: Jvm, table_type: str) -> None:
    pair = Pair(tmp_path / "trips", jvm, table_type)
    pair.ours()
    for step in (Step.BEGUN, Step.WRITTEN):
        with once_at(step, pair.theirs):
            pair.ours()
        pair.check()
    assert (pair.retried, pair.conflicts) == (2, 0)

    # Both run freely. Ours writes twice only: each write may make the JVM's fail, which takes much longer.
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(pair.theirs)
        pair.ours()
        pair.ours()
        running.result()
    pair.check()
    pair.ours()
    check_tidy(LocalStore(str(pair.path)))
