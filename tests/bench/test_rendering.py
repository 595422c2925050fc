"""What the benchmark makes of figures: tables, ratios, sections of pages. Nothing is measured here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from bench import (
    automatic_keys,
    bloom,
    commit_requests,
    commits,
    file_sizes,
    indexes,
    many_files,
    merged_reads,
    skew,
    summary,
    tagging,
)
from bench.markdown import put_section, seconds_text
from bench.settings import IN_PROCESS_LANES, MERGE_ON_READ_LANES, RECORD_LANES, Settings
from bench.table import render, render_record, render_spark_path

MACHINE = {"cores": 2, "memory_gib": 23.5, "when": "2026-11-21T17:11:03+00:00", "commit": "1a2b3c4d"}


def _lane(label: str, seconds: dict[str, list[float]]) -> dict[str, Any]:
    medians = {step: sorted(values)[len(values) // 2] for step, values in seconds.items()}
    return {"lane": label, "seconds": seconds, "medians": medians, "memory": {}, "size_mib": 3.2}


def _story(*lanes: dict[str, Any]) -> dict[str, Any]:
    return {"machine": MACHINE, "rows": 1_000, "repeats": 3, "lanes": list(lanes)}


def _steps(took: float, *names: str) -> dict[str, list[float]]:
    steps = ("bulk_insert", "upsert", "commit_100", "late_100", "snapshot", "incremental", *names)
    return {step: [took, took / 2, took * 2] for step in steps}


def test_a_story_shows_medians_with_their_range_and_ratios_to_floor_and_jvm() -> None:
    floor = _lane("parquet", {"bulk_insert": [1.0], "snapshot": [1.0]})
    text = render(_story(floor, _lane("hoodie/4", _steps(2.0)), _lane("hudi-jvm/3.5", _steps(9.0))))
    assert "2 cores, 23.5 GiB, 2026-11-21, commit 1a2b3c4d: seconds" in text
    assert "| hoodie/4 | 2.00 (1.00-4.00) |" in text
    assert "| parquet | 1.00 | - | - | - | 1.00 | - |" in text
    assert "- hoodie/4 against plain Parquet: bulk_insert 2.00x, snapshot 2.00x its time" in text
    assert "- hoodie/4 against JVM Hudi: bulk_insert 4.5x, upsert 4.5x" in text


def test_the_record_story_shows_look_ups_and_phases() -> None:
    phases = {"upsert.tag": [0.25], "upsert.index": [0.125], "bulk_insert.index": [0.5]}
    ours = _lane("hoodie-record/4", _steps(1.0, "keys_3") | phases)
    text = render_record(_story(ours, _lane("hudi-jvm-record/3.5", _steps(8.0, "keys_3"))))
    assert "| 0.25 | 0.12 | 0.50 | - | 3 |" in text
    assert "upsert 8.0x" in text
    assert "keys_3 8.0x faster" in text


def test_the_spark_path_shows_ratios_to_the_driver_and_the_memory_of_both() -> None:
    memory = {
        "bulk_insert": {"driver_mib": 300.0, "worker_mib": 410.0},
        "upsert": {"driver_mib": 350.0, "worker_mib": 1.0},
    }
    workers = _lane("hoodie-workers/4", _steps(3.0)) | {"memory": memory}
    text = render_spark_path(
        _story(_lane("hoodie-record/4", _steps(2.0)), workers, _lane("hudi-jvm-record/3.5", _steps(9.0)))
    )
    assert "- hoodie-workers/4: bulk_insert 1.50x, upsert 1.50x" in text
    assert "- hoodie-workers/4 against JVM Hudi: bulk_insert 3.0x" in text
    assert "- hoodie-workers/4: peak of the driver's Python 350 MiB, of the largest worker 410 MiB" in text


def test_lanes_alone_have_no_ratios() -> None:
    assert "against" not in render(_story(_lane("hoodie/4", _steps(2.0))))
    assert "against" not in render_record(_story(_lane("hoodie-record/4", _steps(2.0))))


def test_tagging_has_a_column_for_each_size_and_their_ratio() -> None:
    def size(rows: int, took: float) -> dict[str, Any]:
        phases = {"tag": took, "total": 5 * took}
        memory = {"keys": 100, "before_mib": 90.0, "grown_mib": 30.0, "cache_mib": 256.0, "task_mib": 2.5, "threads": 2}
        return {
            "rows": rows,
            "build": {"seconds": {"total": 9.0, "index": 1.0}, "index_mib": 4.0},
            "look_up": [{"import": 0.5, "cold": took, "warm": [took / 2, took / 4]}],
            "tag": [{"cold": phases, "warm": phases}],
            "memory": memory | {"bound_mib": 261.0},
        }

    sizes = [size(1_000, 1.0), size(10_000, 1.5)]
    text = tagging.render({"machine": MACHINE, "keys": 100, "repeats": 1, "sizes": sizes})
    assert "| tag 100 keys, warm | 1.00 | 1.50 | 1.5x |" in text
    assert "30 MiB at most on top of the 90 MiB it has before; bound 261 MiB" in text


def test_commits_compares_the_first_window_with_the_last() -> None:
    phases = ("total", "stage", "tag", "write", "index", "commit")
    seconds = [dict.fromkeys(phases, 1.0 if number <= 20 else 1.5) for number in range(1, 41)]
    files = {str(end): {"metadata_files": end, "metadata_mib": end / 2, "timeline_files": 3 * end} for end in (20, 40)}
    sizes = {"rows": 10, "commits": 40, "type": "merge_on_read"}
    text = commits.render({"machine": MACHINE, "seconds": seconds, "files": files} | sizes)
    assert "10 rows, merge-on-read, 40 commits" in text
    assert "|  | #10 to #20 | #30 to #40 | ratio |" in text
    assert "| total, median seconds | 1.000 | 1.500 | 1.50x |" in text
    assert "| files in .hoodie/metadata | 20 | 40 | 2.00x |" in text


def test_only_the_named_section_of_a_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    sections = "".join(f"<!-- bench:{name}:begin -->\nold {name}\n<!-- bench:{name}:end -->\n" for name in ("a", "b"))
    page.write_text(f"above\n{sections}below\n")
    put_section(page, "b", "new\n\n")
    assert page.read_text() == f"above\n{sections}below\n".replace("old b", "new")


def test_a_page_without_the_section_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n")
    with pytest.raises(ValueError, match="bench:a:begin"):
        put_section(page, "a", "new")
    assert page.read_text() == "text\n"


def test_seconds_have_a_range_only_if_there_are_several() -> None:
    assert seconds_text([0.5]) == "0.50"
    assert seconds_text([0.02, 0.5, 0.3, 0.4]) == "0.35 (0.020-0.50)"


def test_automatic_keys_show_bytes_of_a_key_and_the_figures_of_the_document() -> None:
    sizes = {"none": 2750, "snappy": 500, "gzip": 250, "zstd": 125}
    form = {"bytes": sizes, "seconds": [0.5], "example": "1_2_3"}
    forms = {automatic_keys.ORIGINAL: form, "UUID v4": form}
    text = automatic_keys.render({"machine": MACHINE, "rows": 100, "repeats": 1, "forms": forms})
    assert f"| {automatic_keys.ORIGINAL}: `1_2_3` | 27.50 | 5.00 | 2.50 | 1.25 | 0.50 | 40.0 | 2.4 | 1 |" in text
    assert "| UUID v4: `1_2_3` | 27.50 | 5.00 | 2.50 | 1.25 | 0.50 | - | - | - |" in text


def test_bloom_filters_are_compared_with_the_jvm() -> None:
    ours = {"seconds": {"SIMPLE build": [0.5]}, "found": {"SIMPLE": 500}}
    theirs = {"seconds": {"SIMPLE build": [1.0]}, "found": {"SIMPLE": 500}}
    text = bloom.render({"machine": MACHINE, "keys": 1_000, "repeats": 1, "hoodie": ours, "jvm": theirs})
    assert "| SIMPLE build | 0.50 | 1.00 | 2.0x |" in text
    assert "500 by SIMPLE, the same on both sides" in text


def test_indexes_show_both_sides_and_the_files_that_were_read() -> None:
    def found(kind: str) -> dict[str, Any]:
        return {
            "rows": 1_000_000,
            "kind": kind,
            "files": {"bloom": 40, "bucket": 50},
            "hoodie": {"bloom": {"seconds": [0.5], "files_read": 2}, "hbase": {"seconds": [2.0]}},
            "jvm": {"bloom": {"seconds": [9.0, 1.0]}},
        }

    tables = [found("random"), found("time-ordered")]
    text = indexes.render({"machine": MACHINE, "keys": 100, "rounds": 1, "tables": tables})
    assert "| `bloom` | 0.50 | 1.00 | 2.0x | 2 | 0.50 | 1.00 | 2.0x | 2 |" in text
    assert "| `hbase` | 2.00 | - | - | - | 2.00 | - | - | - |" in text
    assert "1,000,000 random keys: 40 files, with buckets 50" in text


def test_skew_shows_the_longest_task_of_each_number_of_threads() -> None:
    def found(seconds: float) -> dict[str, Any]:
        return {"seconds": seconds, "tasks": [[1_000, 0.25], [3_000, 0.5], [2_000, 0.25]]}

    sides = {"threads 1": found(1.5), "threads 2": found(0.75), "jvm": {"seconds": [9.0, 8.0]}}
    text = skew.render({"machine": MACHINE, "rows": 6_000, "files": 20, "hot": 8} | sides)
    assert "| hoodie, 2 threads | 0.75 | 1.00 | 0.25 | 0.50 | 3 |" in text
    assert "| JVM Hudi 1.2.0 on Spark, 2 cores | 8.00 |" in text
    assert "8 of 20 files" in text
    assert "6,000 comparisons, the largest task has 3,000" in text


def test_many_files_have_a_column_for_each_table_and_their_ratio() -> None:
    def figures(partitions: int, took: float) -> dict[str, Any]:
        steps = ("open", "plan_one", "read_one", "upsert", "plan_all")
        return {
            "partitions": partitions,
            "files": 10,
            "generated_seconds": took,
            "seconds": {step: [took, 2 * took, took / 2] for step in steps},
            "requests": dict.fromkeys(steps, 12),
            "plan_mib": 1024 * took,
        }

    result = {"machine": MACHINE, "repeats": 3, "tables": [figures(10, 0.5), figures(100_000, 2.0)]}
    text = many_files.render(result)
    assert "| seconds; storage requests | 100 files | 1,000,000 files | last / first |" in text
    assert "| plan of one partition | 0.50 (0.25-1.00); 12 | 2.00 (1.00-4.00); 12 | 4.00x |" in text
    assert "| memory of the plan of the whole table | 512 MiB | 2,048 MiB |  |" in text


def test_a_made_up_table_lists_its_files_and_reads_its_real_partition(tmp_path: Path) -> None:
    many_files.make_table(tmp_path / "t", 30, 3)
    table = hoodie.open(tmp_path / "t", spark=False)
    assert table.explain().all_file_slices == 30 * 3 + 1
    assert table.to_arrow(where="p = 'real'").num_rows == 10_000
    table.upsert(pa.table({"id": ["k1"], "v": [7], "p": ["real"]}))
    assert table.to_arrow(where="p = 'real' AND v = 7")["id"].to_pylist() == ["k1"]


def test_file_sizes_have_a_row_for_each_way_and_their_ratio() -> None:
    def figures(files: int, worked: float) -> dict[str, Any]:
        seconds = {"seconds": [9.0], "cpu_seconds": [worked, worked + 1, worked - 1], "read_seconds": [0.5]}
        return {"files": files, "median_mib": 120 / files, **seconds}

    ways = {
        "plain Parquet, written by Spark": figures(160, 8.0),
        "none": figures(160, 10.0),
        "partition": figures(10, 9.0),
    }
    text = file_sizes.render({"machine": MACHINE, "rows": 2_000_000, "rounds": 3, "ways": ways})
    assert "Bulk insert of 2,000,000 rows" in text
    assert "| `distribution='partition'` | 10 | 12.0 | 9.00 | 9.00 (8.00-10.00) | 0.90x | 0.50 |" in text


def test_merged_reads_have_ratios_to_plain_parquet_and_to_the_jvm() -> None:
    queries = ("count by city", "sum of a column", "condition on a column", "all columns")

    def took(**engines: float) -> dict[str, Any]:
        return {engine: {query: [seconds] for query in queries} for engine, seconds in engines.items()}

    ours = took(**{"parquet": 1.0, "hoodie-first": 2.0, "hoodie": 1.5})
    size = {"rows": 1_000_000, "share": 0.1, "4": ours, "3.5": took(parquet=1.0, jvm=6.0)}
    text = merged_reads.render({"machine": MACHINE, "rounds": 3, "sizes": [size]})
    assert "| 1,000,000 rows, 10% in logs: all columns | 1.00 | 2.00 | 2.00x | 1.50 | 1.50x | 6.00 | 4.0x |" in text


def test_requests_have_a_row_for_each_area_and_its_goal() -> None:
    counts = {"copy_on_write, local": {"lock": 16, "data": 12}, "copy_on_write, S3": {"lock": 8, "other": 1}}
    text = commit_requests.render({"machine": MACHINE, "rows": 1_000, "counts": counts})
    assert "| requests | copy-on-write, local | copy-on-write, S3 | goal | for |" in text
    assert f"| lock | 16 | 8 | {commit_requests.GOALS['lock'][0]} |" in text
    assert "| other | 0 | 1 | 0 |" in text
    assert "| all | 28 | 9 |" in text


def test_the_requests_of_a_commit_are_counted_by_what_they_are_for(tmp_path: Path) -> None:
    counts = commit_requests.run(Settings(work=tmp_path, results=tmp_path))["counts"]
    assert len(counts) == 4
    for name, found in counts.items():
        assert found["data"] >= 4, name
        assert found["markers"] >= 4, name
        assert found["metadata table"] > found["timeline"] > 3, name
        assert "staging" not in found, "few rows are staged in memory"
        assert ("deletions in S3" in found) == name.endswith("S3")


def test_the_summary_divides_the_times_of_others_by_ours_and_needs_three_stories(tmp_path: Path) -> None:
    settings = Settings(work=tmp_path, results=tmp_path)

    def put(name: str, *lanes: dict[str, Any]) -> None:
        (tmp_path / f"{name}-1000000.json").write_text(json.dumps(_story(*lanes)))

    parquet = _lane("parquet-partitioned", {"bulk_insert": [1.0], "snapshot": [1.0]})
    put("record", parquet, _lane("hoodie-record/4", _steps(2.0, "keys_3")), _lane("hudi-jvm-record/3.5", _steps(9.0)))
    logs = ("snapshot_logs", "compact")
    plain, theirs = _lane("parquet", {"snapshot": [1.0]}), _lane("hudi-jvm-mor/3.5", _steps(6.0, *logs))
    put("merge-on-read", plain, _lane("hoodie-mor/4", _steps(4.0, *logs)), theirs)
    with pytest.raises(SystemExit, match="in-process"):
        summary.summed(settings)
    put(
        "in-process",
        _lane("hoodie-arrow/4", _steps(2.0)),
        _lane("hoodie-arrow-mor/4", _steps(1.0)),
        _lane("delta-rs", _steps(1.0)),
    )
    picture, lines = (part.splitlines() for part in summary.render(summary.summed(settings)).split("\n\n"))
    assert next(line for line in picture if line.startswith("upsert ")).endswith("█ 4.5")
    assert sum(len(line.partition("█")[2]) > 40 for line in picture) == 4
    assert len(lines) == 5
    assert "4.5x (bulk insert), 4.5x (upsert), 4.5x (100 rows), 4.5x (snapshot) as long" in lines[0]
    assert "1.5x (upsert, merge-on-read), 1.5x (snapshot, 10% in logs), 1.5x (compaction)" in lines[1]
    assert "0.5x (bulk insert)" in lines[2]
    assert "1.0x (upsert, merge-on-read)" in lines[2]
    assert "0.2x (snapshot, 10% in logs)" in lines[3]


PARTS_MODULE: Any = importlib.import_module("bench.parts")
"""Not by `import`, as some of what it imports has no types."""


def test_the_headline_has_what_the_summary_needs() -> None:
    parts = PARTS_MODULE.PARTS
    assert sum(part.headline or 0 for part in parts) <= 20
    assert {"record", "merge-on-read", "in-process", "summary"} <= {p.name for p in parts if p.headline is not None}
    assert set(PARTS_MODULE.HEADLINE_LANES) <= {*RECORD_LANES, *MERGE_ON_READ_LANES, *IN_PROCESS_LANES}


def test_results_belong_to_one_part() -> None:
    names = [
        "record-1000000",
        "merge-on-read-1000000",
        "merge-memory",
        "commits",
        "commits-logs",
        "spark-path-10000000",
    ]
    found = [[part.name for part in PARTS_MODULE.PARTS if part.names(name)] for name in names]
    assert found == [["record"], ["merge-on-read"], ["merge-memory"], ["commits"], ["commits-logs"], ["spark-path"]]
