"""Signals that end a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hoodie.cli.signals import interrupted

TWICE = """
import os, signal, threading
from hoodie.cli.signals import interrupted

with interrupted() as stopped:
    threading.Thread(target=threading.Event().wait).start()  # work that does not end
    os.kill(os.getpid(), signal.{name})
    assert stopped.wait(60)
    os.kill(os.getpid(), signal.{name})
    threading.Event().wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_an_event(number: int) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with interrupted() as stopped:
        assert not stopped.is_set()
        os.kill(os.getpid(), number)
        assert stopped.wait(5)
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_second_signal_ends_the_process_while_threads_work(name: str) -> None:
    code = TWICE.format(name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.startswith("hoodie: interrupted twice;")) == (130, True), done.stderr
