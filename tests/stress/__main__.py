"""`make stress`, `make stress-jvm`: eight processes, both table types, for HOODIE_STRESS_SECONDS.

HOODIE_STRESS_SEED repeats the choices of workers and faults; the order in which the system runs the processes does not
repeat. HOODIE_STRESS_JVM of the processes write with JVM Hudi, on PySpark 3.5.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.stress.run import Stress, run
from tests.stress.worker import WITH_JVM

TYPES = ("copy_on_write", "merge_on_read")


def main() -> int:
    """Run, print the outcome, keep the table if it is wrong."""
    seconds = float(os.environ.get("HOODIE_STRESS_SECONDS") or 300)
    seed = int(os.environ.get("HOODIE_STRESS_SEED") or time.time_ns() % 10**6)
    processes = int(os.environ.get("HOODIE_STRESS_PROCESSES") or 8)
    jvm = int(os.environ.get(WITH_JVM) or 0)
    print(f"HOODIE_STRESS_SEED={seed} HOODIE_STRESS_SECONDS={seconds:.0f} HOODIE_STRESS_PROCESSES={processes}")
    for table_type in TYPES:
        folder = Path(tempfile.mkdtemp(prefix="hoodie-stress-"))
        stress = Stress(table_type=table_type, seconds=seconds / len(TYPES), seed=seed, processes=processes, jvm=jvm)
        try:
            print(f"{table_type}: {run(stress, folder)}", flush=True)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(f"{table_type}: FAILED, seed {seed}; the table and the journals are in {folder}")
            return 1
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
