"""The writer of a lock file or a heartbeat file, whether that writer still runs, and the thread that renews its file.

A writer is an `Owner`: a process on a machine, and a token that is in `_RUNNING` of that process while the writer runs.
A writer that ended without cleaning up is detected at once: its process has ended, or its token is not in `_RUNNING`.
For a writer on another machine neither can be checked; callers then use the age of the file.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from hoodie.storage import Store, process

OWNER_BYTES_MAX = 4096
"""Size limit of a file that names an owner: what hoodie writes has a tenth of that."""
_PID_MAX = 2**32
_LEASE_MS_MAX = 24 * 3600 * 1000
_TOKEN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SHORT_NAME = re.compile(r"(?P<machine>[0-9a-f]{16})-(?P<pid>\d+)-(?P<start>\d*)-(?P<token>[0-9a-f]{32})", re.ASCII)
_AFTER_AN_ERROR = 10
"""A failed renewal is repeated after this part of the usual time."""
_PAUSES_MAX = 60
"""The shortest pause after a renewal is this part of the usual time."""
_RUNNING: dict[str, threading.Event] = {}
_RUNNING_LOCK = threading.RLock()  # re-entrant: the garbage collector may delete a heartbeat while the lock is held


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One writer: its machine and process, and a unique token.

    `installation`: the installation of the system, which survives a reboot; empty if unknown. `lease_ms`: the writer
    promises to renew its file more often than that; 0 if it renews the file never, or by other rules.
    """

    machine: str
    host: str
    pid: int
    process_start: str
    token: str
    installation: str = ""
    lease_ms: int = 0

    @classmethod
    def new(cls, *, lease_ms: int = 0, pid: int | None = None) -> Owner:
        """Create a writer of this process, which counts as running after `run`; or of another one of this machine."""
        pid = os.getpid() if pid is None else pid
        return cls(
            machine=process.machine_identity(),
            host=process.host_name(),
            pid=pid,
            process_start=process.process_start(pid) or "",
            token=uuid.uuid4().hex,
            installation=process.installation_identity(),
            lease_ms=lease_ms,
        )

    @classmethod
    @lru_cache(maxsize=16)
    def parse(cls, data: bytes) -> Owner | None:
        """Parse a file's content; None if hoodie did not write it: the JVM's lock and heartbeat files are empty.

        Any content is safe to parse: a table may come from elsewhere. Cached: a writer reads the file of its own lock
        before each step.
        """
        fields = fields_of(data)
        found = cls(
            machine=_text(fields, "machine"),
            host=_text(fields, "host"),
            pid=_number(fields, "pid", _PID_MAX),
            process_start=_text(fields, "process_start"),
            token=_text(fields, "token"),
            installation=_text(fields, "installation"),
            lease_ms=_number(fields, "lease_ms", _LEASE_MS_MAX),
        )
        # The token becomes part of file names.
        return found if found.machine and found.pid and _TOKEN.fullmatch(found.token) else None

    @classmethod
    def read(cls, store: Store, path: str) -> Owner | None:
        """Read and parse a file; None if hoodie did not write it. Raises: FileNotFoundError."""
        return cls.parse(store.read_range(path, 0, OWNER_BYTES_MAX + 1))

    def to_bytes(self) -> bytes:
        """Return one line of JSON."""
        fields: dict[str, object] = {
            "machine": self.machine,
            "host": self.host,
            "pid": self.pid,
            "process_start": self.process_start,
            "token": self.token,
            "installation": self.installation,
        }
        if self.lease_ms:
            fields["lease_ms"] = self.lease_ms
        return json.dumps(fields).encode()

    @property
    def short_name(self) -> str:
        """Text for a file name; `parse_short_name` restores the owner from it on the same machine."""
        return f"{_short_machine(self.machine)}-{self.pid}-{self.process_start}-{self.token}"

    @classmethod
    def parse_short_name(cls, text: str) -> Owner | None:
        """Parse a short name; None if it is not a short name. The machine is valid only if it is this machine."""
        match = _SHORT_NAME.fullmatch(text)
        if match is None:
            return None
        here = process.machine_identity()
        machine = here if match["machine"] == _short_machine(here) else match["machine"]
        return cls(machine=machine, host="", pid=int(match["pid"]), process_start=match["start"], token=match["token"])

    def __str__(self) -> str:
        """Return text such as `process 123 on host`."""
        return f"process {self.pid} on {self.host}"

    def run(self) -> threading.Event:
        """Mark this writer as running; the returned event is set when the writer is marked as dead."""
        with _RUNNING_LOCK:
            return _RUNNING.setdefault(self.token, threading.Event())

    def forget(self) -> None:
        """Mark this writer as dead. Makes no storage call, so it cannot fail."""
        forget(self.token)

    def ended_at_reboot(self, modified_ms: int, silent_ms_min: int, now_ms: int) -> bool:
        """Return whether this machine was restarted since the writer last changed its file, at `modified_ms`.

        The names of the installation and the host are equal, and the boot is another one. A copy of this machine may
        have the same names; but its writer renews the file. So the file must be older than the start of this machine,
        and also than `silent_ms_min`, a time in which a running writer renews it: the machine may have just started.
        """
        return (
            bool(self.installation)
            and self.installation == process.installation_identity()
            and process.is_other_boot(self.machine)
            and modified_ms < min(process.boot_ms(), now_ms - silent_ms_min)
        )

    def is_running(self) -> bool | None:
        """Return True if the writer certainly runs, False if it is certainly dead, None if that is unknown."""
        if self.machine != process.machine_identity():
            return None
        start = process.process_start(self.pid)
        if start is None or (start and self.process_start and start != self.process_start):
            return False
        if self.pid != os.getpid():
            return None  # the process runs, but its writer may have ended
        return runs_here(self.token)


def fields_of(data: bytes) -> dict[str, object]:
    """Return the fields of a JSON object of at most 4096 bytes; none if the bytes are anything else."""
    if len(data) > OWNER_BYTES_MAX:
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(fields: dict[str, object], name: str) -> str:
    found = fields.get(name)
    return found if isinstance(found, str) and found.isprintable() else ""


def _number(fields: dict[str, object], name: str, maximum: int) -> int:
    """Return a whole number from 1 to `maximum`; 0 if the field is anything else."""
    found = fields.get(name)
    return found if type(found) is int and 0 < found <= maximum else 0


def _short_machine(machine: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, machine).hex[:16]


def runs_here(token: str) -> bool:
    """Return whether the writer with this token runs in this process."""
    with _RUNNING_LOCK:
        return token in _RUNNING


def forget(token: str) -> None:
    """Mark the writer with this token as dead; does nothing if it is not marked as running."""
    with _RUNNING_LOCK:
        stopped = _RUNNING.pop(token, None)
    if stopped is not None:
        stopped.set()


def forget_all() -> None:
    """Mark every writer of this process as dead, as after a restart of the process; for crash tests."""
    with _RUNNING_LOCK:
        tokens = list(_RUNNING)
    for token in tokens:
        forget(token)


@dataclass(slots=True)
class Renewal:
    """Calls `renew` regularly, until it returns False or the writer ends.

    `renew` must not refer to the lock or the heartbeat that uses this object: the thread would keep an abandoned writer
    alive for ever.
    """

    renew: Callable[[], bool]
    last_error: Exception | None = None
    """The error of the last renewal; None if it succeeded. One failed renewal is harmless: it is soon repeated."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds; an argument for tests."""

    def start(self, name: str, stopped: threading.Event, every_seconds: float) -> None:
        """Start the daemon thread; it ends when `stopped` is set. Raises: RuntimeError if no thread can start."""
        threading.Thread(target=self._run, args=(stopped, every_seconds), name=name, daemon=True).start()

    def _run(self, stopped: threading.Event, every_seconds: float) -> None:
        pause = every_seconds
        while not stopped.wait(pause):
            began = self.monotonic()
            try:
                if not self.renew():
                    return
                self.last_error, pause = None, every_seconds
            except Exception as error:
                self.last_error, pause = error, every_seconds / _AFTER_AN_ERROR
            # From start to start: a renewal counts from its start, so after a slow one the pause would be too long.
            pause = max(pause - (self.monotonic() - began), every_seconds / _PAUSES_MAX)
