"""`make test-all` in pieces: what passed is not run again, and it says so until every case has passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MAKE = """#!/bin/sh
echo "$2 ${HOODIE_TEST_ALL} ${HOODIE_TEST_UNTIL:+until}"
case "$(cat {state})" in
    time) touch "$HOODIE_TEST_PASSED.left-out" ;;
    bad) exit 1 ;;
esac
"""


@pytest.mark.later
def test_a_test_that_passed_is_left_out(tmp_path: Path) -> None:
    passed = tmp_path / "passed"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_lanes.py", "-k", "pass"]
    environment = {**os.environ, "HOODIE_TEST_PASSED": str(passed)}
    runs = [
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs
    assert "1 passed" in runs[0].stdout
    assert "1 passed" not in runs[1].stdout
    (line,) = passed.read_text().splitlines()
    assert line.endswith("| classic | tests/unit/test_lanes.py::test_all_lanes_pass")


def test_pieces(tmp_path: Path) -> None:
    make, state = tmp_path / "bin" / "make", tmp_path / "state"
    make.parent.mkdir()
    make.write_text(MAKE.replace("{state}", str(state)))
    make.chmod(0o755)

    def run(found: str, minutes: str = "60") -> tuple[int, list[str]]:
        state.write_text(found)
        environment = {**os.environ, "PATH": f"{make.parent}{os.pathsep}{os.environ['PATH']}", "MINUTES": minutes}
        command = [sys.executable, "scripts/test_all.py", str(tmp_path / "passed"), "one", "two"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    code, lines = run("good")
    assert (code, lines[-1]) == (0, "=== every case of every lane has passed")
    assert "lane-one 1 until" in lines
    code, lines = run("time")
    assert (code, lines[-1]) == (3, "=== not complete: run `make test-all` again")
    assert "=== one: a part passed, the rest was left out for time" in lines
    code, lines = run("bad")
    assert (code, lines[-1]) == (1, "=== two: FAILED")
    assert run("good", minutes="0")[1][-3:-1] == ["=== one: not run", "=== two: not run"]
