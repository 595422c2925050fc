"""Sum up the stories of a run for the README: one picture of ratios, as text and as SVG, and five lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.markdown import day_and_commit
from bench.picture import draw_ratios
from bench.settings import Settings

_JVM = "JVM Hudi"
_DELTA = "delta-rs"
_PARQUET = "plain Parquet"
_BAR = 48
"""Characters of the longest bar."""
_STEPS = {
    "bulk_insert": "bulk insert",
    "upsert": "upsert",
    "commit_100": "100 rows",
    "snapshot": "snapshot",
    "keys_3": "three keys",
    "mor.upsert": "upsert, merge-on-read",
    "mor.snapshot_logs": "snapshot, 10% in logs",
    "mor.compact": "compaction",
}
_RECORD = ("bulk_insert", "upsert", "commit_100", "snapshot", "keys_3")
_MERGE_ON_READ = ("mor.upsert", "mor.snapshot_logs", "mor.compact")

Ratios = Mapping[str, float]


def run(settings: Settings) -> dict[str, Any]:
    """Read the results of the parts `record`, `merge-on-read` and `in-process`, and draw the picture.

    Raises: SystemExit if one of these parts has no result yet.
    """
    result = summed(settings)
    ratios = result["ratios"]
    groups = {step: title for step, title in _STEPS.items() if any(step in found for found in ratios.values())}
    bars = {name: [found.get(step, float("nan")) for step in groups] for name, found in ratios.items()}
    title = "times as long as hoodie (right of the line: hoodie is faster)"
    draw_ratios(bars, [*groups.values()], title, settings.summary)
    return result


def summed(settings: Settings) -> dict[str, Any]:
    """Return the ratios of the others' medians to ours, by implementation and step.

    Raises: SystemExit if one of the three parts has no result yet.
    """
    record = _story(settings.results / f"record-{settings.record_rows}.json")
    logs = _story(settings.results / f"merge-on-read-{settings.merge_on_read_rows}.json")
    arrow = _story(settings.results / f"in-process-{settings.in_process_rows}.json")
    ours, ours_logs = record["lanes"]["hoodie-record/4"], _renamed(logs["lanes"]["hoodie-mor/4"])
    jvm = _ratios(record["lanes"]["hudi-jvm-record/3.5"], ours, _RECORD)
    jvm |= _ratios(_renamed(logs["lanes"]["hudi-jvm-mor/3.5"]), ours_logs, _MERGE_ON_READ)
    delta = arrow["lanes"]["delta-rs"]
    others = _ratios(delta, arrow["lanes"]["hoodie-arrow/4"], _RECORD)
    others |= _ratios({"mor.upsert": delta["upsert"]}, _renamed(arrow["lanes"]["hoodie-arrow-mor/4"]), _MERGE_ON_READ)
    parquet = _ratios(record["lanes"]["parquet-partitioned"], ours, _RECORD)
    plain_logs = {"mor.snapshot_logs": logs["lanes"]["parquet"]["snapshot"]}
    parquet |= _ratios(plain_logs, ours_logs, _MERGE_ON_READ)
    days = sorted({day_and_commit(found["machine"]) for found in (record, logs, arrow)})
    ratios = {_JVM: jvm, _DELTA: others, _PARQUET: parquet}
    return {"machine": record["machine"], "rows": record["rows"], "days": days, "ratios": ratios}


def render(result: Mapping[str, Any]) -> str:
    """Render the picture as text, which every reader of the README shows, and the five lines."""
    jvm, delta, parquet = (result["ratios"][name] for name in (_JVM, _DELTA, _PARQUET))
    lines = [
        f"{_JVM} 1.2.0 with its record index takes {_times(jvm, _RECORD)} as long as `hoodie` on Spark.",
        f"With its merge-on-read tables and its default index it takes {_times(jvm, _MERGE_ON_READ)} as long.",
        f"{_DELTA}, which keeps no index and no meta columns, takes {_times(delta, _STEPS)} as long as `hoodie` "
        "in process.",
        f"{_PARQUET}, written and read by Spark, takes {_times(parquet, _STEPS)} as long.",
        f"{result['rows']:,} rows of ten columns, medians, {' and '.join(result['days'])}, {_machine(result)}.",
    ]
    return "\n".join([_chart(result["ratios"]), "", *(f"- {line}" for line in lines)])


def _chart(ratios: Mapping[str, Ratios]) -> str:
    """Draw the bars as a block of text: a group for each step, a bar for each implementation that has it."""
    scale = _BAR / max(max(found.values()) for found in ratios.values())
    wide, names = max(map(len, _STEPS.values())), max(map(len, ratios))
    lines = ["```text", "Time of the others: hoodie = 1, more is slower"]
    for step, title in _STEPS.items():
        shown = title
        for name, found in ratios.items():
            if step in found:
                bar = "█" * max(1, round(found[step] * scale))
                lines.append(f"{shown:<{wide}}  {name:<{names}}  {bar} {found[step]:.1f}")
                shown = ""
    return "\n".join([*lines, "```"])


def _machine(result: Mapping[str, Any]) -> str:
    return f"{result['machine']['cores']} cores, {result['machine']['memory_gib']} GiB"


def _times(ratios: Ratios, steps: Any) -> str:
    return ", ".join(f"{ratios[step]:.1f}x ({_STEPS[step]})" for step in steps if step in ratios)


def _ratios(others: Ratios, ours: Ratios, steps: tuple[str, ...]) -> dict[str, float]:
    return {step: others[step] / ours[step] for step in steps if step in others and step in ours}


def _renamed(medians: Ratios) -> dict[str, float]:
    return {f"mor.{step}": seconds for step, seconds in medians.items()}


def _story(path: Path) -> dict[str, Any]:
    """Return the result of a story; its `lanes` map a lane to its medians."""
    if not path.exists():
        raise SystemExit(f"{path} is missing: run the parts record, merge-on-read and in-process first")
    result: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return result | {"lanes": {lane["lane"]: lane["medians"] for lane in result["lanes"]}}
