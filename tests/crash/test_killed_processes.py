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
import hoodie.{module} as module
from tests.crash.tables import trips

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

module.{function} = die
hoodie.open(sys.argv[1]).upsert(trips({{"a": (2, "sf"), "x": (1, "la")}}))
"""


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("commit.transaction", "create_requested"),  # holds the lock
        ("write.indexed", "record_bytes"),  # is in flight
        ("commit.transaction", "create_completed"),  # holds the lock, and the metadata table has it
    ],
)
def test_the_next_writer_does_not_wait(tmp_path: Path, module: str, function: str) -> None:
    store = LocalStore(str(tmp_path))
    new_table(store)
    hoodie.open(tmp_path).upsert(trips(START))
    program = PROGRAM.format(module=module, function=function)
    command, root = [sys.executable, "-c", program, str(tmp_path)], Path(__file__).parents[2]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=root)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list((tmp_path / ".hoodie" / ".temp").iterdir()) != []
    check_recovery(store, START, START)
