"""Results as a Markdown table: medians, and ratios to the floor and to the JVM within the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

STEPS = ("bulk_insert", "upsert", "commit_100", "snapshot", "incremental")


def render(result: dict[str, Any]) -> str:
    """A table with one row per lane, then the ratios that matter."""
    lanes = {lane["lane"]: lane for lane in result["lanes"]}
    machine = result["machine"]
    runs = f"median of {result['repeats']} runs" if result["repeats"] > 1 else "one run"
    lines = [
        f"{result['rows']:,} rows, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['when'][:10]}: seconds, {runs}",
        "",
        "| | " + " | ".join(STEPS) + " | Python peak MiB (upsert) | size MiB |",
        "|---" * (len(STEPS) + 3) + "|",
    ]
    for label, lane in lanes.items():
        cells = [_cell(lane, step) for step in STEPS]
        memory = lane["memory"].get("upsert", {})
        peak = max(memory.get("worker_mib", 0.0), memory.get("driver_mib", 0.0))
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {peak or '-'} | {lane['size_mib']:.0f} |")
    return "\n".join([*lines, "", *_ratios(lanes), ""])


def put_into_readme(path: Path, tables: list[str]) -> None:
    """Replace what stands between the markers of the README's section on measurements."""
    before, begin, rest = path.read_text("utf-8").partition("<!-- bench:begin -->\n")
    _, end, after = rest.partition("<!-- bench:end -->")
    if not begin or not end:
        raise ValueError(f"{path}: the markers bench:begin and bench:end are missing")
    path.write_text(before + begin + "\n".join(tables) + end + after, "utf-8")


def _cell(lane: dict[str, Any], step: str) -> str:
    if step not in lane["medians"]:
        return "-"
    seconds = lane["seconds"][step]
    return f"{lane['medians'][step]:.2f} ({min(seconds):.2f}-{max(seconds):.2f})"


def _ratios(lanes: dict[str, Any]) -> list[str]:
    lines = []
    for label in ("hoodie/4", "hoodie/3.5"):
        if label not in lanes:
            continue
        ours = lanes[label]["medians"]
        if "parquet" in lanes:
            floor = lanes["parquet"]["medians"]
            pairs = [f"{step} {ours[step] / floor[step]:.2f}x" for step in ("bulk_insert", "snapshot")]
            lines.append(f"- {label} against plain Parquet: {', '.join(pairs)} its time")
        if "hudi-jvm/3.5" in lanes:
            jvm = lanes["hudi-jvm/3.5"]["medians"]
            pairs = [f"{step} {jvm[step] / ours[step]:.1f}x" for step in STEPS]
            lines.append(f"- {label} against JVM Hudi: {', '.join(pairs)} faster")
    return lines
