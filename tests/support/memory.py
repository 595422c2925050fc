"""The peak of the memory of a process, for scripts that tests run in a process of their own."""

from __future__ import annotations

PEAK_BYTES = """
import resource, sys

def peak_bytes():
    # Linux: a process begins with the `ru_maxrss` of the one that started it, which is large here.
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
"""
"""Source text of a function that returns the peak so far, in bytes."""
