"""A worker of the stress that writes with JVM Hudi 1.2.0: upserts of own and shared keys, until it is told to stop.

Usage, on PySpark 3.5: python -m tests.stress.jvm_worker TABLE FOLDER NAME SEED
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hoodie.errors import CommitConflictError
from tests.interop.judges import JVM_CONFS, QUICK_OPTIONS, Jvm
from tests.stress.journal import Journal
from tests.stress.worker import OF_JVM, OPERATION, STOP, Worker, rows_of
from tests.support.sessions import open_classic_session

CONFS = {
    **JVM_CONFS,
    "spark.master": "local[1]",
    "spark.driver.memory": "800m",
    "spark.driver.extraJavaOptions": (
        "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        "--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED"
    ),
}
OPTIONS = {
    **QUICK_OPTIONS,
    "hoodie.table.name": "table",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.commitmeta.key.prefix": OPERATION,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    # Without it the JVM looks for no conflicts and rolls back the pending writes of others.
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.write.lock.client.num_retries": "3",
}
"""The lock provider is not among them: the JVM reads it from the table's properties."""
REFUSALS = ("HoodieWriteConflictException", "HoodieLockException", "FAILED_TO_ACQUIRE", "Cannot resolve conflicts")

AFTER_COMMIT = "runTableServicesInline"
"""In the stack of an error of a table service, which runs after the commit of the write."""


class JvmWorker(Worker):
    """Writes with the JVM; its errors become those of this library, so that the journal has one kind of answer."""

    def __init__(self, table: str, journal: Journal, name: str, chooser: random.Random) -> None:
        super().__init__(table, journal, name, chooser)
        self._own = [f"{OF_JVM}{key}" for key in self._own]
        jars = {"spark.jars": str(Path(os.environ["HOODIE_JVM_BUNDLE"]).resolve())}
        scratch = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=Path(table).parent))
        self._jvm = Jvm(open_classic_session(scratch, {**CONFS, **jars}), scratch=scratch)
        self._path = table

    def _kind(self) -> str:
        return "upsert"

    def _write(self, kind: str, keys: Sequence[str], operation: str) -> str:
        options = {**OPTIONS, OPERATION: operation, "hoodie.datasource.write.table.type": self._table_type()}
        try:
            frame = self._jvm.frame(rows_of(keys, operation))
            frame.write.format("hudi").options(**options).mode("append").save(self._path)
        except Exception as error:  # of py4j, which knows one class of errors
            text = str(error)
            if AFTER_COMMIT not in text and any(name in text for name in REFUSALS):
                raise CommitConflictError(text[:2000]) from error
            # Whether the instant completed cannot be told: the error may come from a service after it.
            raise CommitConflictError(f"the outcome is not known: {text[:1000]} … {text[-3000:]}") from error
        return ""

    def _table_type(self) -> str:
        return self._table.view().config.table_type.value


def main(table: str, folder: str, name: str, seed: str) -> None:
    """Work until the file `stop` appears."""
    stop = Path(folder) / STOP
    with Journal(Path(folder) / f"{name}.journal") as journal:
        worker = JvmWorker(table, journal, name, random.Random(f"{seed} {name}"))
        while not stop.exists():
            worker.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
