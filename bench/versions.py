"""Measure the same writes and reads in table versions 6, 8 and 9, in turns, and moves of a table with many instants.

`python -m bench --only versions` prints the tables. `python -m bench.versions FOLDER ROWS UPSERTS REPEATS INSTANTS`
measures.
"""

from __future__ import annotations

import resource
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hoodie
from bench.child import figures_of, print_figures, tell
from bench.keys import narrow_rows
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.table_config import TimelineZone
from hoodie.storage import open_store
from hoodie.timeline import archive_of, instant_time_of_ms, layout_for

_VERSIONS = (6, 8, 9)
_TYPES = ("copy_on_write", "merge_on_read")
_STEPS = ("bulk_insert", "upsert", "read", "compact")
_FIRST_MS = 1_577_836_800_000
_MINUTE_MS = 60_000


def run(settings: Settings) -> dict[str, Any]:
    """Measure in a separate process."""
    told = machine()
    sizes = settings.version_rows, settings.version_upserts, settings.version_repeats, settings.version_instants
    tell(f"versions: {sizes[0]:,} rows, {sizes[2]} times each, and {sizes[3]:,} instants ...")
    figures: dict[str, Any] = figures_of("bench.versions", settings.work / "versions", *sizes)
    return {"machine": told, "rows": sizes[0], "repeats": sizes[2]} | figures


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step, and a row for each move."""
    lines = []
    for kind in _TYPES:
        for step in _STEPS:
            found = [result["seconds"][kind][str(version)][step] for version in _VERSIONS]
            if found[0]:
                ratios = [f"{median(seconds) / median(found[-1]):.2f}x" for seconds in found[:-1]]
                lines.append([kind.replace("_", "-"), step.replace("_", " "), *map(seconds_text, found), *ratios])
    title = (
        f"A bulk insert of {result['rows']:,} rows, upserts of a tenth of them, a read of all rows and a compaction, "
        f"index `simple`, in process, {machine_line(result['machine'])}: seconds, median (range) of "
        f"{result['repeats']} rounds, taken in turns"
    )
    head = ["", "", *(f"version {version}" for version in _VERSIONS), "6 / 9", "8 / 9"]
    moves = [[name, f"{seconds:.1f}"] for name, seconds in result["moves"].items()]
    counts = f"A copy-on-write table with {result['active']:,} instants and {result['archived']:,} archived ones"
    peak = f"The process used at most {result['peak_mb']:,} MB."
    return "\n".join([title, "", table(head, lines), "", counts, "", table(["", "seconds"], moves), "", peak, ""])


def _measure(folder: Path, rows: int, upserts: int, repeats: int, instants: int) -> dict[str, Any]:
    seconds: dict[str, dict[str, dict[str, list[float]]]] = {
        kind: {str(version): {step: [] for step in _STEPS} for version in _VERSIONS} for kind in _TYPES
    }
    moved = _moves(folder, instants)  # first: its peak of memory is that of the process
    _story(folder, 1000, 1, "merge_on_read", 9, {step: [] for step in _STEPS})  # what a process does once
    for number in range(repeats):
        for kind in _TYPES:
            for version in _VERSIONS if number % 2 else reversed(_VERSIONS):
                _story(folder, rows, upserts, kind, version, seconds[kind][str(version)])
    return {"seconds": seconds} | moved


def _story(folder: Path, rows: int, upserts: int, kind: str, version: int, seconds: dict[str, list[float]]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    data = narrow_rows(np.arange(rows), ts=0)
    options: dict[str, Any] = {"record_key": "key", "ordering": "ts", "index": "simple", "type": kind}
    hoodie.create(folder, data.schema, **options, table_version=version)
    target = hoodie.open(folder, spark=False)
    with _timed(seconds["bulk_insert"]):
        target.bulk_insert(data)
    for number in range(upserts):
        changed = narrow_rows(np.arange(number, rows, 10), ts=number + 1)
        with _timed(seconds["upsert"]):
            target.upsert(changed)
    with _timed(seconds["read"]):
        target.to_arrow()
    if kind == "merge_on_read":
        target.schedule_compaction(strategy="unbounded")
        with _timed(seconds["compact"]):
            target.compact()
    shutil.rmtree(folder)


@contextmanager
def _timed(seconds: list[float]) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - started)


def _moves(folder: Path, instants: int) -> dict[str, Any]:
    """Move a table with so many instants, two fifths of them active, up and back, and drop the old timeline."""
    archived = instants * 3 // 5
    found: dict[str, float] = {}
    target = _old_table(folder, instants, archived)
    for name, move in (
        ("plan of the upgrade from 6 to 9", lambda: target.upgrade(9)),
        ("upgrade from 6 to 9", lambda: target.upgrade(9, dry_run=False)),
        ("downgrade from 9 to 8", lambda: target.downgrade(8, dry_run=False)),
        ("downgrade from 8 to 6", lambda: target.downgrade(6, dry_run=False)),
        ("drop of the old timeline", lambda: target.drop_old_timeline(dry_run=False)),
    ):
        started = time.perf_counter()
        move()
        found[name] = time.perf_counter() - started
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    shutil.rmtree(folder)
    return {"moves": found, "active": instants - archived, "archived": archived, "peak_mb": peak_mb}


def _old_table(folder: Path, instants: int, archived: int) -> Any:
    """A table of version 6 with one file, and with copies of its commit at earlier times, the oldest archived."""
    shutil.rmtree(folder, ignore_errors=True)
    data = narrow_rows(np.arange(100), ts=0)
    hoodie.create(folder, data.schema, record_key="key", ordering="ts", index="simple", table_version=6)
    target = hoodie.open(folder, spark=False)
    instant = target.bulk_insert(data).instant
    store, layout = open_store(str(folder)), layout_for(6)
    content = store.read(f".hoodie/{instant}.commit")
    times = [instant_time_of_ms(_FIRST_MS + number * _MINUTE_MS, TimelineZone.UTC) for number in range(instants)]
    archive, metadata = archive_of(store, layout, name="archived"), CommitMetadata.parse(content).to_bytes(9)
    for first in range(0, archived, 500):
        archive.append(
            [
                ArchivedInstant(requested_time=time, completion_time=time, action="commit", metadata=metadata)
                for time in times[first : min(first + 500, archived)]
            ]
        )
    for time_of_instant in times[archived:]:
        for name, data_of_file in (("commit.requested", b""), ("inflight", b""), ("commit", content)):
            (folder / ".hoodie" / f"{time_of_instant}.{name}").write_bytes(data_of_file)
    return hoodie.open(folder, spark=False)


def main() -> None:
    """Measure with the folder and sizes of the arguments."""
    rows, upserts, repeats, instants = (int(text) for text in sys.argv[2:6])
    print_figures(_measure(Path(sys.argv[1]), rows, upserts, repeats, instants))


if __name__ == "__main__":
    main()
