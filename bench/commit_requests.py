"""Count the storage requests of a commit of 100 rows, by what they are for: on the local disk and in S3.

The S3 service is moto's server in this process, and its HTTP requests are counted. On the local disk the calls at the
door to the storage are counted. `python -m bench.commit_requests URI ENDPOINT` makes the commit in S3, in a process
that has not seen the table before.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.markdown import machine_line, table
from bench.settings import Settings, machine
from hoodie.storage import LocalStore, open_store
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.support.fault_store import FaultStore

TYPES = ("copy_on_write", "merge_on_read")
GOALS = {
    "lock": (10, "take it, read it again before each last step, give it back; once to begin and once to complete"),
    "timeline": (
        8,
        "list it once for each time the lock is held; requested, inflight, completed; read the last commit",
    ),
    "metadata table": (
        28,
        "one read for each index bucket that has a key; list; three instants; one log block for each partition",
    ),
    "data": (12, "of each of the 4 base files: open it; open and close the new file or the log file"),
    "markers": (6, "one for each of the 4 new files; look for abandoned ones; delete the folder"),
    "heartbeat": (3, "list, write, delete"),
    "properties": (3, "once for each time the lock is held, and once for the handle"),
    "deletions in S3": (
        6,
        "lock twice, heartbeat, markers, prepared completed instants; elsewhere they count where the file is",
    ),
    "staging": (0, "few rows are staged in memory"),
}
"""The number of requests that each area should need at most, and what they are for."""
_AREAS = (
    ("deletions in S3", re.compile(r"\?delete$")),
    ("staging", re.compile(r"/stage")),
    ("markers", re.compile(r"\.temp")),
    ("metadata table", re.compile(r"\.hoodie/metadata")),
    ("heartbeat", re.compile(r"heartbeat")),
    ("lock", re.compile(r"\.hoodie/\.?lock")),
    ("properties", re.compile(r"hoodie\.properties")),
    ("timeline", re.compile(r"\.hoodie/timeline")),
)
_REQUEST = re.compile(r'"([A-Z]+) (\S+) HTTP')
_BUCKET = "bench"
_ROWS = 4_000
_CHANGES = 100
CITIES = 4
_EARLIER = 3


def run(settings: Settings) -> dict[str, Any]:
    """Count the requests of one upsert by a new handle, for both table types and both stores."""
    tell("storage requests of a commit ...")
    told = machine()
    counts: dict[str, dict[str, int]] = {}
    for table_type in TYPES:
        counts[f"{table_type}, local"] = _local(settings, table_type)
        counts[f"{table_type}, S3"] = _in_s3(table_type)
    return {"machine": told, "rows": _ROWS, "counts": counts}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each area, with its goal, and the sum."""
    counts = result["counts"]
    rows = []
    for area, (goal, purpose) in GOALS.items():
        rows.append([area, *(str(found.get(area, 0)) for found in counts.values()), str(goal), purpose])
    others = [sum(number for area, number in found.items() if area not in GOALS) for found in counts.values()]
    if any(others):
        rows.append(["other", *(str(number) for number in others), "0", ""])
    sums = [str(sum(found.values())) for found in counts.values()]
    rows.append(["all", *sums, str(sum(goal for goal, _ in GOALS.values())), ""])
    head = ["requests", *(name.replace("_", "-") for name in counts), "goal", "for"]
    title = (
        f"An upsert of {_CHANGES} rows in {CITIES} partitions, a base file in each, record index, "
        f"commit #{_EARLIER + 2}, a new handle, in process, {machine_line(result['machine'])}"
    )
    return "\n".join([title, "", table(head, rows), ""])


def _local(settings: Settings, table_type: str) -> dict[str, int]:
    folder = settings.work / "table-requests"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _make(LocalStore(str(folder)), table_type)
    store = FaultStore(LocalStore(str(folder)), count_reads=True)
    store.register()
    try:
        _upsert(Table(store, spark=False), _EARLIER + 1)
    finally:
        store.unregister()
    shutil.rmtree(folder)
    return _by_area([call.path for call in store.calls])


def _in_s3(table_type: str) -> dict[str, int]:
    with _s3() as (options, requests):
        uri = f"s3://{_BUCKET}/{table_type}"
        _make(open_store(uri, options), table_type)
        requests.clear()
        figures_of("bench.commit_requests", uri, options["aws_endpoint"])
        return _by_area(requests)


def _make(store: Any, table_type: str) -> None:
    """Create a table with a bulk insert and some upserts."""
    rows = rows_of(range(_ROWS), 0)
    options: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering": "ts", "type": table_type}
    create_table(store, rows.schema, CreateOptions(**options, index="record"))
    made = Table(store, spark=False)
    made.bulk_insert(rows)
    for number in range(1, _EARLIER + 1):
        _upsert(made, number)


def _upsert(target: Table, number: int) -> None:
    begin = number * _CHANGES
    result = target.upsert(rows_of(range(begin, begin + _CHANGES), number))
    assert result.updated == _CHANGES, str(result)


def rows_of(ids: range, ts: int) -> pa.Table:
    """Return rows of these ids, in four cities."""
    return pa.table(
        {
            "id": [f"k{number:06}" for number in ids],
            "city": [f"c{number % CITIES}" for number in ids],
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "fare": pa.array([float(ts)] * len(ids)),
        }
    )


def _by_area(paths: list[str]) -> dict[str, int]:
    return dict(Counter(_area(path) for path in paths))


def _area(path: str) -> str:
    for area, pattern in _AREAS:
        if pattern.search(path):
            return area
    return "other" if ".hoodie/" in path.partition("city=")[0] else "data"


@contextmanager
def _s3() -> Iterator[tuple[dict[str, str], list[str]]]:
    """Start an S3 service with a bucket; yield the storage options, and the list that gets the path of each request."""
    from moto.server import ThreadedMotoServer

    requests: list[str] = []
    handler = _Noted(requests.append)
    logger = logging.getLogger("werkzeug")
    level, propagate = logger.level, logger.propagate
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{_BUCKET}", method="PUT")).close()
        yield s3_options(endpoint), requests
    finally:
        server.stop()
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def s3_options(endpoint: str) -> dict[str, str]:
    """Return the storage options for moto's server."""
    names = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench", "aws_region": "us-east-1"}
    return {"aws_endpoint": endpoint, "allow_http": "true", **names}


class _Noted(logging.Handler):
    """Hand on the path of each request in the log of the server."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        if found := _REQUEST.search(record.getMessage()):
            self._note(urllib.parse.unquote(found[2]))


def main() -> None:
    """Make one commit in the table in S3 that the arguments name."""
    uri, endpoint = sys.argv[1:3]
    _upsert(hoodie.open(uri, storage_options=s3_options(endpoint), spark=False), _EARLIER + 1)
    print_figures({})


if __name__ == "__main__":
    main()
