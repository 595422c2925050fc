"""What the operating system says about processes: which machine this is, and whether a process still runs."""

from __future__ import annotations

import functools
import os
import platform
import sys
import uuid
from pathlib import Path

_PROC = Path("/proc")
_FIELDS_BEFORE_START = 19  # in /proc/<pid>/stat after the command: the first is the state, the twentieth the start


@functools.cache
def machine_identity() -> str:
    """Name the space in which process ids are unique: one boot of one machine, or one container on it.

    Host names will not do: containers that share one have process ids of their own, and a live writer must never
    be taken for dead.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()}/{uuid.getnode():x}"


def host_name() -> str:
    """The machine's name, for people."""
    return platform.node()


def process_start(pid: int) -> str | None:
    """Tell two processes of the same id apart: a text that stays the same while a process runs.

    Returns None if no such process runs on this machine, and `""` where the system does not tell when it started.
    """
    if sys.platform == "win32":
        return ""  # probing with signal 0 would end the process there
    if _PROC.joinpath("self/stat").exists():
        return _start_ticks(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it runs, as somebody else
    return ""


def _start_ticks(pid: int) -> str | None:
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError:
        return ""
    # The command stands in parentheses and may hold spaces and parentheses itself.
    fields = text.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None  # it ended; only its parent has not noticed yet
    return fields[_FIELDS_BEFORE_START]
