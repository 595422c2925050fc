"""Measure from which share of an index file group's keys a scan is cheaper than seeks, as in RFC-08, with a picture.

`python -m bench.crossing REPEATS ENTRIES...` times look-ups by seek and by scan in one base file that is in memory.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.child import figures_of, print_figures, tell
from bench.keys import uuid_keys
from bench.markdown import machine_line, table
from bench.picture import draw
from bench.settings import PICTURE, Settings, machine
from hoodie.files.slices import FileSlice
from hoodie.format.hfile import HFileReader
from hoodie.format.metadata_table.record_location import RecordLocation, location_values
from hoodie.index.record.look_up import SCAN_SHARE, LookUp, find
from hoodie.metadata.delta_commit import base_file_to_bytes
from hoodie.metadata.slice_content import SliceContent

SHARES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_WAYS = (LookUp.SEEK, LookUp.SCAN)
_FILE_GROUPS = 100
_FILE = "bench/record-index-0000-0.hfile"


def run(settings: Settings) -> dict[str, Any]:
    """Time seeks and scans on index file groups of the settings' sizes, and draw the picture."""
    told = machine()
    tell(f"crossing: {', '.join(f'{entries:,}' for entries in settings.crossing_entries)} entries ...")
    buckets = figures_of("bench.crossing", settings.crossing_repeats, *settings.crossing_entries)
    for bucket in buckets:
        bucket["crossing"] = crossing(bucket["points"])
    result = {"machine": told, "repeats": settings.crossing_repeats, "scan_share": SCAN_SHARE, "buckets": buckets}
    draw(result, settings.picture)
    return result


def crossing(points: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of the keys from which a scan is used; None if seeks are used for every share.

    The share is chosen for the least cost of all points together. The cost of a point is the logarithm of the ratio of
    its two times, so one noisy point changes the result little. Between two measured shares the result is the
    intersection of straight lines on logarithmic axes, as in the picture.
    """
    gains = np.array([math.log(median(point["seek"]) / median(point["scan"])) for point in points])
    first_scan = int(np.argmin(np.concatenate([[0.0], np.cumsum(gains)])))
    if first_scan == len(points):
        return None
    if first_scan == 0:
        return float(points[0]["share"])
    before, after = gains[first_scan - 1], gains[first_scan]
    low, high = math.log(points[first_scan - 1]["share"]), math.log(points[first_scan]["share"])
    return math.exp(low + before / (before - after) * (high - low))


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each share, two columns for each index file group, then a line with each crossing."""
    buckets = result["buckets"]
    head = ["share of the keys"]
    head += [f"{way}, {bucket['entries']:,} keys" for bucket in buckets for way in ("seek", "scan")]
    rows = []
    for place, point in enumerate(buckets[0]["points"]):
        points = [bucket["points"][place] for bucket in buckets]
        times = [1000 * median(point[way]) for point in points for way in ("seek", "scan")]
        rows.append([f"{100 * point['share']:g}%", *(f"{took:,.1f}" for took in times)])
    where = f"{machine_line(result['machine'])}, median of {result['repeats']}"
    picture = f"![Time by the share of the keys that is asked for]({PICTURE.name})"
    title = f"Milliseconds, {where}; one base file, GZIP, in memory"
    told = [f"- {_crossing_line(bucket, result['scan_share'])}" for bucket in buckets]
    return "\n".join([title, "", picture, "", table(head, rows), "", *told, ""])


def _crossing_line(bucket: Mapping[str, Any], scan_share: float) -> str:
    share = bucket["crossing"]
    what = "a seek is quicker at every share" if share is None else f"a scan is quicker from {100 * share:.2g}% on"
    ends = [median(point["seek"]) / median(point["scan"]) for point in (bucket["points"][0], bucket["points"][-1])]
    return (
        f"{bucket['entries']:,} keys in {bucket['blocks']:,} blocks: {what} "
        f"(`auto` scans from {100 * scan_share:.0f}%); "
        f"a seek takes {ends[0]:.2f}x the time of a scan for the fewest keys, {ends[1]:.2f}x for all of them"
    )


def _measure(entries: int, repeats: int) -> dict[str, Any]:
    keys, content = _bucket(entries)
    assert content.base is not None
    random = np.random.default_rng(0)
    points = []
    for share in SHARES:
        wanted = keys.take(pa.array(random.choice(entries, max(1, round(share * entries)), replace=False)))
        seconds: dict[str, list[float]] = {way.value: [] for way in _WAYS}
        for _ in range(repeats):
            for way in _WAYS:
                seconds[way.value].append(_time(content, wanted, way))
        points.append({"share": share, **seconds})
    return {"entries": entries, "blocks": content.base.block_count, "points": points}


def _time(content: SliceContent, keys: pa.StringArray, way: LookUp) -> float:
    started = time.perf_counter()
    found = find(content, keys, look_up=way)
    took = time.perf_counter() - started
    assert (found.codes >= 0).all(), f"{way}: a key was not found"
    return round(took, 6)


def _bucket(entries: int) -> tuple[pa.StringArray, SliceContent]:
    """Return the sorted keys of an index file group, and its content with one base file."""
    keys = uuid_keys(np.arange(entries))
    keys = keys.take(pc.sort_indices(keys))
    file_ids = uuid_keys(np.arange(_FILE_GROUPS)).to_pylist()
    locations = [
        RecordLocation(f"city=city-{number % 10}", f"{file_id}-0", 1_700_000_000_000)
        for number, file_id in enumerate(file_ids)
    ]
    values = location_values(locations, np.random.default_rng(1).integers(0, _FILE_GROUPS, entries))
    reader = HFileReader(base_file_to_bytes(keys, values), path=_FILE)
    file_slice = FileSlice("record_index", "record-index-0000-0", "0" * 17, None)
    return keys, SliceContent(file_slice, reader, (), 0)


def main() -> None:
    """Measure index file groups of the sizes in the arguments, after a warm-up."""
    repeats, sizes = int(sys.argv[1]), [int(text) for text in sys.argv[2:]]
    _measure(1_000, 1)
    print_figures([_measure(entries, repeats) for entries in sizes])


if __name__ == "__main__":
    main()
