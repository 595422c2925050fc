"""Compare HFile reads and writes of hoodie and the JVM: the same keys and files, in memory, one process for each side.

`python -m bench.hfile FOLDER ENTRIES REPEATS` measures hoodie, and writes the files for bench/java/HFileBench.java.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.child import figures_of, figures_of_java, print_figures, tell
from bench.keys import uuid_keys
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine
from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes
from hoodie.format.metadata_table.record_location import RecordLocation, location_values

LOOK_UPS = (1_000, 100_000, 300_000)
_FILE_GROUPS = 100


def run(settings: Settings) -> dict[str, Any]:
    """Measure both sides, one after the other."""
    entries, repeats = settings.hfile_entries, settings.hfile_repeats
    told = machine()
    folder = settings.work / f"hfile-{entries}"
    folder.mkdir(parents=True, exist_ok=True)
    tell(f"hfile: {entries:,} entries, hoodie ...")
    hoodie = figures_of("bench.hfile", folder, entries, repeats)
    tell(f"hfile: {entries:,} entries, JVM ...")
    jvm = figures_of_java("HFileBench", folder, folder, repeats, *_counts(entries))
    return {"machine": told, "entries": entries, "repeats": repeats, "hoodie": hoodie, "jvm": jvm}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each step, with columns for both codecs and both sides."""
    hoodie, jvm = result["hoodie"], result["jvm"]
    head = ["seconds"]
    head += [f"{codec} {side}" for codec in ("GZIP", "NONE") for side in ("hoodie", "JVM", "JVM / hoodie")]
    rows = []
    for step in dict.fromkeys(name.partition(" ")[2] for name in hoodie["seconds"]):
        row = [f"{int(step):,} look-ups" if step.isdigit() else step]
        for codec in ("GZIP", "NONE"):
            ours, theirs = hoodie["seconds"][f"{codec} {step}"], jvm[f"{codec} {step}"]
            row += [seconds_text(ours), seconds_text(theirs), f"{median(theirs) / median(ours):.1f}x"]
        rows.append(row)
    where = f"{machine_line(result['machine'])}, median of {result['repeats']} (least-greatest)"
    title = f"{result['entries']:,} entries, {where}; sorted look-ups, each time with a reader opened anew"
    sizes = ", ".join(f"{codec} {size / 2**20:.1f} MiB" for codec, size in hoodie["bytes"].items())
    return "\n".join([title, "", table(head, rows), "", f"- File: {sizes}, read by both sides.", ""])


def _counts(entries: int) -> list[int]:
    """Return the numbers of look-ups: `LOOK_UPS`, or proportionally fewer for less than a million entries."""
    return [min(count, entries * count // 1_000_000 + 1) for count in LOOK_UPS]


def _entries(count: int) -> tuple[pa.StringArray, pa.BinaryArray]:
    """Return keys and values like those of an index file group."""
    keys = uuid_keys(np.arange(count))
    locations = [
        RecordLocation(f"city=city-{number % 10}", f"{file_id}-0", 1_700_000_000_000 + number)
        for number, file_id in enumerate(uuid_keys(np.arange(_FILE_GROUPS)).to_pylist())
    ]
    codes = np.random.default_rng(1).integers(0, _FILE_GROUPS, count)
    return keys.take(pc.sort_indices(keys)), location_values(locations, codes)


def _steps(folder: Path, count: int) -> dict[str, Callable[[], Any]]:
    """Return the steps to time, by name; writes the files that the steps of both sides read."""
    keys, values = _entries(count)
    random = np.random.default_rng(2)
    wanted = {}
    for asked in _counts(count):
        places = np.sort(random.choice(count, asked, replace=False))
        (folder / f"wanted-{asked}").write_bytes(places.astype(">i4").tobytes())
        wanted[asked] = keys.take(pa.array(places))
    steps: dict[str, Callable[[], Any]] = {}
    for codec in Compression:
        content = hfile_to_bytes(keys, values, schema_json='"bytes"', codec=codec)
        (folder / f"{codec.name}.hfile").write_bytes(content)
        steps[f"{codec.name} write"] = lambda codec=codec: hfile_to_bytes(
            keys, values, schema_json='"bytes"', codec=codec
        )
        steps[f"{codec.name} scan"] = lambda content=content: HFileReader(content, path="bench").entries()
        for asked, chosen in wanted.items():
            steps[f"{codec.name} {asked}"] = lambda content=content, chosen=chosen: _look_up(content, chosen)
    return steps


def _look_up(content: bytes, keys: pa.StringArray) -> None:
    assert HFileReader(content, path="bench").get_many(keys).null_count == 0


def main() -> None:
    """Measure hoodie's side."""
    folder, count, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    steps = _steps(folder, count)
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(repeats + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            took = round(time.perf_counter() - started, 4)
            if number:  # the first round is the warm-up, on both sides
                seconds[name].append(took)
    sizes = {codec.name: (folder / f"{codec.name}.hfile").stat().st_size for codec in Compression}
    print_figures({"seconds": seconds, "bytes": sizes})


if __name__ == "__main__":
    main()
