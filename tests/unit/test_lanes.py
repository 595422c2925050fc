"""Lanes run side by side: `scripts/run_lanes.py` says what failed last, and fails if one lane does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_lanes.py"


def run(folder: Path, *lanes: str) -> tuple[int, str]:
    """Exit code and output."""
    command = [sys.executable, str(SCRIPT), str(folder / "logs"), *lanes]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return done.returncode, done.stdout


def test_all_lanes_pass(tmp_path: Path) -> None:
    code, output = run(tmp_path, "one=echo 3 passed", "and two=echo 4 passed >&2")
    assert code == 0
    assert "=== one passed after" in output
    assert {"3 passed", "4 passed"} <= set(output.splitlines())
    assert (tmp_path / "logs/and-two.log").read_text() == "4 passed\n"


def test_a_lane_that_fails_is_shown_last_and_the_others_run_to_their_end(tmp_path: Path) -> None:
    code, output = run(tmp_path, "bad=echo why; exit 3", f"good=sleep 0.5; echo 1 > {tmp_path / 'ran'}")
    assert code == 1
    assert (tmp_path / "ran").exists()
    assert "=== bad FAILED with exit code 3 after" in output
    assert output.splitlines()[-3:] == ["why", "", "=== FAILED: bad"]


def test_a_lane_that_is_killed_fails(tmp_path: Path) -> None:
    code, output = run(tmp_path, "bad=kill -9 $$")
    assert code == 1
    assert "=== bad FAILED with exit code -9 after" in output


def test_who_stops_the_script_stops_what_the_lanes_started(tmp_path: Path) -> None:
    beats = tmp_path / "beats"
    lane = f"slow=(while :; do echo beat >> {beats}; sleep 0.05; done) | cat"
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path / "logs"), lane], stdout=subprocess.PIPE, text=True
    ) as process:
        while not beats.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.splitlines()[-1] == "=== FAILED: slow"
    size = beats.stat().st_size
    time.sleep(0.5)
    assert beats.stat().st_size == size
