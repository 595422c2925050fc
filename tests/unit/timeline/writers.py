"""Writers that end in all the ways a writer can: in processes of their own, in threads, and on machines elsewhere."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.errors import StorageError
from hoodie.storage import MemoryStore
from hoodie.timeline import TableLock
from hoodie.timeline.owner import Owner

HOSTILE = [
    b"other text",
    b"\xff\xfe\x00",
    b'{"machine": "m", "host": "h", "pid": 1e999, "process_start": "", "token": "' + b"0" * 32 + b'"}',
    b'{"machine": "m", "host": "h", "pid": ' + b"9" * 4000 + b', "process_start": "", "token": "x"}',
    b'{"machine": "m", "host": "h", "pid": 1, "process_start": "", "token": "../../up"}',
    b"[" * 100_000,
    b'{"a":' * 700 + b"1" + b"}" * 700,
    b"null",
    b"[1]",
]
"""What a file may have in place of the words of a writer."""


@contextmanager
def other_process(table: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """Run `code` with `store` in another process; killed at the end without a chance to clean up."""
    program = (
        "import sys\nfrom hoodie.storage import LocalStore\nfrom hoodie.timeline import Heartbeat, TableLock\n"
        f"store = LocalStore({str(table)!r})\n{code}\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def on_another_machine() -> Owner:
    """A writer that cannot be seen from here."""
    return replace(Owner.new(), machine="another machine", host="elsewhere")


class Undeletable(MemoryStore):
    """A store that refuses deletions."""

    def delete(self, path: str) -> None:
        raise StorageError("503 slow down")


def forbid_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has too many of them."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def take_turns(new_lock: Callable[[], TableLock], end: Callable[[TableLock], object] = TableLock.release) -> None:
    """Four threads take a lock five times each, and end it: no two of them have it at once."""
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(5):
            lock = new_lock()
            lock.acquire()
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            end(lock)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20
