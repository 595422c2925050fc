"""Verify a table: quick from names, lengths and metadata, or full with every row. Nothing is changed.

`t.verify()` and `hoodie verify`. Other writers may run meanwhile. Overdue services are warnings: nothing is wrong yet,
but reads and writes get slower.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hoodie.commit.call import Call
from hoodie.config import compaction, retention
from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import BaseFileName
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.paths import partition_folder
from hoodie.results import Finding, Report, Severity, few_of_each_kind
from hoodie.services.check import kinds
from hoodie.services.check.data_check import check_data
from hoodie.services.check.files_check import (
    KnownFiles,
    file_problems,
    history_problems,
    leftover_problems,
    lock_notes,
    property_problems,
    stage_notes,
)
from hoodie.services.check.kinds import KINDS
from hoodie.services.check.metadata_check import check_metadata_table
from hoodie.services.check.survey import Problem, Survey
from hoodie.services.check.timeline_check import timeline_problems
from hoodie.services.cleaning.partitions import CleanOptions, Policy
from hoodie.services.clustering.clustering import CLUSTERING
from hoodie.services.clustering.plan import PlanLimits, small_files
from hoodie.services.clustering.schedule import is_clusterable
from hoodie.services.compaction.compaction import COMPACTION
from hoodie.services.planned.claim import RunState, runner_of
from hoodie.timeline import Action, parse_instant_time

_TRIES = 3
_UNREADABLE = (kinds.METADATA_MISSING, kinds.METADATA_DAMAGED)


@dataclass(frozen=True)
class Checked:
    """All problems of a table, and what was looked at. `notes`: what was not checked, and why."""

    survey: Survey
    problems: tuple[Problem, ...] = field(repr=False)
    counts: dict[str, int]
    notes: tuple[str, ...] = ()


def verify(call: Call, *, full: bool = False) -> Report:
    """Check a table and report what is wrong, left over or overdue; each finding names the command that mends it.

    Quick: the properties, the timeline and its archive, the listing, names and lengths of all files, and the backlog of
    services. It reads each commit of the active timeline, opens the files of the metadata table, and reads no data.
    Full: also every base file, log file and key, and the record index, on the engine of the table. Memory of a task:
    see `data_check`.

    Raises: TableNotFoundError, UnsupportedError; CorruptFileError if neither the properties nor their backup are whole.
    """
    started = time.perf_counter()
    table = call.state.store.uri("")
    checked = check(call, full=full)
    counts: dict[Severity, Counter[str]] = {severity: Counter() for severity in Severity}
    for problem in checked.problems:
        counts[problem.kind.severity][problem.kind.name] += 1
    return Report(
        subject=table,
        checked=checked.counts,
        problems=_in_order(counts[Severity.ERROR]),
        warnings=_in_order(counts[Severity.WARNING]),
        findings=few_of_each_kind(_finding(one, table) for one in _sorted(checked.problems)),
        notes=checked.notes,
        seconds=time.perf_counter() - started,
    )


def check(call: Call, *, full: bool = False, now_ms: int | None = None) -> Checked:
    """Find all problems; after errors of a table that changed meanwhile, check again and keep what is found each time.

    Raises: as `verify`.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    found = _checked(call, full=full, now_ms=now_ms)
    errors = _errors(found.problems)
    for _ in range(_TRIES - 1):
        if not errors or not found.survey.has_changed():
            break
        found = _checked(call, full=full, now_ms=now_ms)
        errors &= _errors(found.problems)
    doubtful = _errors(found.problems) - errors
    if not doubtful:
        return found
    note = f"{len(doubtful):,} findings are left out, as the table changed during the check: check again to be sure"
    kept = tuple(problem for problem in found.problems if _identity(problem) not in doubtful)
    return replace(found, problems=kept, notes=(*found.notes, note))


def quick_problems(survey: Survey) -> tuple[Problem, ...]:
    """Return the problems of the metadata table and of the files, without reading data."""
    metadata = check_metadata_table(survey)
    try:
        known = KnownFiles.of(survey, metadata.listing, metadata.commits)
    except CorruptFileError:
        return metadata.problems
    return (*metadata.problems, *file_problems(survey, known))


def _checked(call: Call, *, full: bool, now_ms: int) -> Checked:
    notes: list[str] = []
    problems = list(property_problems(call.state.store))
    survey = Survey.of(call.state)
    counts = {"instants": len(survey.timeline), "files": len(survey.data_files)}
    problems += timeline_problems(survey)
    metadata = check_metadata_table(survey)
    problems += metadata.problems
    try:
        known = KnownFiles.of(survey, metadata.listing, metadata.commits)
    except CorruptFileError as error:
        notes.append(f"files were not compared with commits, as the archived timeline is damaged: {error}")
    else:
        problems += file_problems(survey, known)
        problems += history_problems(survey, known)
        problems += overdue_problems(survey, known.slices)
        if full:
            is_whole = not any(problem.kind in _UNREADABLE for problem in metadata.problems)
            data = check_data(call, survey, known.slices, reads_index=is_whole)
            problems += data.problems
            counts["rows"] = data.rows
            notes += data.notes
    problems += leftover_problems(survey, now_ms=now_ms)
    notes += stage_notes(survey, now_ms=now_ms)
    notes += lock_notes(survey, call.properties, now_ms=now_ms)
    return Checked(survey, tuple(problems), counts, tuple(notes))


def _errors(problems: Iterable[Problem]) -> set[tuple[str, str, str | None]]:
    return {_identity(one) for one in problems if one.kind.severity is Severity.ERROR}


def _identity(problem: Problem) -> tuple[str, str, str | None]:
    return problem.kind.name, problem.key, problem.found


def _finding(problem: Problem, table: str) -> Finding:
    kind = problem.kind
    return Finding(
        kind=kind.name,
        key=problem.key,
        expected=problem.expected,
        found=problem.found,
        severity=kind.severity,
        remedy=kind.remedy_for(table, problem.key),
    )


def _sorted(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield errors before warnings, each in the order of the kinds."""
    places = {name: place for place, name in enumerate(KINDS)}
    severities = list(Severity)
    yield from sorted(problems, key=lambda one: (severities.index(one.kind.severity), places[one.kind.name]))


def _in_order(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in KINDS if counts[name]}


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
    commits_max = retention.KEEP_COMMITS_MAX.get(survey.view.config.raw)
    if completed > _LATE * commits_max:
        active = f"{completed} completed writes on the active timeline"
        yield Problem(kinds.ARCHIVING_OVERDUE, "timeline", f"at most {commits_max}", active)
    yield from _sizes(survey, slices)
    for info in survey.directly_in(partition_folder(RecordIndexKind().name)):
        if info.size_bytes > _BUCKET_BYTES_MAX:
            yield Problem(kinds.INDEX_SKEW, info.path, f"at most {_BUCKET_BYTES_MAX} bytes", f"{info.size_bytes} bytes")


def _compactions(survey: Survey, slices: Sequence[FileSlice], now_seconds: float) -> Iterator[Problem]:
    view = survey.view
    limit = _LATE * compaction.COMPACT_DELTA_COMMITS.get(view.config.raw)
    long = [len(found.log_files) for found in slices if len(found.log_files) >= limit]
    if long:
        backlog = f"{len(long)} file slices have up to {max(long)} log files"
        yield Problem(kinds.COMPACTION_OVERDUE, "file slices", f"fewer than {limit} log files", backlog)
    for instant in (*COMPACTION.pending_plans(view), *CLUSTERING.pending_plans(view)):
        age = now_seconds - parse_instant_time(instant.requested_time, view.layout.zone).timestamp()
        if age >= _WAITING_SECONDS and runner_of(view, instant).state is not RunState.RUNNING:
            kind = kinds.CLUSTERING_WAITING if instant.action is Action.CLUSTERING else kinds.PLAN_WAITING
            yield Problem(kind, instant.requested_time, found=f"{instant.action} for {age / 3600:.0f} h")


def _versions(survey: Survey) -> Iterator[Problem]:
    """Compare the versions of file groups with those that a clean keeps; hours keep any number of them."""
    try:
        options = CleanOptions.of(survey.view.config.raw)
    except InvalidConfigError:
        return  # the options contradict each other; each clean raises this error
    if options.policy is Policy.HOURS:
        return
    versions = Counter(
        (partition_path, parsed.file_id)
        for partition_path, _, parsed in survey.data_files.values()
        if isinstance(parsed, BaseFileName)
    )
    limit = _LATE * options.retained
    many = [count for count in versions.values() if count > limit]
    if many:
        backlog = f"{len(many)} file groups have up to {max(many)} versions"
        yield Problem(kinds.CLEANING_OVERDUE, "file groups", f"at most {limit} versions", backlog)


def _sizes(survey: Survey, slices: Sequence[FileSlice]) -> Iterator[Problem]:
    """Find file groups of unequal or small sizes; a clustering mends both, so that none are found without it."""
    if not is_clusterable(survey.view):
        return
    by_partition: dict[str, list[int]] = {}
    for found in slices:
        by_partition.setdefault(found.partition_path, []).append(found.size_bytes)
    small = small_files(slices, limits=PlanLimits.of(survey.view.config.raw))
    if small.is_advised:
        yield Problem(kinds.SMALL_FILES, ", ".join(small.partitions[:3]) or "table", found=str(small))
    for partition_path, sizes in by_partition.items():
        median = statistics.median(sizes)
        if len(sizes) >= _FEW_SLICES and max(sizes) > max(_SKEW_TIMES * median, _SKEW_BYTES_MIN):
            largest = f"a file group of {max(sizes)} bytes"
            yield Problem(kinds.SKEW, partition_path, f"about {median:.0f} bytes", largest)
