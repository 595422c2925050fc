"""Run every case of the lanes, in pieces: what passed for this commit is not run again.

Usage: [MINUTES=60] python scripts/test_all.py FOLDER LANE [LANE ...]

The tests that passed are listed in FOLDER/<commit>, or in FOLDER/<commit>-<sum> with changes that are not committed.
After MINUTES no further test begins. The exit code is 0 if every case of every lane has passed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

INCOMPLETE = 3


def main(folder: Path, lanes: Sequence[str]) -> int:
    """Run the lanes one after the other."""
    passed = folder.resolve() / _state_of_code()
    folder.mkdir(parents=True, exist_ok=True)
    minutes = os.environ.get("MINUTES")
    until = time.time() + float(minutes) * 60 if minutes else float("inf")
    print(f"=== what passes is listed in {passed}", flush=True)
    results = {lane: _run(lane, passed, until) for lane in lanes}
    for lane, result in results.items():
        print(f"=== {lane}: {result}")
    if "FAILED" in results.values():
        return 1
    if set(results.values()) == {"passed"}:
        print("=== every case of every lane has passed")
        return 0
    print("=== not complete: run `make test-all` again")
    return INCOMPLETE


def _run(lane: str, passed: Path, until: float) -> str:
    """Run a lane; what was found out."""
    if time.time() > until:
        return "not run"
    left_out = passed.with_name(f"{passed.name}.left-out")
    left_out.unlink(missing_ok=True)
    environment = {**os.environ, "HOODIE_TEST_ALL": "1", "HOODIE_TEST_PASSED": str(passed)}
    if until != float("inf"):
        environment["HOODIE_TEST_UNTIL"] = str(until)
    print(f"=== make lane-{lane}", flush=True)
    began = time.monotonic()
    done = subprocess.run(["make", "--no-print-directory", f"lane-{lane}"], env=environment, check=False)
    print(f"=== lane-{lane}: exit code {done.returncode} after {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        return "FAILED"
    return "a part passed, the rest was left out for time" if left_out.exists() else "passed"


def _state_of_code() -> str:
    """The commit, and a sum of what is changed since."""
    commit, changed = _git("rev-parse", "--short=12", "HEAD").strip(), _git("status", "--porcelain")
    if not changed:
        return commit
    return f"{commit}-{hashlib.sha1((changed + _git('diff', 'HEAD')).encode()).hexdigest()[:8]}"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
