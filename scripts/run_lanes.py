"""Run several commands, each with a log file of its own; fail if one of them fails.

Usage: python scripts/run_lanes.py LOG_FOLDER NAME=COMMAND [NAME=COMMAND ...]

On four cores and more they run side by side, on fewer in turn: a lane keeps two cores busy.
The output is a line when a lane begins or ends, one a minute with the progress of all, and at last the end of the log
of each lane that failed. If the script is stopped, it stops its lanes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

REPORT_SECONDS = 60
GRACE_SECONDS = 10
CORES_SIDE_BY_SIDE = 4
TAIL_LINES = 60


@dataclass(frozen=True)
class Lane:
    """A command that runs, and the file that its output goes to."""

    name: str
    log: Path
    began: float
    process: subprocess.Popen[bytes]

    @property
    def seconds(self) -> int:
        """How long the lane has run."""
        return round(time.monotonic() - self.began)

    def lines(self) -> list[str]:
        """The lines of the log that are not empty."""
        return [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]

    def last_line(self) -> str:
        """The last line of the log: the result of the tests, or how far they are."""
        return (self.lines() or ["no output"])[-1].strip()

    def stop(self, number: signal.Signals) -> None:
        """Send the signal to the lane and to all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def main(folder: Path, commands: Sequence[str]) -> int:
    """Run the commands; return 0 if all of them succeeded."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: signals.append(received))
    folder.mkdir(parents=True, exist_ok=True)
    at_once = len(commands) if len(os.sched_getaffinity(0)) >= CORES_SIDE_BY_SIDE else 1
    waiting = [tuple(command.split("=", 1)) for command in commands]
    failed: list[Lane] = []
    while waiting and not signals:
        lanes = [_begin(folder, *waiting.pop(0)) for _ in range(min(at_once, len(waiting)))]
        running = _wait(lanes, signals)
        _end(running)
        failed += [lane for lane in lanes if lane in running or lane.process.returncode]
    for lane in failed:
        print(f"\n=== {lane.name}: the end of {lane.log}", *lane.lines()[-TAIL_LINES:], sep="\n")
    if failed:
        print(f"\n=== FAILED: {', '.join(lane.name for lane in failed)}", flush=True)
    return 1 if failed else 0


def _begin(folder: Path, name: str, command: str) -> Lane:
    log = folder / f"{name.replace(' ', '-')}.log"
    print(f"=== {name}: {command} > {log}", flush=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    return Lane(name, log, time.monotonic(), process)


def _wait(lanes: Sequence[Lane], signals: Sequence[int]) -> list[Lane]:
    """Wait until all lanes have ended, or a signal has come; the lanes that still run."""
    running, reported = list(lanes), time.monotonic()
    while running and not signals:
        time.sleep(0.2)
        for lane in [lane for lane in running if lane.process.poll() is not None]:
            running.remove(lane)
            code = lane.process.returncode
            result = "passed" if code == 0 else f"FAILED with exit code {code}"
            print(f"=== {lane.name} {result} after {lane.seconds} s\n{lane.last_line()}", flush=True)
        if running and time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            for lane in running:
                print(f"... {lane.name}, {lane.seconds} s: {lane.last_line()}", flush=True)
    return running


def _end(lanes: Sequence[Lane]) -> None:
    """Stop the lanes, by force if they do not end in time."""
    for lane in lanes:
        lane.stop(signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    for lane in lanes:
        with suppress(subprocess.TimeoutExpired):
            lane.process.wait(max(0.0, deadline - time.monotonic()))
        lane.stop(signal.SIGKILL)
        lane.process.wait()
        print(f"=== {lane.name} was stopped after {lane.seconds} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
