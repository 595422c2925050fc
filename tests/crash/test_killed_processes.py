"""A writer's process is killed for real: the next one knows at once that it is dead, and takes its lock over."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hoodie
from hoodie.storage import LocalStore
from tests.crash.tables import Rows, check_recovery, new_table, trips

START: Rows = {"a": (1, "sf"), "c": (1, "nyc")}
PROGRAM = """
import os, signal, sys
import hoodie
from hoodie.commit.steps import Step, watching
from tests.crash.tables import trips

def die(step):
    if step is Step.{step}:
        os.kill(os.getpid(), signal.SIGKILL)

with watching(die):
    hoodie.open(sys.argv[1]).upsert(trips({{"a": (2, "sf"), "x": (1, "la")}}))
"""


@pytest.mark.matrix(keep=3)
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
def test_the_next_writer_does_not_wait(tmp_path: Path, step: str) -> None:
    store = LocalStore(str(tmp_path))
    new_table(store)
    hoodie.open(tmp_path).upsert(trips(START))
    program = PROGRAM.format(step=step)
    command, root = [sys.executable, "-c", program, str(tmp_path)], Path(__file__).parents[2]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=root)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list((tmp_path / ".hoodie" / ".temp").iterdir()) != []
    check_recovery(store, START, START)
