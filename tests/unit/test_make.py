"""`make test` on a machine without a JDK: it runs what needs none, then fails and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PYTHON = """#!/bin/sh
case "$*" in
    "-m pytest"*) echo "tests ran: $*" ;;
    *) exec {python} "$@" ;;
esac
"""
"""The `python` of the virtual environment: scripts run; instead of tests, the command is printed."""


def test_without_a_jdk_the_tests_in_process_run_and_the_command_fails(tmp_path: Path) -> None:
    done, logs = _make_test(tmp_path, java_home=tmp_path / "no-jdk")
    assert done.returncode != 0
    assert "in process passed" in done.stdout
    assert "tests ran: -m pytest tests --ignore" in (logs / "in-process.log").read_text(encoding="utf-8")
    assert f"JAVA_HOME is {tmp_path / 'no-jdk'}, which has no bin/java" in done.stdout
    assert "the tests on Spark are left out" in done.stdout
    assert "=== FAILED: classic" in done.stdout
    assert "tests ran" not in (logs / "classic.log").read_text(encoding="utf-8")


def test_with_a_jdk_both_lanes_run(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    _executable(java, "#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n")
    done, logs = _make_test(tmp_path, java_home=tmp_path / "jdk")
    assert done.returncode == 0, done.stdout
    assert {log.stem for log in logs.iterdir() if "tests ran" in log.read_text(encoding="utf-8")} == {
        "in-process",
        "classic",
    }


def _make_test(folder: Path, *, java_home: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run `make test` with a virtual environment of its own; return the end of the process and the folder of logs."""
    venv, cache = folder / "venv", folder / "cache"
    (venv / "bin").mkdir(parents=True)
    _executable(venv / "bin" / "python", PYTHON.format(python=sys.executable))
    (venv / ".stamp").touch()
    command = ["make", "--directory", str(ROOT), "test", f"VENV={venv}", f"CACHE={cache}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["JAVA_HOME"] = str(java_home)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False), cache / "lanes"


def _executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
