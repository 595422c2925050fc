"""Print the lanes that a change runs after `make test` and the judges, the most useful first: NAME MINUTES REASON.

Usage: python scripts/choose_lanes.py

First come the lanes whose code the change touches: a module of the lane's rooms, or one that such a module imports.
The others follow in turn: the number of commits decides which is the next. What the change has is HEAD beyond
HOODIE_CHANGE_BASE, or beyond origin/main, or what was committed in the four hours before HEAD.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.tidy.sources import package_sources  # noqa: E402

HOURS = 4


class Lane(NamedTuple):
    """A target `lane-NAME` of the Makefile, and the modules and folders of the code and of the tests that it is for."""

    name: str
    minutes: int
    rooms: tuple[str, ...]


LANES = (
    Lane("in-process", 5, ("commit", "timeline", "services", "write", "storage", "tests/crash", "tests/property")),
    Lane("classic", 4, ("spark", "statements", "table/sessions", "tests/contract")),
    Lane("older", 5, ("format/table", "timeline/layout", "files/logs", "services/versions", "tests/interop/older")),
    Lane("connect", 4, ("spark", "tests/contract/conftest")),
    Lane("hbase", 3, ("index/hbase", "services/indexing/hbase", "tests/hbase")),
    Lane("ingest", 4, ("ingest", "tests/ingest", "tests/support/kafka_broker", "tests/support/postgres_server")),
    Lane("web", 3, ("web", "tests/web", "read/inspect")),
    Lane("spark-3.5", 4, ("spark", "statements")),
    Lane(
        "spark-4.0",
        4,
        ("spark/datasource", "spark/stream_sink", "spark/stream_source", "tests/contract/test_spark_datasource"),
    ),
)


def main() -> None:
    """Print the lanes of the change."""
    changed, imports = changed_files(), _imports()
    turn = int(_git("rev-list", "--count", "HEAD") or 0)
    in_turn = [LANES[(turn + place) % len(LANES)] for place in range(len(LANES))]
    reasons = {lane: touched(lane, changed, imports) for lane in in_turn}
    for lane, files in sorted(reasons.items(), key=lambda found: not found[1]):
        print(lane.name, lane.minutes, f"the change touches {files[0]}" if files else "its turn")


def changed_files() -> list[str]:
    """Return the files of the change, relative to the project."""
    base = os.environ.get("HOODIE_CHANGE_BASE") or _git("merge-base", "HEAD", "origin/main")
    if not base or base == _git("rev-parse", "HEAD"):
        began = int(_git("log", "-1", "--format=%ct") or 0) - HOURS * 3600
        base = _git("rev-list", "-1", f"--before={began}", "HEAD")
    return _git("diff", "--name-only", base, "HEAD").splitlines() if base else []


def touched(lane: Lane, changed: Collection[str], imports: dict[str, set[str]]) -> list[str]:
    """Return the changed files of the lane's rooms, or else those that modules of its rooms import."""
    own = [name for name in changed if name.startswith(tuple(_path(room) for room in lane.rooms))]
    if own:
        return own
    used = {name for module, names in imports.items() if _is_in(module, lane.rooms[:1]) for name in names}
    return [name for name in changed if name in used]


def _imports() -> dict[str, set[str]]:
    """Return the files of the package that each of its files imports."""
    files = {source.module: source.name for source in package_sources()}
    found: dict[str, set[str]] = {}
    for source in package_sources():
        names = (name for _, name in source.imports())
        found[source.name] = {
            files[part] for name in names for part in (name, name.rpartition(".")[0]) if part in files
        }
    return found


def _is_in(path: str, rooms: tuple[str, ...]) -> bool:
    return path.startswith(tuple(_path(room) for room in rooms))


def _path(room: str) -> str:
    return room if room.startswith("tests/") else f"src/hoodie/{room}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
