"""The sizes of a run: the default sizes, and tiny sizes to check that the code works."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent
ROOT = BENCH.parent
README = ROOT / "README.md"
MEASURED = ROOT / "docs" / "record-index" / "measured.md"
STORAGE = ROOT / "docs" / "storage.md"
READING = ROOT / "docs" / "reading.md"
ALL_MEASURED = ROOT / "docs" / "measured.md"
MERGE_ON_READ = ROOT / "docs" / "merge-on-read" / "measured.md"
STATISTICS = ROOT / "docs" / "operations" / "statistics.md"
MANY_FILES = ROOT / "docs" / "many-files.md"
ADOPTING = ROOT / "docs" / "adopt.md"
VERSIONS = ROOT / "docs" / "table-versions.md"
OPERATIONS = ROOT / "docs" / "operations" / "measured.md"
SUMMARY = ROOT / "docs" / "measured.svg"
LIFE_PICTURE = ROOT / "docs" / "operations" / "life.svg"
PICTURE = ROOT / "docs" / "record-index" / "seek-scan.svg"
AUTOMATIC_KEYS = ROOT / "docs" / "automatic-keys.md"
KEYS_PICTURE = ROOT / "docs" / "automatic-keys.svg"
INDEXES = ROOT / "docs" / "indexes" / "README.md"
BLOOM = ROOT / "docs" / "indexes" / "bloom.md"
INDEXES_PICTURE = ROOT / "docs" / "indexes" / "tagging.svg"

COPY_ON_WRITE_LANES = ("parquet", "parquet-partitioned", "hoodie/4", "hoodie/3.5", "hudi-jvm/3.5", "delta-rs")
RECORD_LANES = ("parquet-partitioned", "hoodie-record/4", "hoodie-record/3.5", "hudi-jvm-record/3.5")
IN_PROCESS_LANES = ("hoodie-arrow/4", "hoodie-arrow-new-files/4", "hoodie-arrow-mor/4", "delta-rs")
SPARK_PATH_LANES = (
    "parquet-partitioned",
    "hoodie-record/4",
    "hoodie-workers/4",
    "hoodie-cluster/4",
    "hoodie-mor/4",
    "hoodie-workers-mor/4",
    "hudi-jvm-record/3.5",
)
MERGE_ON_READ_LANES = ("parquet", "hoodie-mor/4", "hoodie-mor/3.5", "hudi-jvm-mor/3.5")

JVM_LANES = ("hudi-jvm-record/3.5", "hudi-jvm-mor/3.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The sizes and repetitions of all parts; with `docs` the tables are written to the pages."""

    work: Path
    results: Path
    docs: bool = False
    summary: Path = SUMMARY
    picture: Path = PICTURE
    life_picture: Path = LIFE_PICTURE
    keys_picture: Path = KEYS_PICTURE
    indexes_picture: Path = INDEXES_PICTURE
    rows: tuple[int, ...] = (1_000_000, 4_000_000)
    repeats: tuple[int, ...] = (3, 1)
    """Repetitions for each size in `rows`."""
    lanes: tuple[str, ...] = ()
    """Only these lanes of the stories; all if empty."""
    record_rows: int = 1_000_000
    record_repeats: int = 3
    merge_on_read_rows: int = 1_000_000
    merge_on_read_repeats: int = 3
    in_process_rows: int = 1_000_000
    in_process_repeats: int = 3
    spark_path_rows: tuple[int, ...] = (1_000_000, 10_000_000)
    spark_path_repeats: tuple[int, ...] = (3, 1)
    merge_memory_rows: tuple[int, ...] = (500_000, 1_000_000, 2_000_000, 4_000_000)
    merged_reads: tuple[tuple[int, float], ...] = ((1_000_000, 0.01), (1_000_000, 0.1), (10_000_000, 0.1))
    """Rows of the tables, and the share of them that has a newer version in logs."""
    merged_reads_rounds: int = 5
    tagging_rows: tuple[int, int] = (1_000_000, 10_000_000)
    tagging_keys: int = 100_000
    tagging_repeats: int = 3
    crossing_entries: tuple[int, ...] = (100_000, 1_000_000)
    crossing_repeats: int = 3
    commits: int = 500
    commits_rows: int = 100_000
    life_commits: int = 1_000
    life_rows: int = 10_000
    durable_rows: int = 1_000_000
    durable_commits: int = 10
    durable_repeats: int = 7
    adopting_rows: int = 10_000_000
    adopting_repeats: int = 3
    version_rows: int = 500_000
    version_upserts: int = 3
    version_repeats: int = 5
    version_instants: int = 50_000
    statistics_rows: int = 1_000_000
    statistics_repeats: int = 7
    many_files: tuple[tuple[int, int], ...] = ((10_000, 2), (100_000, 10))
    """Partitions, and files of each, of the large tables."""
    many_files_repeats: int = 3
    file_sizes_rows: int = 2_000_000
    file_sizes_rounds: int = 3
    surfaces_rows: int = 1_000_000
    surfaces_repeats: int = 2
    hfile_entries: int = 1_000_000
    hfile_repeats: int = 5
    automatic_keys: int = 10_000_000
    automatic_repeats: int = 3
    bloom_keys: int = 1_000_000
    bloom_repeats: int = 5
    index_rows: tuple[int, ...] = (1_000_000, 10_000_000)
    index_rounds: int = 3
    skew_rows: int = 1_000_000
    frames_rows: int = 10_000_000
    frames_repeats: int = 5
    wide_columns: tuple[int, ...] = (10, 100, 1_000, 5_000)
    wide_repeats: int = 3
    locality_rows: int = 2_000_000
    locality_repeats: int = 3
    ingest_rows: int = 1_000_000
    ingest_repeats: int = 3
    ingest_flows: int = 200

    def chosen(self, lanes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the lanes that `self.lanes` contains, or all if it is empty."""
        return tuple(lane for lane in lanes if not self.lanes or lane in self.lanes)


TINY: dict[str, Any] = {
    "ingest_rows": 5_000,
    "ingest_repeats": 1,
    "ingest_flows": 5,
    "rows": (20_000,),
    "repeats": (1,),
    "record_rows": 20_000,
    "record_repeats": 1,
    "merge_on_read_rows": 20_000,
    "merge_on_read_repeats": 1,
    "in_process_rows": 20_000,
    "in_process_repeats": 1,
    "spark_path_rows": (20_000,),
    "spark_path_repeats": (1,),
    "merge_memory_rows": (10_000, 20_000),
    "merged_reads": ((20_000, 0.1),),
    "merged_reads_rounds": 1,
    "statistics_rows": 20_000,
    "statistics_repeats": 1,
    "tagging_rows": (10_000, 20_000),
    "tagging_keys": 1_000,
    "tagging_repeats": 1,
    "crossing_entries": (5_000, 20_000),
    "crossing_repeats": 1,
    "commits": 30,
    "commits_rows": 2_000,
    "life_commits": 60,
    "life_rows": 1_000,
    "durable_rows": 20_000,
    "durable_commits": 3,
    "durable_repeats": 2,
    "adopting_rows": 5_000,
    "adopting_repeats": 1,
    "version_rows": 5_000,
    "version_upserts": 1,
    "version_repeats": 1,
    "version_instants": 1_000,
    "frames_rows": 20_000,
    "frames_repeats": 1,
    "many_files": ((200, 2),),
    "many_files_repeats": 1,
    "file_sizes_rows": 20_000,
    "file_sizes_rounds": 1,
    "surfaces_rows": 20_000,
    "surfaces_repeats": 1,
    "hfile_entries": 20_000,
    "hfile_repeats": 1,
    "automatic_keys": 20_000,
    "automatic_repeats": 1,
    "bloom_keys": 20_000,
    "bloom_repeats": 1,
    "index_rows": (20_000,),
    "index_rounds": 1,
    "skew_rows": 100_000,
    "wide_columns": (10, 40),
    "wide_repeats": 1,
    "locality_rows": 20_000,
    "locality_repeats": 1,
}


def machine() -> dict[str, Any]:
    """Describe the machine of the measurement, and its load before."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.split()[1]) / 2**20, 1),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def commit() -> str | None:
    """Return the commit of the checkout; None where git does not know it."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
