"""Draw the pictures of the benchmark: SVG files whose bytes depend only on the figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

_COLOURS = ("#c2410c", "#1d4ed8", "#15803d")
_SETTINGS: Any = {"svg.hashsalt": "hoodie", "svg.fonttype": "none", "font.size": 9, "path.simplify": True}
_STYLES = {"seek": "-", "scan": "--"}


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Draw time against share on logarithmic axes: a colour for each index file group, dashed lines for scans."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(7, 4), layout="constrained", facecolor="white")
        axes = figure.subplots()
        for bucket, colour in zip(result["buckets"], _COLOURS, strict=False):
            shares = [100 * point["share"] for point in bucket["points"]]
            for way, style in _STYLES.items():
                times = [median(point[way]) for point in bucket["points"]]
                axes.plot(shares, times, style, color=colour, label=f"{way}, {bucket['entries']:,} keys")
            if bucket["crossing"] is not None:
                axes.axvline(100 * bucket["crossing"], color=colour, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("keys looked up, % of the bucket's keys")
        axes.set_ylabel("seconds")
        axes.grid(which="major", linewidth=0.4, color="#d4d4d4")
        axes.legend(frameon=False)
        _save(figure, path)


def draw_life(result: Mapping[str, Any], path: Path) -> None:
    """Draw storage requests and CPU seconds of each commit against its number: a row for each table type."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(8, 5), layout="constrained", facecolor="white")
        all_axes = figure.subplots(len(result), 2, squeeze=False)
        for (table_type, figures), row in zip(result.items(), all_axes, strict=True):
            for axes, name, colour in zip(row, ("requests", "cpu_seconds"), _COLOURS, strict=False):
                values = [commit[name] for commit in figures["commits"]]
                axes.plot(range(1, len(values) + 1), values, ".", markersize=2, color=colour, rasterized=True)
                axes.set_ylim(bottom=0)
                axes.set_title(table_type.replace("_", "-"))
                axes.set_xlabel("number of the commit")
                axes.set_ylabel("storage requests" if name == "requests" else "CPU seconds")
                axes.grid(which="major", linewidth=0.4, color="#d4d4d4")
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
