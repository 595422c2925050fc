"""Draw the pictures of the benchmark: SVG files whose bytes depend only on the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

_COLOURS = ("#c2410c", "#1d4ed8", "#15803d", "#737373")
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


def draw_key_sizes(result: Mapping[str, Any], path: Path) -> None:
    """Draw the bytes of a key: a group of bars for each form of automatic keys, a bar for each codec."""
    forms = result["forms"]
    codecs = list(next(iter(forms.values()))["bytes"])
    bars = {codec: [found["bytes"][codec] / result["rows"] for found in forms.values()] for codec in codecs}
    _draw_bars(bars, list(forms), "bytes of a key in Parquet", path)


def draw_tagging(result: Mapping[str, Any], path: Path) -> None:
    """Draw the seconds of tagging: a group of bars for each index, two bars for each table of the largest size."""
    rows = max(found["rows"] for found in result["tables"])
    bars: dict[str, list[float]] = {}
    names: list[str] = []
    for found in result["tables"]:
        if found["rows"] == rows:
            names = list(found["hoodie"])
            ours = [median(found["hoodie"][name]["seconds"]) for name in names]
            theirs = [found["jvm"].get(name, {"seconds": [float("nan")] * 2})["seconds"][1:] for name in names]
            bars[f"hoodie, {found['kind']} keys"] = ours
            bars[f"JVM, {found['kind']} keys"] = [median(seconds) for seconds in theirs]
    _draw_bars(bars, names, f"seconds to tag {result['keys']:,} keys of {rows:,}", path)


def draw_ratios(bars: Mapping[str, Sequence[float]], groups: Sequence[str], title: str, path: Path) -> None:
    """Draw ratios: a group of bars for each step, a bar for each implementation, and a line at 1."""
    _draw_bars(bars, groups, title, path, line=1.0)


def _draw_bars(
    bars: Mapping[str, Sequence[float]], groups: Sequence[str], title: str, path: Path, *, line: float | None = None
) -> None:
    """Draw groups of horizontal bars on a logarithmic axis, each with its value, from `line`; NaN draws no bar."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        height = 0.8 / len(bars)
        figure = Figure(figsize=(8, 0.6 + 0.22 * len(groups) * len(bars)), layout="constrained", facecolor="white")
        axes = figure.subplots()
        for number, ((name, values), colour) in enumerate(zip(bars.items(), _COLOURS, strict=False)):
            places = [group + (number - (len(bars) - 1) / 2) * height for group in range(len(groups))]
            widths = [value - (line or 0.0) for value in values]
            drawn = axes.barh(places, widths, height=height * 0.9, left=line, color=colour, label=name)
            axes.bar_label(drawn, labels=["" if value != value else f"{value:.3g}" for value in values], padding=2)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.margins(x=0.12)
        if line is not None:
            axes.axvline(line, color="black", linewidth=0.8)
        axes.set_yticks(range(len(groups)), groups)
        axes.invert_yaxis()
        axes.set_xlabel(title)
        axes.legend(frameon=False)
        _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
