"""A worker of the stress: random upserts, inserts and deletes of own and shared keys, until it is told to stop.

Usage: python -m tests.stress.worker TABLE FOLDER NAME SEED
"""

from __future__ import annotations

import os
import random
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import hoodie
from tests.stress.journal import DONE, INTENT, REFUSED, UNKNOWN, Journal, Line

OPERATION = "stress.operation"
"""Key in the commit of an operation whose value is the operation's name."""
WITH_JVM = "HOODIE_STRESS_JVM"
"""Environment variable: how many of the workers write with the JVM."""
SEEDED = "seed"
"""The operation that writes the shared keys first where the JVM takes part."""
OF_JVM = "jvm"
"""Own keys of JVM workers begin so. They are in a partition of their own: the JVM is slow and would only conflict."""
STOP = "stop"
"""File in the folder of the run: workers end when they see it."""
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("operation", pa.string())])
SHARED = [f"shared-{number}" for number in range(40)]
_CITIES = 4
_OWN = 30
_BATCH_MAX = 6


def rows_of(keys: Sequence[str], operation: str) -> pa.Table:
    """Rows to write: each in the partition of its key, with the operation that writes it."""
    cities = [
        key.partition("-")[0] if key.startswith(OF_JVM) else f"city-{zlib.crc32(key.encode()) % _CITIES}"
        for key in keys
    ]
    return pa.table({"id": list(keys), "city": cities, "operation": [operation] * len(keys)}, schema=SCHEMA)


class Worker:
    """Does one operation after another and notes each in its journal."""

    def __init__(self, table: str, journal: Journal, name: str, chooser: random.Random) -> None:
        self._table = hoodie.open(table)
        self._journal = journal
        self._name = name
        self._chooser = chooser
        self._count = 0
        owner = name.partition(".")[0]  # of all its incarnations
        self._own = [f"{owner}-{number}" for number in range(_OWN)]

    def step(self) -> None:
        """Do a random operation; if it is refused, it is another operation that the next step does."""
        self._count += 1
        operation = f"{self._name}-{self._count}"
        kind = self._kind()
        keys = self._keys(kind, operation)
        self._journal.note(Line(state=INTENT, operation=operation, kind=kind, keys=keys))
        try:
            instant = self._write(kind, keys, operation)
        except (hoodie.CommitConflictError, hoodie.LockTimeoutError) as error:
            state = UNKNOWN if "outcome is not known" in str(error) else REFUSED
            text = f"{type(error).__name__}: {error}"
            self._journal.note(Line(state=state, operation=operation, error=text))
        else:
            self._journal.note(Line(state=DONE, operation=operation, instant=instant))

    def _kind(self) -> str:
        return self._chooser.choices(["upsert", "insert", "delete"], [6, 2, 2])[0]

    def _keys(self, kind: str, operation: str) -> tuple[str, ...]:
        count = self._chooser.randint(1, _BATCH_MAX)
        if kind == "insert":  # does not look keys up: only new ones
            keys = [f"{operation}-{number}" for number in range(count)]
            self._own += keys
            return tuple(keys)
        # The JVM compares file groups, not keys: two writers that insert one key would both succeed. So where it takes
        # part, the shared keys exist from the start and stay.
        may_share = kind != "delete" or not os.environ.get(WITH_JVM)
        pool = SHARED if self._chooser.random() < 0.3 and may_share else self._own
        return tuple(self._chooser.sample(pool, count))

    def _write(self, kind: str, keys: Sequence[str], operation: str) -> str:
        data, extra = rows_of(keys, operation), {OPERATION: operation}
        if kind == "insert":
            return self._table.insert(data, extra_metadata=extra).instant
        if kind == "delete":
            return self._table.delete(data.select(["id", "city"]), extra_metadata=extra).instant
        return self._table.upsert(data, extra_metadata=extra).instant


def main(table: str, folder: str, name: str, seed: str) -> None:
    """Work until the file `stop` appears."""
    stop = Path(folder) / STOP
    with Journal(Path(folder) / f"{name}.journal") as journal:
        worker = Worker(table, journal, name, random.Random(f"{seed} {name}"))
        while not stop.exists():
            worker.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
