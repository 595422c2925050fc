"""Render the stories as Markdown: medians, and ratios to plain Parquet and JVM Hudi of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.markdown import machine_line, seconds_text, table

STEPS = ("bulk_insert", "upsert", "commit_100", "late_100", "snapshot", "incremental")
RECORD_STEPS = (*STEPS, "keys_3", "upsert.tag", "upsert.index", "bulk_insert.index")
_JVM = "hudi-jvm/3.5"
_JVM_RECORD = "hudi-jvm-record/3.5"
_JVM_MERGE_ON_READ = "hudi-jvm-mor/3.5"
MERGE_ON_READ_STEPS = (
    "bulk_insert",
    "upsert",
    "commit_100",
    "late_100",
    "snapshot",
    "snapshot_logs",
    "incremental",
    "compact",
    "snapshot_compacted",
)

IN_PROCESS_STEPS = ("bulk_insert", "upsert", "commit_100", "late_100", "snapshot")
SPARK_PATH_STEPS = (
    *IN_PROCESS_STEPS,
    "bulk_insert.index",
    "upsert.stage",
    "upsert.tag",
    "upsert.write",
    "upsert.index",
)

Lanes = Mapping[str, Mapping[str, Any]]


def render(result: Mapping[str, Any]) -> str:
    """Render the copy-on-write story: a row for each lane, then the main ratios."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    lines = [f"- {text}" for label in ("hoodie/4", "hoodie/3.5") if label in lanes for text in _ratios(label, lanes)]
    return _story(result, lanes, STEPS, "", lines)


def render_record(result: Mapping[str, Any]) -> str:
    """Render the same story with the record index, look-ups by key, and phases of hoodie's writes."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    lines = []
    for label in ("hoodie-record/4", "hoodie-record/3.5"):
        if label in lanes and _JVM_RECORD in lanes:
            told = _faster(lanes[label], lanes[_JVM_RECORD], (*STEPS, "keys_3"))
            lines.append(f"- {label} against JVM Hudi with its record index: {told} faster")
    return _story(result, lanes, RECORD_STEPS, ", record index", lines)


def render_merge_on_read(result: Mapping[str, Any]) -> str:
    """Render the merge-on-read story: reads before and after changes are logged, and a compaction."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    lines = []
    for label in ("hoodie-mor/4", "hoodie-mor/3.5"):
        if label in lanes and _JVM_MERGE_ON_READ in lanes:
            told = _faster(lanes[label], lanes[_JVM_MERGE_ON_READ], MERGE_ON_READ_STEPS)
            lines.append(f"- {label} against JVM Hudi: {told} faster")
        if label in lanes and "parquet" in lanes:
            floor = lanes["parquet"]["medians"]["snapshot"]
            ours = lanes[label]["medians"]["snapshot_logs"]
            lines.append(
                f"- {label}: a snapshot with 10% of the rows in logs takes {ours / floor:.2f}x of plain Parquet"
            )
    return _story(result, lanes, MERGE_ON_READ_STEPS, ", merge-on-read", lines)


def render_in_process(result: Mapping[str, Any]) -> str:
    """Render the steps in process, and their ratios to delta-rs."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    told = []
    if "delta-rs" in lanes:
        ours = [label for label in lanes if label != "delta-rs"]
        told = [f"- {label}: {_times(lanes[label], lanes['delta-rs'])} the time of delta-rs" for label in ours]
    return _story(result, lanes, IN_PROCESS_STEPS, ", in process", told)


def render_spark_path(result: Mapping[str, Any]) -> str:
    """Render the steps on Spark's workers, and their ratios to the driver's threads and to the JVM."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    pairs = (
        ("hoodie-workers/4", "hoodie-record/4"),
        ("hoodie-cluster/4", "hoodie-record/4"),
        ("hoodie-workers-mor/4", "hoodie-mor/4"),
        ("hoodie-workers/4", "parquet-partitioned"),
    )
    known = [(label, other) for label, other in pairs if label in lanes and other in lanes]
    told = [f"- {label}: {_times(lanes[label], lanes[other])} the time of {other}" for label, other in known]
    if "hoodie-workers/4" in lanes and _JVM_RECORD in lanes:
        faster = _faster(lanes["hoodie-workers/4"], lanes[_JVM_RECORD], ("bulk_insert", "upsert", "commit_100"))
        told.append(f"- hoodie-workers/4 against JVM Hudi: {faster} faster")
    told += [text for label, lane in lanes.items() if (text := _peaks(label, lane))]
    return _story(result, lanes, SPARK_PATH_STEPS, ", record index, steps on Spark's workers", told)


def _peaks(label: str, lane: Mapping[str, Any]) -> str:
    """Tell the peak memory of the driver's Python process and of the largest worker in the writes, if any ran."""
    steps = [lane["memory"][step] for step in ("bulk_insert", "upsert") if step in lane["memory"]]
    driver, worker = (max((step[name] for step in steps), default=0.0) for name in ("driver_mib", "worker_mib"))
    if not label.startswith("hoodie") or not steps:
        return ""
    return f"- {label}: peak of the driver's Python {driver:.0f} MiB, of the largest worker {worker:.0f} MiB"


def _times(ours: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """Tell the ratio of the medians of each step that both have."""
    steps = [step for step in IN_PROCESS_STEPS if step in ours["medians"] and step in others["medians"]]
    return ", ".join(f"{step} {ours['medians'][step] / others['medians'][step]:.2f}x" for step in steps)


def _story(result: Mapping[str, Any], lanes: Lanes, steps: tuple[str, ...], what: str, ratios: list[str]) -> str:
    runs = f"median of {result['repeats']} runs" if result["repeats"] > 1 else "one run"
    title = f"{result['rows']:,} rows{what}, {machine_line(result['machine'])}: seconds, {runs}"
    rows = []
    for label, lane in lanes.items():
        memory = lane["memory"].get("upsert", {})
        peak = max(memory.get("worker_mib", 0.0), memory.get("driver_mib", 0.0))
        rows.append([label, *(_cell(lane, step) for step in steps), f"{peak or '-'}", f"{lane['size_mib']:.0f}"])
    head = ["", *steps, "Python peak MiB (upsert)", "size MiB"]
    return "\n".join([title, "", table(head, rows), "", *ratios, ""])


def _cell(lane: Mapping[str, Any], step: str) -> str:
    return seconds_text(lane["seconds"][step]) if step in lane["seconds"] else "-"


def _ratios(label: str, lanes: Lanes) -> list[str]:
    told = []
    if "parquet" in lanes:
        ours, floor = lanes[label]["medians"], lanes["parquet"]["medians"]
        pairs = [f"{step} {ours[step] / floor[step]:.2f}x" for step in ("bulk_insert", "snapshot")]
        told.append(f"{label} against plain Parquet: {', '.join(pairs)} its time")
    if _JVM in lanes:
        told.append(f"{label} against JVM Hudi: {_faster(lanes[label], lanes[_JVM], STEPS)} faster")
    return told


def _faster(ours: Mapping[str, Any], theirs: Mapping[str, Any], steps: tuple[str, ...]) -> str:
    return ", ".join(f"{step} {theirs['medians'][step] / ours['medians'][step]:.1f}x" for step in steps)
