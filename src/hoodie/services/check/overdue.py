"""Find services that are overdue: nothing is wrong yet, but reads and writes get slower."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from hoodie import config as options
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import BaseFileName
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.metadata.places import partition_folder
from hoodie.services.check import kinds
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.clustering.advice import small_files
from hoodie.services.clustering.planned import CLUSTERING
from hoodie.services.clustering.settings import PlanLimits
from hoodie.services.compaction.planned import COMPACTION
from hoodie.services.planned.claim import RunState, runner_of
from hoodie.timeline import Action, parse_instant_time

_LATE = 2
"""A service is overdue when its backlog is twice what makes it due: then it does not run, or cannot keep up."""
_WAITING_SECONDS = 24 * 3600
_FEW_SLICES = 10
_SKEW_TIMES = 8
_SKEW_BYTES_MIN = 512 * 1024 * 1024
_BUCKET_BYTES_MAX = 1024 * 1024 * 1024
"""Default of `hoodie.metadata.record.index.max.filegroup.size`."""


def overdue_problems(
    survey: Survey, slices: Sequence[FileSlice], *, now_seconds: float | None = None
) -> Iterator[Problem]:
    """Compare the backlog of each service with twice its limit. `slices` are the newest file slices."""
    yield from _compactions(survey, slices, time.time() if now_seconds is None else now_seconds)
    yield from _versions(survey)
    completed = len(survey.timeline.writes().completed())
    commits_max = options.KEEP_COMMITS_MAX.get(survey.view.config.raw)
    if completed > _LATE * commits_max:
        told = f"{completed} completed writes on the active timeline"
        yield Problem(kinds.ARCHIVING_OVERDUE, "timeline", f"at most {commits_max}", told)
    yield from _sizes(survey, slices)
    for info in survey.directly_in(partition_folder(RECORD_INDEX)):
        if info.size_bytes > _BUCKET_BYTES_MAX:
            yield Problem(kinds.INDEX_SKEW, info.path, f"at most {_BUCKET_BYTES_MAX} bytes", f"{info.size_bytes} bytes")


def _compactions(survey: Survey, slices: Sequence[FileSlice], now_seconds: float) -> Iterator[Problem]:
    view = survey.view
    limit = _LATE * options.COMPACT_DELTA_COMMITS.get(view.config.raw)
    long = [len(found.log_files) for found in slices if len(found.log_files) >= limit]
    if long:
        told = f"{len(long)} file slices have up to {max(long)} log files"
        yield Problem(kinds.COMPACTION_OVERDUE, "file slices", f"fewer than {limit} log files", told)
    for instant in (*COMPACTION.pending_plans(view), *CLUSTERING.pending_plans(view)):
        age = now_seconds - parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        if age >= _WAITING_SECONDS and runner_of(view, instant).state is not RunState.RUNNING:
            kind = kinds.CLUSTERING_WAITING if instant.action is Action.CLUSTERING else kinds.PLAN_WAITING
            yield Problem(kind, instant.requested_time, found=f"{instant.action} for {age / 3600:.0f} h")


def _versions(survey: Survey) -> Iterator[Problem]:
    versions = Counter(
        (partition_path, parsed.file_id)
        for partition_path, _, parsed in survey.data_files.values()
        if isinstance(parsed, BaseFileName)
    )
    limit = _LATE * options.CLEAN_COMMITS_RETAINED.get(survey.view.config.raw)
    many = [count for count in versions.values() if count > limit]
    if many:
        told = f"{len(many)} file groups have up to {max(many)} versions"
        yield Problem(kinds.CLEANING_OVERDUE, "file groups", f"at most {limit} versions", told)


def _sizes(survey: Survey, slices: Sequence[FileSlice]) -> Iterator[Problem]:
    by_partition: dict[str, list[int]] = {}
    for found in slices:
        by_partition.setdefault(found.partition_path, []).append(found.size_bytes)
    small = small_files(slices, limits=PlanLimits.of(survey.view.config.raw))
    if small.is_advised:
        yield Problem(kinds.SMALL_FILES, ", ".join(small.partitions[:3]) or "table", found=str(small))
    for partition_path, sizes in by_partition.items():
        median = statistics.median(sizes)
        if len(sizes) >= _FEW_SLICES and max(sizes) > max(_SKEW_TIMES * median, _SKEW_BYTES_MIN):
            told = f"a file group of {max(sizes)} bytes"
            yield Problem(kinds.SKEW, partition_path, f"about {median:.0f} bytes", told)
