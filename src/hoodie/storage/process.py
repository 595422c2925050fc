"""Facts from the operating system: the identity of this machine, and whether a process runs."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import uuid
from pathlib import Path

_PROC = Path("/proc")
_FIELDS_BEFORE_START = 19  # in /proc/<pid>/stat after the command: field 1 is the state, field 20 the start

_started: dict[int, str] = {}
"""The start of this process, by its id."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_started.clear)


@functools.cache
def machine_identity() -> str:
    """Return the name of the space in which process ids are unique: one boot of one machine, or one container on it.

    Host names are not sufficient: two containers can have the same host name but different process ids, and a running
    writer must never be treated as dead.
    """
    try:
        return f"{_boot_identity()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        if sys.platform == "linux":
            # A sandbox hides its facts. Equal names of two sandboxes would make a running writer look dead.
            return f"{platform.node()}/{uuid.uuid4().hex}"
        return f"{platform.node()}/{uuid.getnode():x}"


@functools.cache
def installation_identity() -> str:
    """Return a name of this installation of the system that survives a reboot; `""` if there is none.

    Copies of a virtual machine may have the same name, so the name alone proves nothing about a process.
    """
    try:
        machine_id = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    # A digest: the machine id itself should not leave the machine.
    return hashlib.sha256(f"hoodie {machine_id} {platform.node()}".encode()).hexdigest()[:32] if machine_id else ""


@functools.cache
def boot_ms() -> int:
    """Return when this machine was started (epoch milliseconds); 0 if that is unknown."""
    try:
        lines = _PROC.joinpath("stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    return next((int(line.split()[1]) * 1000 for line in lines if line.startswith("btime ")), 0)


def is_other_boot(machine: str) -> bool:
    """Return whether `machine`, a machine identity, is surely of another boot than the present one."""
    try:
        boot = _boot_identity()
    except OSError:
        return False
    there, separator, _ = machine.partition("/pid:")
    return bool(separator) and there != boot


def _boot_identity() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def host_name() -> str:
    """Return the machine's name, for messages to users."""
    return platform.node()


def process_start(pid: int) -> str | None:
    """Return a text that differs between two processes with the same id, and is constant while a process runs.

    Returns None if no such process runs on this machine, and `""` if the system does not provide the start time.
    """
    if pid != os.getpid():
        return _start_of(pid)
    if pid not in _started and (found := _start_of(pid)) is not None:
        _started[pid] = found
    return _started.get(pid)


def _start_of(pid: int) -> str | None:
    if sys.platform == "win32":
        return ""  # on Windows, signal 0 would end the process
    start = _start_ticks(pid) if _PROC.joinpath("self/stat").exists() else None
    if start is not None:
        return start or None
    # /proc is missing, or hides the processes of other users (hidepid).
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""  # the process runs, under another user
    except OverflowError:
        return None  # no system has such process ids
    return ""


def _start_ticks(pid: int) -> str | None:
    """Return the start; `""` if the process ended and its parent has not collected it; None if /proc hides it."""
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command is in parentheses, and may itself contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return ""
    return fields[_FIELDS_BEFORE_START]
