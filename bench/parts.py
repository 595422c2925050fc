"""The parts of the benchmark: the function, the rendering and the page of each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import (
    adopting,
    automatic_keys,
    bloom,
    cloud,
    commit_requests,
    commits,
    crossing,
    durable,
    file_sizes,
    frames,
    hfile,
    indexes,
    ingest,
    life,
    locality,
    many_files,
    merge_memory,
    merged_reads,
    skew,
    statistics_cost,
    stories,
    summary,
    surfaces,
    table,
    tagging,
    versions,
    wide,
)
from bench.settings import (
    ADOPTING,
    ALL_MEASURED,
    AUTOMATIC_KEYS,
    BLOOM,
    IN_PROCESS_LANES,
    INDEXES,
    JVM_LANES,
    MANY_FILES,
    MEASURED,
    MERGE_ON_READ,
    OPERATIONS,
    READING,
    README,
    STATISTICS,
    STORAGE,
    VERSIONS,
    Settings,
)

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the benchmark.

    Its result is one mapping, or one mapping for each size if `has_sizes`. `minutes` is an estimate for the default
    sizes on two cores; `headline` is that of a part of the headline, with the lanes of `HEADLINE_LANES`.
    """

    name: str
    minutes: int
    run: Callable[[Settings], list[Result]]
    render: Callable[[Mapping[str, Any]], str]
    page: Path
    has_sizes: bool = False
    headline: int | None = None

    def file_name(self, result: Mapping[str, Any]) -> str:
        """Return the name of the file with a result, without extension."""
        return f"{self.name}-{result['rows']}" if self.has_sizes else self.name

    def names(self, file_name: str) -> bool:
        """Return whether a file has a result of this part, by its name without extension."""
        name, _, size = file_name.rpartition("-") if self.has_sizes else (file_name, "", "0")
        return name == self.name and size.isdigit() and self.name != "summary"


def _one(run: Callable[[Settings], Result]) -> Callable[[Settings], list[Result]]:
    return lambda settings: [run(settings)]


PARTS = (
    Part("copy-on-write", 13, stories.copy_on_write, table.render, ALL_MEASURED, has_sizes=True),
    Part("record", 9, stories.record, table.render_record, ALL_MEASURED, has_sizes=True, headline=3),
    Part("merge-on-read", 9, stories.merge_on_read, table.render_merge_on_read, ALL_MEASURED, True, headline=3),
    Part("in-process", 2, stories.in_process, table.render_in_process, ALL_MEASURED, True, headline=1),
    Part("spark-path", 20, stories.spark_path, table.render_spark_path, ALL_MEASURED, has_sizes=True),
    Part("surfaces", 12, _one(surfaces.run), surfaces.render, ALL_MEASURED),
    Part("frames", 5, _one(frames.run), frames.render, READING),
    Part("wide", 4, _one(wide.run), wide.render, ALL_MEASURED),
    Part("ingest", 15, _one(ingest.run), ingest.render, ALL_MEASURED),
    Part("locality", 2, _one(locality.run), locality.render, ALL_MEASURED, headline=2),
    Part("requests", 1, _one(commit_requests.run), commit_requests.render, ALL_MEASURED),
    Part("cloud", 1, _one(cloud.run), cloud.render, STORAGE, headline=1),
    Part("merge-memory", 2, _one(merge_memory.run), merge_memory.render, MERGE_ON_READ),
    Part("merged-reads", 10, _one(merged_reads.run), merged_reads.render, MERGE_ON_READ),
    Part("commits-logs", 4, _one(commits.run_with_logs), commits.render, MERGE_ON_READ),
    Part("hfile", 2, _one(hfile.run), hfile.render, MEASURED),
    Part("tagging", 8, _one(tagging.run), tagging.render, MEASURED),
    Part("crossing", 3, _one(crossing.run), crossing.render, MEASURED),
    Part("versions", 4, _one(versions.run), versions.render, VERSIONS),
    Part("adopting", 4, _one(adopting.run), adopting.render, ADOPTING),
    Part("durable", 2, _one(durable.run), durable.render, STORAGE),
    Part("life", 12, _one(life.run), life.render, OPERATIONS),
    Part("many-files", 4, _one(many_files.run), many_files.render, MANY_FILES),
    Part("file-sizes", 4, _one(file_sizes.run), file_sizes.render, MANY_FILES),
    Part("statistics", 3, _one(statistics_cost.run), statistics_cost.render, STATISTICS),
    Part("automatic-keys", 3, _one(automatic_keys.run), automatic_keys.render, AUTOMATIC_KEYS),
    Part("indexes", 25, _one(indexes.run), indexes.render, INDEXES),
    Part("skew", 3, _one(skew.run), skew.render, BLOOM),
    Part("bloom", 1, _one(bloom.run), bloom.render, INDEXES),
    Part("commits", 4, _one(commits.run), commits.render, MEASURED),
    Part("summary", 0, _one(summary.run), summary.render, README, headline=0),
)

HEADLINE_LANES = ("parquet", "parquet-partitioned", "hoodie-record/4", "hoodie-mor/4", *IN_PROCESS_LANES, *JVM_LANES)
"""The lanes of the stories in the headline: the newest Spark, and JVM Hudi on the newest Spark that it supports."""
