"""Measure the peak memory of this process and its workers while a body runs.

The sizes in /proc are sampled, so short peaks can be missed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PERIOD_SECONDS = 0.05


@dataclass(slots=True)
class Peak:
    """The largest sampled resident sizes in MiB: of this process, of any Python worker, of the JVM."""

    driver_mib: float = 0.0
    worker_mib: float = 0.0
    jvm_mib: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def sample(self) -> None:
        """Read the sizes once, and update the maxima."""
        own = os.getpid()
        for pid, name, resident in _processes_below(own):
            if pid == own:
                self.driver_mib = max(self.driver_mib, resident)
            elif name == "java":
                self.jvm_mib = max(self.jvm_mib, resident)
            elif name.startswith("python"):
                self.worker_mib = max(self.worker_mib, resident)


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Sample the memory until the end of the body."""
    peak = Peak()

    def watch() -> None:
        while not peak._stop.wait(_PERIOD_SECONDS):
            peak.sample()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        peak._stop.set()
        thread.join()


def _processes_below(root: int) -> Iterator[tuple[int, str, float]]:
    """Return (pid, name, resident MiB) of a process and all its descendants."""
    parents: dict[int, tuple[int, str, float]] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            parents[int(folder.name)] = (int(fields[1]), name, int(fields[21]) * page / 2**20)
        except (OSError, IndexError, ValueError):
            continue
    below = {root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _, _) in parents.items() if parent in below} - below
        grown = bool(more)
        below |= more
    for pid in below & parents.keys():
        yield pid, parents[pid][1], parents[pid][2]
