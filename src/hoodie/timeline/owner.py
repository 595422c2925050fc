"""Who holds a lock or keeps an instant alive, and whether that writer is still there.

A writer is an `Owner`: a process on a machine, and a token that is listed in `_RUNNING` of that process while the
writer runs. A writer that ended without cleaning up is so known to be dead at once: its process is gone, or its
token is not listed. Where neither can be seen (another machine) callers go by the age of the file.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from dataclasses import dataclass

from hoodie.storage import process

_SHORT_NAME = re.compile(r"(?P<machine>[0-9a-f]{16})-(?P<pid>\d+)-(?P<start>\d*)-(?P<token>[0-9a-f]{32})", re.ASCII)
_RUNNING: dict[str, threading.Event] = {}
_RUNNING_LOCK = threading.RLock()  # re-entrant: the garbage collector may drop a heartbeat inside it


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One writer: where it runs, and a token nobody else has."""

    machine: str
    host: str
    pid: int
    process_start: str
    token: str

    @classmethod
    def new(cls) -> Owner:
        """A new writer in this process; not running until `run`."""
        pid = os.getpid()
        return cls(
            machine=process.machine_identity(),
            host=process.host_name(),
            pid=pid,
            process_start=process.process_start(pid) or "",
            token=uuid.uuid4().hex,
        )

    @classmethod
    def parse(cls, data: bytes) -> Owner | None:
        """Parse a file's content, or None if it is not ours: the JVM's lock and heartbeat files are empty."""
        try:
            fields = json.loads(data)
            return cls(
                machine=str(fields["machine"]),
                host=str(fields["host"]),
                pid=int(fields["pid"]),
                process_start=str(fields["process_start"]),
                token=str(fields["token"]),
            )
        except (ValueError, KeyError, TypeError):
            return None

    def to_bytes(self) -> bytes:
        """One line of JSON."""
        fields = {
            "machine": self.machine,
            "host": self.host,
            "pid": self.pid,
            "process_start": self.process_start,
            "token": self.token,
        }
        return json.dumps(fields).encode()

    @property
    def short_name(self) -> str:
        """This owner as part of a file name; `parse_short_name` undoes it on the same machine."""
        return f"{_short_machine(self.machine)}-{self.pid}-{self.process_start}-{self.token}"

    @classmethod
    def parse_short_name(cls, text: str) -> Owner | None:
        """The owner of that short name, or None if it is none; of another machine it says only that it is another."""
        match = _SHORT_NAME.fullmatch(text)
        if match is None:
            return None
        here = process.machine_identity()
        machine = here if match["machine"] == _short_machine(here) else match["machine"]
        return cls(machine=machine, host="", pid=int(match["pid"]), process_start=match["start"], token=match["token"])

    def __str__(self) -> str:
        """`process 123 on host`."""
        return f"process {self.pid} on {self.host}"

    def run(self) -> threading.Event:
        """List this writer as running; the event is set once it no longer is."""
        with _RUNNING_LOCK:
            return _RUNNING.setdefault(self.token, threading.Event())

    def forget(self) -> None:
        """Take this writer off the list; it counts as dead now. Does no storage call, so it cannot fail."""
        forget(self.token)

    def is_running(self) -> bool | None:
        """True if it surely runs, False if it is surely dead, None if it cannot be told from here."""
        if self.machine != process.machine_identity():
            return None
        start = process.process_start(self.pid)
        if start is None or (start and self.process_start and start != self.process_start):
            return False
        if self.pid != os.getpid():
            return None  # the process runs, but the writer in it may have ended
        with _RUNNING_LOCK:
            return self.token in _RUNNING


def _short_machine(machine: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, machine).hex[:16]


def forget(token: str) -> None:
    """Take the writer with this token off the list; fine if it is not on it."""
    with _RUNNING_LOCK:
        stopped = _RUNNING.pop(token, None)
    if stopped is not None:
        stopped.set()


def forget_all() -> None:
    """Declare every writer of this process dead, as if it had just been started: for crash tests."""
    with _RUNNING_LOCK:
        tokens = list(_RUNNING)
    for token in tokens:
        forget(token)
