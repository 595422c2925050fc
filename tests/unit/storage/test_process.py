from __future__ import annotations

import os
import subprocess
import sys

from hoodie.storage.process import machine_identity, process_start


def test_this_process_runs_and_keeps_its_start() -> None:
    assert process_start(os.getpid()) is not None
    assert process_start(os.getpid()) == process_start(os.getpid())
    assert machine_identity() == machine_identity()


def test_an_ended_process_is_gone_even_before_its_parent_looks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert process_start(child.pid) is not None
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(child.pid) is None  # a zombie
    child.wait()
    assert process_start(child.pid) is None
