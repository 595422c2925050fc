"""`make bench` and `make bench-all`: run parts of the benchmark one after the other on this machine.

Figures are written to bench/results, and tables to the pages. Usage: `python -m bench [--headline | --go-on | --only
record,tagging] [--docs] [--tiny] …`. Environment: HOODIE_BENCH_PYTHON_35 (Python of the PySpark 3.5 environment) and
HOODIE_JVM_BUNDLE; `make bench` sets both. `--tiny` checks in a few minutes that the code works.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from bench.child import tell
from bench.markdown import put_section, section
from bench.parts import HEADLINE_LANES, PARTS, Part
from bench.settings import BENCH, TINY, Settings, commit


def main() -> None:
    """Measure the chosen parts, and write and print the results."""
    wanted = _arguments()
    settings = _settings(wanted)
    settings.work.mkdir(parents=True, exist_ok=True)
    settings.results.mkdir(parents=True, exist_ok=True)
    parts = [part for part in PARTS if not wanted.only or part.name in wanted.only]
    if wanted.headline:
        parts = [part for part in parts if part.headline is not None]
    if wanted.go_on:
        parts = [part for part in parts if not _is_measured(part, settings)]
    if settings.docs:
        for part in parts:
            section(part.page, part.name)  # raises an error for a page without markers before the measurements
    if not wanted.tiny:
        minutes = sum((part.headline if wanted.headline else part.minutes) or 0 for part in parts)
        tell(f"{', '.join(part.name for part in parts)}: about {minutes} minutes on two cores")
    for part in parts:
        _measure(part, settings)


def _is_measured(part: Part, settings: Settings) -> bool:
    """Return whether there are results of the part for this commit. The summary is always made again."""
    files = [path for path in settings.results.glob(f"{part.name}*.json") if part.names(path.stem)]
    return bool(files) and all(json.loads(path.read_text())["machine"]["commit"] == commit() for path in files)


def _measure(part: Part, settings: Settings) -> None:
    texts = []
    for result in part.run(settings):
        path = settings.results / f"{part.file_name(result)}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        texts.append(part.render(result))
        print(f"{texts[-1]}\nwritten to {path}\n", flush=True)
    if settings.docs:
        put_section(part.page, part.name, "\n".join(texts))


def _arguments() -> argparse.Namespace:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--only", type=_texts, default=(), help=f"parts: {','.join(names)}")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--headline", action="store_true", help="the parts and lanes of the README, in ten minutes")
    chosen.add_argument("--go-on", action="store_true", help="only parts that have no result for this commit")
    parser.add_argument("--rows", type=_numbers, help="sizes of the copy-on-write story: 1000000,4000000")
    parser.add_argument("--repeats", type=_numbers, help="for each of --rows: 3,1")
    parser.add_argument("--lanes", type=_texts, default=(), help="only these lanes of the stories")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: not to measure, but to try the code")
    parser.add_argument("--docs", action="store_true", help="put the tables and the picture into README.md and docs")
    parser.add_argument("--work", type=Path, default=Path("/tmp/hoodie-bench"), help="folder for inputs and tables")
    wanted = parser.parse_args()
    if unknown := set(wanted.only) - set(names):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if wanted.tiny and wanted.docs:
        parser.error("tiny figures do not belong into the pages: leave out --docs or --tiny")
    return wanted


def _settings(wanted: argparse.Namespace) -> Settings:
    settings = Settings(work=wanted.work, results=BENCH / "results", docs=wanted.docs, lanes=wanted.lanes)
    if wanted.headline and not wanted.lanes:
        settings = replace(settings, lanes=HEADLINE_LANES)
    if wanted.tiny:
        settings = replace(settings, results=wanted.work / "results", **TINY)
    if not wanted.docs:
        pictures = ("summary", "picture", "life_picture", "keys_picture", "indexes_picture")
        elsewhere = {name: settings.results / getattr(settings, name).name for name in pictures}
        settings = replace(settings, **elsewhere)
    if wanted.rows:
        repeats = wanted.repeats or (1,) * len(wanted.rows)
        settings = replace(settings, rows=wanted.rows, repeats=repeats)
    elif wanted.repeats:
        settings = replace(settings, repeats=wanted.repeats)
    return settings


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _texts(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


if __name__ == "__main__":
    main()
