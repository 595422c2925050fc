"""`hoodie.ship`: send this package to Spark's workers that lack it.

Small tasks look into the workers; they run without this package. Pure Python can be sent: a zip of `hoodie`
and `pyspark_hoodie`, with the Python modules of `fastavro` and `sqlglot` where a worker lacks them. Compiled packages
cannot be sent. Workers without pyarrow or numpy are refused by name; the others can be done without.
"""

from __future__ import annotations

import atexit
import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import resources
from typing import Any

import pyarrow as pa

from hoodie.arguments import check_arguments
from hoodie.display import html_rows
from hoodie.errors import WorkerEnvironmentError
from hoodie.spark.engine import SparkEngine
from hoodie.spark.workers import errors_of_jobs, is_connect, own_python, release
from hoodie.storage import scratch_folder, scratch_output
from hoodie.table.context import Spark

NEEDED = ("pyarrow", "numpy")
SENT = ("fastavro", "sqlglot")
"""Packages whose Python modules are sent where they are missing; fastavro is slower without its compiled ones."""
DISPENSABLE = {
    "isal": "the files of indexes are compressed by zlib there, which takes longer",
    "obstore": "tables in an object store cannot be read or written there",
}
"""Packages that a worker can lack, and what that means."""
_LOOKED_FOR = (*NEEDED, *SENT, *DISPENSABLE)
_PACKAGES = ("hoodie", "pyspark_hoodie")
_HEAD = ("host", "interpreter", "Python", "hoodie", *_LOOKED_FOR)
_SCHEMA = ", ".join(f"`{name}` string" for name in _HEAD)
_PACKED_ENVIRONMENT = (
    "install them there, or send a packed environment: "
    "spark.archives=environment.tar.gz#environment and PYSPARK_PYTHON=./environment/bin/python (docs/deploy.md)"
)
_sent_files = ExitStack()
atexit.register(_sent_files.close)


@dataclass(frozen=True, slots=True)
class FoundWorker:
    """What a task found in its worker: the release of hoodie and of each other package; None where it lacks."""

    host: str
    interpreter: str
    python: str
    hoodie: str | None
    packages: dict[str, str | None]

    @property
    def row(self) -> list[str]:
        """Host, interpreter, version of Python, and releases in the order of the columns."""
        releases = [self.hoodie, *self.packages.values()]
        return [self.host, self.interpreter, self.python, *(found or "missing" for found in releases)]


@dataclass(frozen=True, slots=True)
class ShipResult:
    """What `hoodie.ship` found in the workers and did; `workers` is the state afterwards."""

    release: str
    sent_bytes: int
    workers: tuple[FoundWorker, ...]

    @property
    def done(self) -> str:
        """One sentence: what was done."""
        if self.sent_bytes:
            return f"sent hoodie {self.release} to the workers: {self.sent_bytes:,} bytes"
        return f"the workers have hoodie {self.release}: nothing sent"

    @property
    def notes(self) -> tuple[str, ...]:
        """What workers lack, and can do without."""
        return tuple(
            f"workers lack {name}: {meaning}"
            for name, meaning in DISPENSABLE.items()
            if any(one.packages[name] is None for one in self.workers)
        )

    def __str__(self) -> str:
        lines = (", ".join(f"{name} {cell}" for name, cell in zip(_HEAD, one.row, strict=True)) for one in self.workers)
        return "\n".join([self.done, *(f"  {line}" for line in lines), *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        said = "; ".join([self.done, *self.notes])
        return f"<p>{said}</p>{html_rows(_HEAD, [one.row for one in self.workers])}"


@check_arguments
def ship(spark: Spark) -> ShipResult:
    """Send this package to the workers of a Spark session that lack it, or that have another release of it.

    Tasks look into the workers first. If all have this release, nothing is sent. Workers that start later receive the
    package too. The package stays with the session's application; a later application calls `ship` again. The
    call does not change an installed package.

    Raises: WorkerEnvironmentError if workers run another version of Python, or lack a package that cannot be sent, or
        still lack this package after it was sent.

    Example, at the begin of a program on a cluster whose machines do not have the package:

        spark = SparkSession.builder.remote("sc://cluster").getOrCreate()
        print(hoodie.ship(spark))
    """
    found = _look(spark)
    _refuse_missing_packages(found)
    wanted, sent_bytes = release(), 0
    missing = tuple(name for name in SENT if any(one.packages[name] is None for one in found))
    if missing or any(one.hoodie != wanted for one in found):
        sent_bytes = _send(spark, wanted, missing)
        found = _look(spark)
        wrong = [one for one in found if one.hoodie != wanted or any(one.packages[name] is None for name in SENT)]
        if wrong:
            raise WorkerEnvironmentError(
                f"hoodie {wanted} was sent, and the worker {wrong[0].interpreter} of {wrong[0].host} has "
                f"{dict(zip(_HEAD[3:], wrong[0].row[3:], strict=True))}: {_PACKED_ENVIRONMENT}"
            )
    return ShipResult(wanted, sent_bytes, found)


def _look(spark: Any) -> tuple[FoundWorker, ...]:
    """Look into the workers by some tasks for each core; return each different answer once."""
    tasks = 2 * SparkEngine(spark).slots
    with own_python(spark):
        found = spark.range(0, tasks, 1, tasks).mapInArrow(_probe(), _SCHEMA)
    with errors_of_jobs(spark):
        rows = found.distinct().collect()
    return tuple(
        FoundWorker(row[0], row[1], row[2], row[3], dict(zip(_LOOKED_FOR, row[4:], strict=True)))
        for row in sorted(rows, key=str)
    )


def _probe() -> Any:
    """Return a function of `mapInArrow` that can be unpickled where hoodie is not installed."""
    head, needed = _HEAD, _LOOKED_FOR

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        import importlib.metadata
        import importlib.util
        import re
        import socket
        import sys
        import time

        import pyarrow

        def release_of(name: str) -> str | None:
            if importlib.util.find_spec(name) is None:
                return None
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                return "of unknown release"

        def hoodie_release() -> str | None:
            spec = importlib.util.find_spec("hoodie")
            if spec is None:
                return None
            loader: Any = spec.loader
            source = loader.get_source("hoodie") if hasattr(loader, "get_source") else None
            match = re.search(r'^__version__ = "(.*)"', source or "", flags=re.MULTILINE)
            return match[1] if match else "of unknown release"

        for _ in batches:
            time.sleep(0.1)  # the next task starts in another worker
        minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
        found = [socket.gethostname(), sys.executable, minor, hoodie_release(), *map(release_of, needed)]
        columns = [pyarrow.array([one], pyarrow.string()) for one in found]
        yield pyarrow.RecordBatch.from_arrays(columns, names=list(head))

    return look


def _refuse_missing_packages(found: tuple[FoundWorker, ...]) -> None:
    for one in found:
        missing = [name for name in NEEDED if one.packages[name] is None]
        if missing:
            raise WorkerEnvironmentError(
                f"the worker {one.interpreter} of {one.host} lacks {', '.join(missing)}, which hoodie does not send: "
                f"{_PACKED_ENVIRONMENT}"
            )


def _send(spark: Any, wanted: str, others: tuple[str, ...]) -> int:
    """Send a zip of the package, and of others, to the workers of the session; return its size."""
    content = zipped_package(others)
    folder = _sent_files.enter_context(scratch_folder())  # Spark's file server reads the file as long as it runs
    path = f"{folder}/hoodie-{wanted}.zip"
    with scratch_output(path) as output:
        output.write(content)
    if is_connect(spark):
        spark.addArtifacts(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)
    return len(content)


def zipped_package(others: tuple[str, ...] = ()) -> bytes:
    """Return a zip of the imported package, from a folder or a zip, and of other packages; Python imports from it."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in (*_PACKAGES, *others):
            for name, content in _files(resources.files(package), package):
                archive.writestr(name, content)
    return output.getvalue()


def _files(folder: Any, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: str(entry.name)):
        inner = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry, inner)
        elif not entry.name.endswith((".pyc", ".so", ".pyd", ".pyi")):
            yield inner, entry.read_bytes()
