"""Run a module of the benchmark in a child process, and read the figures that it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MARK = "FIGURES "
_ROOT = Path(__file__).parents[1]


def figures_of(module: str, *arguments: object, version: str = "") -> Any:
    """Run `python -m module arguments` and return the figures that it passed to `print_figures`.

    `version` "3.5" runs the Python of the PySpark 3.5 environment.

    Raises: SystemExit with the child's output if it fails.
    """
    python = os.environ["HOODIE_BENCH_PYTHON_35"] if version == "3.5" else sys.executable
    return figures_in([python, "-m", module, *arguments])


def figures_in(command: Sequence[object]) -> Any:
    """Run a command and return the figures that it printed in the form of `print_figures`.

    Raises: SystemExit with the child's output if it fails.
    """
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=_ROOT, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(arguments[1:])} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return json.loads(lines[-1].removeprefix(_MARK))


def figures_of_java(name: str, folder: Path, *arguments: object) -> Any:
    """Compile bench/java/NAME.java against the JVM bundle into `folder`, run it, and return the figures it printed."""
    bundle = os.environ["HOODIE_JVM_BUNDLE"]
    classes = folder / "classes"
    source = _ROOT / "bench" / "java" / f"{name}.java"
    subprocess.run(["javac", "-cp", bundle, "-d", str(classes), str(source)], check=True)
    return figures_in(["java", "-Xmx4g", "-cp", f"{bundle}{os.pathsep}{classes}", name, *arguments])


def print_figures(figures: Any) -> None:
    """Print figures for the parent process."""
    print(_MARK + json.dumps(figures), flush=True)


def tell(text: str) -> None:
    """Print the current measurement to standard error."""
    print(text, file=sys.stderr, flush=True)
