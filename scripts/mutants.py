"""Change the code in one place at a time, and count how many of these mutants the tests of `make test` find.

Usage: python scripts/mutants.py [--seed 1] [--count 20] [--only 3,7] [--list] [-- COMMAND]

The seed chooses the places, spread over the rooms of src/hoodie by their size. Each mutant runs in a copy of the
project: first the unit tests of its room, then all tests in process of `make test`, then those on a classic session.
COMMAND replaces these three; it runs in the copy. The exit code is 0; the last line has the count.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = ROOT / "src" / "hoodie"
LEFT_OUT = (".cache", ".venv*", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
OPERATORS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


class Mutant(NamedTuple):
    """A changed piece of a file: `new` replaces `old` at these bytes."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.old} -> {self.new}"

    @property
    def room(self) -> str:
        """The room of the file."""
        return self.path.relative_to(CODE).parts[0].removesuffix(".py")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Return all mutants of a file: comparisons, conditions, `and`/`or`, numbers, and calls that are left out."""
    data = path.read_bytes()
    begins = [0]
    for line in data.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return begins[node.lineno - 1] + node.col_offset, begins[(node.end_lineno or 1) - 1] + (
            node.end_col_offset or 0
        )

    def changed(node: ast.expr | ast.stmt, start: int, end: int, new: str) -> Mutant:
        return Mutant(path, node.lineno, start, end, data[start:end].decode(), new)

    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            start, end = place(node.left)[1], place(node.comparators[0])[0]
            if data[start:end].strip(b" ()"):
                yield changed(node, start, end, f" {OPERATORS[type(node.ops[0])]} ")
        elif isinstance(node, ast.BoolOp):
            start, end = place(node.values[0])[1], place(node.values[1])[0]
            word = "and" if isinstance(node.op, ast.Or) else "or"
            if data[start:end].strip() in (b"and", b"or"):
                yield changed(node, start, end, f" {word} ")
        elif isinstance(node, (ast.If, ast.IfExp)):
            start, end = place(node.test)
            yield changed(node.test, start, end, f"(not ({data[start:end].decode()}))")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            start, end = place(node)
            yield changed(node, start, end, str(node.value + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            start, end = place(node)
            yield changed(node, start, end, "pass")


def chosen(seed: int, count: int) -> list[Mutant]:
    """Return the mutants of a seed: a file is drawn by its size, then a place in it; no room has more than three."""
    chooser = random.Random(seed)
    paths = sorted(path for path in CODE.rglob("*.py") if path.name != "__init__.py")
    sizes = [path.stat().st_size for path in paths]
    found: list[Mutant] = []
    rooms: Counter[str] = Counter()
    while len(found) < count:
        candidates = [*mutants_of(chooser.choices(paths, sizes)[0])]
        if candidates and rooms[candidates[0].room] < 3:
            found.append(chooser.choice(candidates))
            rooms[found[-1].room] += 1
    return found


def verdict(mutant: Mutant, commands: Sequence[str]) -> str:
    """Run the commands on a copy with the mutant; return what found it, or an empty text."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "project")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        path = copy / mutant.path.relative_to(ROOT)
        data = path.read_bytes()
        path.write_bytes(data[: mutant.start] + mutant.new.encode() + data[mutant.end :])
        # The copy wins over the installed package.
        more = {"PYTHONPATH": str(copy / "src"), "PYTHONHASHSEED": "0", "HOODIE_TEST_TIER": "first"}
        for command in commands:
            done = subprocess.run(
                command, shell=True, cwd=copy, env={**os.environ, **more}, capture_output=True, text=True, check=False
            )
            if done.returncode not in (0, 5):
                lines = [line for line in done.stdout.splitlines() if line.strip()]
                failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
                return (failed or lines[-1:] or ["no output"])[0]
    return ""


def main() -> None:
    """Run the mutants of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("command", nargs="*")
    given = parser.parse_args()
    mutants = [*enumerate(chosen(given.seed, given.count), 1)]
    if given.only:
        mutants = [(number, mutant) for number, mutant in mutants if str(number) in given.only.split(",")]
    caught = 0
    for number, mutant in mutants:
        print(f"{number}. {mutant}", flush=True)
        if not given.list:
            found = verdict(mutant, [" ".join(given.command)] if given.command else _commands(mutant))
            caught += bool(found)
            print(f"   {'found: ' + found if found else 'NOT FOUND'}", flush=True)
    print(f"seed {given.seed}: {caught} of {len(mutants)} found")


def _commands(mutant: Mutant) -> list[str]:
    run = f"{sys.executable} -m pytest -q -x -p no:cacheprovider"
    own = f"tests/unit/{mutant.room}"
    left_out = " ".join(f"--ignore=tests/{folder}" for folder in ("interop", "hbase", "ingest", "tidy"))
    in_process = f"tests {left_out} -m 'not spark' -n 2"
    first = [f"{run} {own}"] if (ROOT / own).is_dir() else []
    return [*first, f"{run} {in_process}", f"{run} tests/contract -m 'spark and surface'"]


if __name__ == "__main__":
    main()
