"""Compare bloom filters of hoodie and the JVM: build and probe them in memory, one process for each side.

`python -m bench.bloom FOLDER KEYS REPEATS` measures hoodie, and writes the keys for bench/java/BloomBench.java.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.child import figures_of, figures_of_java, print_figures, tell
from bench.keys import uuid_keys
from bench.markdown import machine_line, seconds_text, table
from bench.settings import Settings, machine
from hoodie.format.hashes.bloom import BloomFilter, BloomFilterType, FilterBuilder, FilterOptions

_FILES = 10
"""Files whose filters are DYNAMIC_V0; a SIMPLE filter has all keys."""
_STEPS = ("build", "probe")


def run(settings: Settings) -> dict[str, Any]:
    """Measure both sides, one after the other."""
    count, repeats = settings.bloom_keys, settings.bloom_repeats
    told = machine()
    folder = settings.work / f"bloom-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    tell(f"bloom: {count:,} keys, hoodie ...")
    hoodie = figures_of("bench.bloom", folder, count, repeats)
    tell(f"bloom: {count:,} keys, JVM ...")
    rate = FilterOptions().false_positive_rate
    jvm = figures_of_java("BloomBench", folder, folder, repeats, count // _FILES, rate)
    if hoodie["found"] != jvm["found"]:
        raise SystemExit(f"bloom: hoodie may find {hoodie['found']} of the keys, the JVM {jvm['found']}")
    return {"machine": told, "keys": count, "repeats": repeats, "hoodie": hoodie, "jvm": jvm}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each type of filter and step."""
    ours, theirs = result["hoodie"]["seconds"], result["jvm"]["seconds"]
    rows = [
        [
            step,
            seconds_text(ours[step]),
            seconds_text(theirs[step]),
            f"{median(theirs[step]) / median(ours[step]):.1f}x",
        ]
        for step in ours
    ]
    found = ", ".join(f"{count:,} by {name}" for name, count in result["hoodie"]["found"].items())
    title = (
        f"{result['keys']:,} keys of 36 characters, false positive rate {FilterOptions().false_positive_rate:g}: "
        f"one SIMPLE filter, or {_FILES} DYNAMIC_V0 filters with the JVM's default sizes; "
        "as many probes, of which half are stored; "
        f"{machine_line(result['machine'])}, one thread, median of {result['repeats']} (least-greatest)"
    )
    head = ["seconds", "hoodie", "JVM", "JVM / hoodie"]
    return "\n".join(
        [title, "", table(head, rows), "", f"- Probes that may be stored: {found}, the same on both sides.", ""]
    )


def _measure(kind: BloomFilterType, keys: pa.StringArray, probes: pa.StringArray) -> tuple[float, float, int]:
    """Return the seconds of building and of probing, and how many probes may be stored."""
    part = len(keys) if kind is BloomFilterType.SIMPLE else len(keys) // _FILES
    chosen = FilterOptions(entries=len(keys), filter_type=kind) if kind is BloomFilterType.SIMPLE else FilterOptions()
    started = time.perf_counter()
    filters = [_built(keys.slice(start, part), chosen) for start in range(0, len(keys), part)]
    built = time.perf_counter()
    found = sum(int(bloom.may_contain(probes.slice(number * part, part)).sum()) for number, bloom in enumerate(filters))
    return built - started, time.perf_counter() - built, found


def _built(keys: pa.StringArray, chosen: FilterOptions) -> BloomFilter:
    builder = FilterBuilder(chosen)
    builder.add(keys)
    return builder.build()


def main() -> None:
    """Measure hoodie's side."""
    folder, count, repeats = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    keys = uuid_keys(np.arange(count))
    probes = uuid_keys(np.arange(count) + count * (np.arange(count) % 2))
    for name, texts in (("keys", keys), ("probes", probes)):
        (folder / name).write_text("\n".join(texts.to_pylist()) + "\n")
    seconds: dict[str, list[float]] = {}
    found: dict[str, int] = {}
    for round_number in range(repeats + 1):
        for kind in BloomFilterType:
            *taken, found[kind.value] = _measure(kind, keys, probes)
            for step, took in zip(_STEPS, taken, strict=True):
                if round_number:  # the first round is the warm-up, on both sides
                    seconds.setdefault(f"{kind.value} {step}", []).append(round(took, 4))
    print_figures({"seconds": seconds, "found": found})


if __name__ == "__main__":
    main()
