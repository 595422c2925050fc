"""Compactors as processes of their own, which share the plans of a table; one of them can be made to stop half-way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from hoodie.storage import open_store
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.support.merge_on_read import SCHEMA, Rows, trips

CITIES = [f"city-{number}" for number in range(4)]
SECONDS_MAX = 180.0
_STUCK = """
import sys, time
from hoodie.engine import LocalEngine
from hoodie.view.table_state import TableState
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.commit.call import Call
from hoodie.services.planned.coordination import coordinator_of
from hoodie.services.planned.executor import execute
from hoodie.storage import open_store

class Stuck(LocalEngine):
    def run(self, function, tasks, sizes=None):
        results = LocalEngine.run(self, function, tasks)
        print("stuck", flush=True)
        time.sleep(600)
        return results

engine, coordinator = Stuck(), coordinator_of(sys.argv[2] if len(sys.argv) > 2 else None)
state = TableState(open_store(sys.argv[1]))
call = Call(state=state, engine=engine, properties={"hoodie.python.local.bytes.max": "0"})
execute(COMPACTION, call, coordinator=coordinator)
"""


def planned_table(path: Path) -> tuple[Table, Rows]:
    """A table with a plan for each of its partitions, and its rows."""
    store = open_store(str(path))
    wanted = CreateOptions(
        record_key="id", partition_by="city", ordering="ts", type="merge_on_read", index="global_simple"
    )
    create_table(store, SCHEMA, wanted)
    table = Table(store)
    rows: Rows = {f"{city}-{number}": (1, city) for city in CITIES for number in range(20)}
    table.upsert(trips(rows))
    changed: Rows = {key: (2, city) for key, (_, city) in rows.items() if key.endswith("1")}
    table.upsert(trips(changed))
    for _ in CITIES:
        assert table.schedule_compaction("day_based", properties={"hoodie.compaction.daybased.target.partitions": "1"})
    return table, {**rows, **changed}


def start_compactor(path: Path, zookeeper: str | None = None) -> subprocess.Popen[str]:
    """`hoodie services run`, one round."""
    more = [] if zookeeper is None else ["--zookeeper", zookeeper]
    arguments = ["services", "run", str(path), "--compact", "--once", "--no-schedule", "--json", *more]
    return _start("-m", "hoodie", *arguments)


def instants_of(process: subprocess.Popen[str]) -> list[str]:
    """What a compactor carried out, once it is done; it must end well."""
    out, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, errors
    return [str(json.loads(line)["instant"]) for line in out.splitlines()]


def start_and_kill_compactor(path: Path, zookeeper: str | None = None) -> None:
    """A compactor that wrote the base files of a plan, and is killed before it completes it."""
    process = _start("-c", _STUCK, str(path), *([] if zookeeper is None else [f"zookeeper://{zookeeper}"]))
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "stuck"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS_MAX)


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
