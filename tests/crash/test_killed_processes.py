"""Real processes that are killed or stopped: the next one knows at once, takes over, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hoodie
from hoodie.storage import LocalStore
from tests.support.compactor_processes import (
    CITIES,
    instants_of,
    planned_table,
    start_and_kill_compactor,
    start_compactor,
)
from tests.support.deaths import check_recovery
from tests.support.merge_on_read import merged_rows
from tests.support.tables import Rows, create_in, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
THEIRS: Rows = {"a": (5, "sf"), "y": (1, "nyc")}
PROGRAM = """
import sys
import hoodie
from hoodie.commit.steps import Step, watching
from tests.support.tables import trips

def wait(step):
    if step is Step[sys.argv[2]]:
        print("reached", flush=True)
        sys.stdin.readline()

try:
    with watching(wait):
        hoodie.open(sys.argv[1]).upsert(trips({"b": (2, "sf"), "x": (1, "la")}))
except hoodie.CommitConflictError as error:
    print("refused:", error)
else:
    print("committed")
"""


@contextmanager
def writer_at(step: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process whose upsert waits at the step."""
    create_in(LocalStore(folder))
    hoodie.open(folder).upsert(trips(START))
    writer = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), step],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "reached\n"
        yield writer


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    "step",
    [
        "REQUESTED",  # holds the lock
        "BEGUN",  # is in flight
        "WRITTEN",  # has files
        "CHECKED",  # holds the lock
        "RECORDED",  # holds the lock, and the metadata table has it
    ],
)
def test_the_next_writer_does_not_wait_for_a_killed_one(tmp_path: Path, step: str) -> None:
    with writer_at(step, tmp_path) as writer:
        writer.kill()
    assert list(hoodie.open(tmp_path).timeline.pending()) != []
    check_recovery(LocalStore(tmp_path), START, START)


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("step", ["WRITTEN", "CHECKED", "RECORDED"])
def test_a_process_that_is_stopped_and_continued_is_refused(tmp_path: Path, step: str) -> None:
    """Its lease ends and its heartbeat grows old while it does not run."""
    with writer_at(step, tmp_path) as writer:
        writer.send_signal(signal.SIGSTOP)
        lock = tmp_path / ".hoodie" / "lock"
        if lock.exists():  # as if the next writer had waited for the whole lease
            lock.write_bytes(lock.read_bytes().replace(b'"lease_ms": 30000', b'"lease_ms": 200'))
        for beat in (tmp_path / ".hoodie" / ".heartbeat").iterdir():
            os.utime(beat, (1, 1))
        hoodie.open(tmp_path).upsert(trips(THEIRS))
        writer.send_signal(signal.SIGCONT)
        out, _ = writer.communicate("go on\n", timeout=60)
        assert out.startswith("refused:"), out
    check_recovery(LocalStore(tmp_path), {**START, **THEIRS}, {**START, **THEIRS})


def test_three_compactors_do_each_plan_once_and_take_up_what_a_killed_one_left(tmp_path: Path) -> None:
    """They share the plans of a table through its lock."""
    table, rows = planned_table(tmp_path / "table")
    plans = table.pending_compactions().instants
    assert len(plans) == len(CITIES)
    start_and_kill_compactor(tmp_path / "table")
    first, *_ = table.pending_compactions()
    assert first.state == "interrupted"
    compactors = [start_compactor(tmp_path / "table") for _ in range(3)]
    done = [instants_of(compactor) for compactor in compactors]
    assert sorted(instant for instants in done for instant in instants) == plans
    assert merged_rows(table.view().store) == rows
    assert len(table.pending_compactions()) == 0
    commits = table.timeline.filter(lambda found: found.action.value == "commit")
    assert [found.requested_time for found in commits] == plans
    names = [info.name for info in table.view().store.list("", recursive=True) if info.name.endswith(".parquet")]
    assert len(names) == 2 * len(CITIES), "a base file of the one that was killed is left"
