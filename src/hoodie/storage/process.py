"""Facts from the operating system: the identity of this machine, and whether a process runs."""

from __future__ import annotations

import functools
import os
import platform
import sys
import uuid
from pathlib import Path

_PROC = Path("/proc")
_FIELDS_BEFORE_START = 19  # in /proc/<pid>/stat after the command: field 1 is the state, field 20 the start


@functools.cache
def machine_identity() -> str:
    """Return the name of the space in which process ids are unique: one boot of one machine, or one container on it.

    Host names are not sufficient: two containers can have the same host name but different process ids, and a running
    writer must never be treated as dead.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()}/{uuid.getnode():x}"


def host_name() -> str:
    """Return the machine's name, for messages to users."""
    return platform.node()


def process_start(pid: int) -> str | None:
    """Return a text that differs between two processes with the same id, and is constant while a process runs.

    Returns None if no such process runs on this machine, and `""` if the system does not provide the start time.
    """
    if sys.platform == "win32":
        return ""  # on Windows, signal 0 would end the process
    if _PROC.joinpath("self/stat").exists():
        return _start_ticks(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # the process runs, under another user
    return ""


def _start_ticks(pid: int) -> str | None:
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError:
        return ""
    # The command is in parentheses, and may itself contain spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None  # the process ended; its parent has not collected it yet
    return fields[_FIELDS_BEFORE_START]
