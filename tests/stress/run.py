"""Let worker processes write one table while random ones are killed, stopped, or fenced; then judge the table.

- killed: SIGKILL; a new process takes its place;
- stopped: SIGSTOP, and SIGCONT later;
- fenced: stopped, and its lock's lease and its heartbeat end meanwhile, so that another writer takes over.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import hoodie
from tests.stress.judge import Told, judge
from tests.stress.worker import SCHEMA, STOP

ROOT = Path(__file__).parents[2]
_END_SECONDS_MAX = 240
"""How long a worker may take for its last operation: others may wait for the same lock before it."""
_PROGRESS_LINES = 3
_PROGRESS_SECONDS_MAX = 10.0


@dataclass(frozen=True, kw_only=True)
class Stress:
    """What to run. It goes on after `seconds` until the workers noted `answers_min` answers and met `faults_min`."""

    table_type: str
    seconds: float
    seed: int
    processes: int = 8
    answers_min: int = 1
    faults_min: int = 1


@dataclass
class Outcome:
    """What happened, in numbers."""

    seconds: float
    faults: Counter[str]
    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0
    on_timeline: int = 0

    def __str__(self) -> str:
        """Return one line."""
        tried = self.acknowledged + self.refused
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return (
            f"{self.acknowledged} operations acknowledged ({self.acknowledged / self.seconds:.1f} per second), "
            f"{self.refused} refused ({self.refused / max(tried, 1):.0%}), {self.unanswered} without an answer, "
            f"{self.on_timeline} on the timeline; workers: {faults}; {self.seconds:.0f} s"
        )


@dataclass
class Workers:
    """The processes of a run; each place has a name, and each process of it a number."""

    table: Path
    folder: Path
    seed: int
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: int = 0

    def start(self, place: int) -> None:
        """Start the process of a place anew."""
        self.started += 1
        name = f"w{place}.{self.started}"
        command = [sys.executable, "-m", "tests.stress.worker", str(self.table), str(self.folder), name, str(self.seed)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with (self.folder / f"{name}.errors").open("wb") as errors:
            self.processes[place] = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=errors)

    def kill(self, place: int) -> None:
        """Kill the process of a place, which may be stopped."""
        process = self.processes[place]
        process.kill()
        process.wait()

    def signal(self, place: int, number: signal.Signals) -> None:
        """Send a signal to the process of a place."""
        self.processes[place].send_signal(number)

    def check_alive(self) -> None:
        """No worker ended by itself: only an error ends one."""
        ended = {place: process.returncode for place, process in self.processes.items() if process.poll() is not None}
        assert ended == {}, f"workers that ended: {ended}\n{self.errors()}"

    def errors(self) -> str:
        """What all workers printed."""
        texts = {path.name: path.read_text().strip() for path in sorted(self.folder.glob("*.errors"))}
        return "\n".join(f"{name}: {text}" for name, text in texts.items() if text)

    def lines(self) -> int:
        """Lines of the journals: an intent and an answer for each operation."""
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob("*.journal"))

    def end(self) -> None:
        """Let all workers finish what they do; each must end well."""
        (self.folder / STOP).touch()
        codes = {place: process.wait(_END_SECONDS_MAX) for place, process in self.processes.items()}
        assert set(codes.values()) == {0}, f"workers ended with {codes}\n{self.errors()}"


def run(stress: Stress, folder: Path) -> Outcome:
    """Run workers on a new table in `folder`, judge the table, and return what happened.

    Raises:
        AssertionError: a row was lost, doubled or invented, a worker failed, or something needs a person.
    """
    table = folder / "table"
    create(table, stress.table_type)
    (folder / "journals").mkdir()
    workers = Workers(table, folder / "journals", stress.seed)
    began = time.monotonic()
    faults: Counter[str] = Counter()
    try:
        for place in range(stress.processes):
            workers.start(place)
        chooser = random.Random(f"{stress.seed} {stress.table_type}")
        while not is_over(stress, workers, faults, time.monotonic() - began):
            let_work(workers, chooser)
            faults[disturb(workers, chooser)] += 1
        workers.end()
    finally:
        for place in workers.processes:
            workers.kill(place)
    outcome = Outcome(time.monotonic() - began, faults)
    told = Told.read(workers.folder)
    outcome.acknowledged, outcome.refused = len(told.done), len(told.refused)
    outcome.unanswered = len(told.intents) - len(told.done) - len(told.refused)
    outcome.on_timeline = judge(hoodie.open(table), told)
    return outcome


def is_over(stress: Stress, workers: Workers, faults: Counter[str], seconds: float) -> bool:
    """Whether the run has lasted long enough and enough happened in it."""
    return (
        seconds >= stress.seconds and workers.lines() >= 2 * stress.answers_min and faults.total() >= stress.faults_min
    )


def let_work(workers: Workers, chooser: random.Random) -> None:
    """Leave the workers alone until they went on, in a busy machine too, but not for ever: they may wait for a lock."""
    before, last = workers.lines(), time.monotonic() + _PROGRESS_SECONDS_MAX
    time.sleep(chooser.uniform(0.2, 1.5))
    workers.check_alive()
    while workers.lines() < before + _PROGRESS_LINES and time.monotonic() < last:
        time.sleep(0.1)
        workers.check_alive()


def create(table: Path, table_type: str) -> None:
    """An empty table that merges by commit time; merge-on-read compacts inline."""
    properties = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
    if table_type == "merge_on_read":
        properties |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "8"}
    hoodie.create(
        table, SCHEMA, record_key="id", partition_by="city", type=table_type, properties=properties, spark=False
    )


def disturb(workers: Workers, chooser: random.Random) -> str:
    """Disturb a random worker; return what was done."""
    place = chooser.choice(sorted(workers.processes))
    fault = chooser.choices(["killed", "stopped", "fenced"], [6, 2, 2])[0]
    if fault == "killed":
        workers.kill(place)
        workers.start(place)
        return fault
    workers.signal(place, signal.SIGSTOP)
    if fault == "fenced":
        end_lease(workers.table, workers.processes[place].pid)
    time.sleep(chooser.uniform(0.5, 3.0))
    if chooser.random() < 0.2:
        workers.kill(place)
        workers.start(place)
        return f"{fault} and killed"
    workers.signal(place, signal.SIGCONT)
    return fault


def end_lease(table: Path, pid: int) -> None:
    """Let the lock and the heartbeat of a stopped process end soon, as if it had been stopped for minutes."""
    lock = table / ".hoodie" / "lock"
    if lock.exists() and is_of(lock, pid):
        lock.write_bytes(lock.read_bytes().replace(b'"lease_ms": 30000', b'"lease_ms": 200'))
    for beat in (table / ".hoodie" / ".heartbeat").glob("*"):
        if is_of(beat, pid):
            os.utime(beat, (1, 1))


def is_of(path: Path, pid: int) -> bool:
    """Whether the process is the owner that a lock or heartbeat file names; another writer may delete the file."""
    try:
        return bool(json.loads(path.read_bytes())["pid"] == pid)
    except (OSError, ValueError):
        return False
