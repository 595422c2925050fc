"""Let worker processes write one table while random ones are killed, stopped, or fenced; then judge the table.

- killed: SIGKILL; a new process takes its place;
- stopped: SIGSTOP, and SIGCONT later;
- fenced: stopped, and its lock's lease and its heartbeat end meanwhile, so that another writer takes over.
"""

from __future__ import annotations

import contextlib
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
from hoodie.timeline.locks import zookeeper
from tests.stress.journal import DONE, INTENT, Journal, Line, read_journal
from tests.stress.judge import Told, judge
from tests.stress.worker import OPERATION, SCHEMA, SEEDED, SHARED, STOP, WITH_JVM, rows_of
from tests.support.zookeeper_server import running_zookeeper

ROOT = Path(__file__).parents[2]
_END_SECONDS_MAX = 240
"""How long a worker may take for its last operation: others may wait for the same lock before it."""
_PROGRESS_LINES = 3
_JVM_LINES_MIN = 3
"""Lines in the journal of a JVM before it may be disturbed: it has done an operation and begun another."""
_PROGRESS_SECONDS_MAX = 10.0


@dataclass(frozen=True, kw_only=True)
class Stress:
    """What to run; `jvm` of the `processes` write with JVM Hudi.

    It goes on after `seconds` until the workers noted `answers_min` answers and met `faults_min`.
    """

    table_type: str
    seconds: float
    seed: int
    processes: int = 8
    jvm: int = 0
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
    by_jvm: str = ""
    on_timeline: int = 0

    def __str__(self) -> str:
        """Return one line."""
        tried = self.acknowledged + self.refused
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return (
            f"{self.acknowledged} operations acknowledged ({self.acknowledged / self.seconds:.1f} per second), "
            f"{self.refused} refused ({self.refused / max(tried, 1):.0%}), {self.unanswered} without an answer, "
            f"{self.on_timeline} on the timeline; {self.by_jvm}workers: {faults}; {self.seconds:.0f} s"
        )


@dataclass
class Workers:
    """The processes of a run; each place has a name, and each process of it a number."""

    table: Path
    folder: Path
    seed: int
    jvm: int = 0
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    started: int = 0

    def start(self, place: int) -> None:
        """Start the process of a place anew."""
        self.started += 1
        name = self.names[place] = f"w{place}.{self.started}"
        module = "tests.stress.jvm_worker" if self.is_jvm(place) else "tests.stress.worker"
        command = [sys.executable, "-m", module, str(self.table), str(self.folder), name, str(self.seed)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", WITH_JVM: str(self.jvm or "")}
        with (self.folder / f"{name}.errors").open("wb") as errors:
            self.processes[place] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=errors, stderr=errors, start_new_session=True
            )

    def kill(self, place: int) -> None:
        """Kill the process of a place, which may be stopped."""
        self.signal(place, signal.SIGKILL)
        self.processes[place].wait()

    def signal(self, place: int, number: signal.Signals) -> None:
        """Send a signal to the process of a place, and to the JVM that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[place].pid, number)

    def is_jvm(self, place: int) -> bool:
        """Whether the process of a place writes with the JVM."""
        return place < self.jvm

    def is_ready(self, place: int) -> bool:
        """Whether the process of a place may be disturbed: a JVM takes long to start, so it first does something."""
        if not self.is_jvm(place):
            return True
        return self.lines(f"{self.names[place]}.journal") >= _JVM_LINES_MIN

    def check_alive(self) -> None:
        """No worker ended by itself: only an error ends one."""
        ended = {place: process.returncode for place, process in self.processes.items() if process.poll() is not None}
        assert ended == {}, f"workers that ended: {ended}\n{self.errors()}"

    def errors(self) -> str:
        """What all workers printed."""
        texts = {path.name: path.read_text().strip() for path in sorted(self.folder.glob("*.errors"))}
        return "\n".join(f"{name}: {text}" for name, text in texts.items() if text)

    def lines(self, journals: str = "*.journal") -> int:
        """Lines of the journals: an intent and an answer for each operation."""
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob(journals))

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
    with contextlib.ExitStack() as stack:
        properties: dict[str, str] = {}
        if stress.jvm:
            address = stack.enter_context(running_zookeeper(folder / "zookeeper"))
            properties = lock_in_zookeeper(address)
        return _run(stress, folder, properties)


def _run(stress: Stress, folder: Path, properties: dict[str, str]) -> Outcome:
    table = folder / "table"
    create(table, stress.table_type, properties)
    (folder / "journals").mkdir()
    workers = Workers(table, folder / "journals", stress.seed, stress.jvm)
    if stress.jvm:
        write_shared_keys(workers)
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
    if stress.jvm:
        end_heartbeats(table)
    outcome.acknowledged, outcome.refused = len(told.done), len(told.refused)
    outcome.unanswered = len(told.intents) - len(told.done) - len(told.refused)
    outcome.by_jvm = answers_of_jvm(workers, told)
    outcome.on_timeline = judge(hoodie.open(table), told)
    return outcome


def answers_of_jvm(workers: Workers, told: Told) -> str:
    """What the JVM writers were told, in numbers; empty without them."""

    def count(lines: dict[str, Line]) -> int:
        return sum(name[1:].partition(".")[0] in map(str, range(workers.jvm)) for name in lines)

    if not workers.jvm:
        return ""
    unknown = [line.error for path in workers.folder.glob("*.journal") for line in read_journal(path) if line.error]
    errors = [
        " ".join(text.split())[:300] + " … " + " ".join(text.split())[-700:]
        for text in unknown
        if "outcome is not known" in text
    ]
    for text in errors:
        print(f"JVM: {text}")
    return f"JVM: {count(told.done)} acknowledged, {count(told.refused)} refused, {len(errors)} other errors; "


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


def lock_in_zookeeper(address: str) -> dict[str, str]:
    """Table properties that both implementations read: a lock that ends ten seconds after its holder was killed."""
    return {
        "hoodie.write.lock.provider": zookeeper.NAME,
        "hoodie.write.lock.zookeeper.url": address,
        "hoodie.write.lock.zookeeper.base_path": "/stress",
        "hoodie.write.lock.zookeeper.lock_key": "table",
        "hoodie.write.lock.zookeeper.session_timeout_ms": "10000",
    }


def write_shared_keys(workers: Workers) -> None:
    """Write the shared keys, and note it as a worker does."""
    with Journal(workers.folder / f"{SEEDED}.journal") as journal:
        journal.note(Line(state=INTENT, operation=SEEDED, kind="upsert", keys=tuple(SHARED)))
        table = hoodie.open(workers.table, spark=False)
        done = table.upsert(rows_of(SHARED, SEEDED), extra_metadata={OPERATION: SEEDED})
        journal.note(Line(state=DONE, operation=SEEDED, instant=done.instant))


def end_heartbeats(table: Path) -> None:
    """Let the heartbeats of killed JVMs end now; else only their age would tell that they are dead, in two minutes."""
    for beat in (table / ".hoodie" / ".heartbeat").glob("*"):
        os.utime(beat, (1, 1))


def create(table: Path, table_type: str, stored: dict[str, str] | None = None) -> None:
    """An empty table that merges by commit time; merge-on-read compacts inline. `stored`: further properties."""
    properties = {"hoodie.metadata.record.index.min.filegroup.count": "2", **(stored or {})}
    if table_type == "merge_on_read":
        properties |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "8"}
    hoodie.create(
        table, SCHEMA, record_key="id", partition_by="city", type=table_type, properties=properties, spark=False
    )


def disturb(workers: Workers, chooser: random.Random) -> str:
    """Disturb a random worker; return what was done."""
    place = chooser.choice([place for place in sorted(workers.processes) if workers.is_ready(place)])
    # The JVM does not notice that its session in ZooKeeper ended, so it is never stopped for longer than that.
    fault = chooser.choices(["killed", "stopped", "fenced"], [6, 2, 0 if workers.is_jvm(place) else 2])[0]
    name_of = "JVM {}".format if workers.is_jvm(place) else str
    if fault == "killed":
        workers.kill(place)
        workers.start(place)
        return name_of(fault)
    workers.signal(place, signal.SIGSTOP)
    if fault == "fenced":
        end_lease(workers.table, workers.processes[place].pid)
    longer = 10.0 if fault == "fenced" and workers.jvm else 0.0
    time.sleep(longer + chooser.uniform(0.5, 3.0))
    if chooser.random() < 0.2:
        workers.kill(place)
        workers.start(place)
        return name_of(f"{fault} and killed")
    workers.signal(place, signal.SIGCONT)
    return name_of(fault)


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
