from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hoodie.storage import process
from hoodie.storage.process import boot_ms, is_other_boot, machine_identity, process_start


def test_this_process_runs_and_keeps_its_start() -> None:
    assert process_start(os.getpid()) is not None
    assert process_start(os.getpid()) == process_start(os.getpid())
    assert machine_identity() == machine_identity()
    assert process_start(2**40) is None


def test_an_ended_process_is_gone_even_before_its_parent_looks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert process_start(child.pid) is not None
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(child.pid) is None  # a zombie
    child.wait()
    assert process_start(child.pid) is None


def test_a_process_that_proc_hides_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hidepid, /proc shows the processes of other users to nobody."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "stat").write_text("")
    monkeypatch.setattr(process, "_PROC", tmp_path)
    monkeypatch.setattr(process, "_started", {})
    assert process_start(os.getpid()) == ""


def test_boots() -> None:
    assert not is_other_boot(machine_identity())
    assert not is_other_boot("host/123")  # of a system without boot ids
    assert 0 <= boot_ms() < time.time_ns() // 1_000_000
    if machine_identity().endswith("]"):
        assert is_other_boot("another/pid:[1]")
