"""The services of the metadata table: what they keep, what they remove, when; commits go on costing the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from hoodie.engine import TaskContext
from hoodie.errors import UnsupportedError
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.service_metadata import CleanerPlan, CleanMetadata
from hoodie.metadata.changes import MetadataChanges
from hoodie.metadata.instants import visible_instants
from hoodie.metadata.kinds.files import FilesKind
from hoodie.metadata.paths import METADATA_HISTORY, partition_folder
from hoodie.metadata.services.archiving import archive_if_due, instants_to_archive, never_archived_from
from hoodie.metadata.services.cleaning import clean_if_due, earliest_to_retain, finish_clean, obsolete_files
from hoodie.metadata.services.compaction import compact_if_due
from hoodie.metadata.services.context import ServiceContext, ServiceLimits
from hoodie.metadata.slices import slices_of
from hoodie.metadata.table import MetadataTable
from hoodie.timeline import Action, Instant, State, Timeline, TimelineArchive
from tests.support.fake_commits import FakeTable

T = TypeVar("T")
R = TypeVar("R")
FOLDER = partition_folder("files")
SMALL = ServiceLimits(delta_commits_to_compact=2, commits_retained=3, commits_kept_min=4, commits_kept_max=6)


def context_of(table: FakeTable, limits: ServiceLimits = SMALL) -> ServiceContext:
    folder = table.metadata_folder
    return ServiceContext(
        folder=folder,
        kinds={"files": FilesKind()},
        table=table.locked,
        metadata_timeline=folder.timeline(),
        limits=limits,
    )


def beside(context: ServiceContext, timeline: Timeline) -> ServiceContext:
    """The same context with another timeline of the data table."""
    return replace(context, table=replace(context.table, timeline=timeline))


def change(table: FakeTable, ours: MetadataTable, count: int = 1) -> None:
    """Delta commits of one file each."""
    for _ in range(count):
        name = f"{table.clock.next_time(table.timeline)}.parquet"
        table.change(ours, MetadataChanges(files_added={"city=sf": {name: 7}}))


def of(timeline: Timeline, action: Action) -> list[Instant]:
    return [found for found in timeline.completed() if found.action is action]


def names(table: FakeTable) -> set[str]:
    return {info.name for info in table.store.list(FOLDER) if not info.name.startswith(".hoodie")}


def log_of(instant_time: str) -> str:
    return f".files-0000-0_{instant_time}.log.1_0-0-0"


def base_of(instant_time: str) -> str:
    return f"files-0000-0_0-0-0_{instant_time}.hfile"


def timeline_of(*texts: str) -> Timeline:
    """`d10-13`: a delta commit requested at 10, completed at 13; `c`: a compaction; without completion: pending."""
    actions = {"d": Action.DELTA_COMMIT, "c": Action.COMMIT}
    instants = []
    for text in texts:
        requested, _, completed = text[1:].partition("-")
        state = State.COMPLETED if completed else State.REQUESTED
        action = actions[text[0]] if completed or text[0] == "d" else Action.COMPACTION
        instants.append(
            Instant(requested_time=requested, action=action, state=state, completion_time=completed or None)
        )
    return Timeline.of(instants)


HISTORY = timeline_of("d10-11", "d12-13", "c14-15", "d16-17", "c18-19", "d20-21", "c22-23", "d24-25")
FILES = [base_of(time) for time in ("14", "18", "22")] + [log_of(time) for time in ("10", "12", "16", "20", "24")]


@pytest.mark.parametrize(
    ("earliest", "gone"),
    [
        ("14", []),
        ("15", [log_of("10"), log_of("12")]),
        ("18", [log_of("10"), log_of("12")]),
        ("20", [log_of("10"), log_of("12"), log_of("16"), base_of("14")]),
        ("99", [log_of("10"), log_of("12"), log_of("16"), log_of("20"), base_of("14"), base_of("18")]),
    ],
)
def test_the_slice_before_the_earliest_stays(earliest: str, gone: list[str]) -> None:
    assert obsolete_files(FILES, HISTORY, {}, earliest) == sorted(gone)


def test_a_log_belongs_to_the_slice_that_was_there_when_it_completed() -> None:
    timeline = timeline_of("d10-11", "d12-16", "c14-15", "d17-18", "c19-20")
    files = [log_of("10"), log_of("12"), base_of("14"), log_of("17"), base_of("19")]
    assert obsolete_files(files, timeline, {}, "19") == [log_of("10")]


def test_logs_of_archived_instants_go_by_what_the_archive_says() -> None:
    timeline = timeline_of("c19-20", "d21-22", "c23-24")
    files = [base_of("10"), log_of("12"), base_of("14"), log_of("15"), base_of("19"), base_of("23")]
    assert obsolete_files(files, timeline, {"12": "13", "15": "16"}, "20") == sorted(files[:4])
    assert obsolete_files(files, timeline, {"12": "13", "15": "25"}, "20") == sorted(files[:3])
    # Nobody knows when they completed.
    assert obsolete_files(files, timeline, {}, "20") == sorted([base_of("10"), base_of("14")])


def test_files_of_pending_instants_stay() -> None:
    timeline = timeline_of("d10-11", "d12", "c14-15", "c16-17", "c18")
    files = [log_of("10"), log_of("12"), base_of("14"), base_of("16"), base_of("18")]
    assert obsolete_files(files, timeline, {}, "99") == sorted([log_of("10"), base_of("14")])


def test_what_is_pending_is_not_passed(table: FakeTable) -> None:
    context = context_of(table)
    full = timeline_of(*(f"d{number}-{number}5" for number in range(10, 20)))
    done = beside(replace(context, metadata_timeline=full), Timeline())
    waiting = beside(done, timeline_of("d13"))
    few = replace(done, metadata_timeline=timeline_of("d10-11", "d12-13", "d14-15"))
    found = [earliest_to_retain(case) for case in (done, waiting, few)]
    assert [instant and instant.requested_time for instant in found] == ["17", "12", None]


def test_replaced_slices_go_once_twenty_commits_came_after(table: FakeTable) -> None:
    ours = table.metadata_table()
    limits = ServiceLimits()
    change(table, ours, limits.delta_commits_to_compact)
    (compaction,) = of(table.metadata_timeline, Action.COMMIT)
    first_slice = {name for name in names(table) if "_0000000000000000" in name}
    assert len(first_slice) == 2
    while sum(found.requested_time > compaction.requested_time for found in context_of(table).completed_commits()) < 20:
        change(table, ours)
        assert first_slice <= names(table)
        assert of(table.metadata_timeline, Action.CLEAN) == []
    change(table, ours)
    (clean,) = of(table.metadata_timeline, Action.CLEAN)
    assert not first_slice & names(table)
    assert base_of(compaction.requested_time) in names(table)
    check_clean(table, clean)
    assert ours.listing(table.timeline) == table.metadata_table().listing(table.timeline)


def check_clean(table: FakeTable, clean: Instant) -> None:
    """The clean's files say what the JVM's would."""
    plan = CleanerPlan.parse(table.metadata_content(clean, State.REQUESTED))
    assert (plan.policy, plan.version) == ("KEEP_LATEST_COMMITS", 2)
    planned = [info.file_path for info in (plan.file_paths_to_be_deleted_per_partition or {})["files"]]
    assert all(path.startswith(table.store.uri(FOLDER)) for path in planned)
    done = CleanMetadata.parse(table.metadata_content(clean))
    assert plan.earliest_instant_to_retain is not None
    assert done.earliest_commit_to_retain == plan.earliest_instant_to_retain.timestamp
    assert done.total_files_deleted == len(planned) > 10
    assert done.partition_metadata["files"].success_delete_files == tuple(path.rpartition("/")[2] for path in planned)


def name_of(instant: Instant | ArchivedInstant) -> str:
    return f"{instant.requested_time}.{instant.action}"


def test_old_instants_move_to_the_archive_and_the_view_of_retained_commits_stays_whole(table: FakeTable) -> None:
    ours = table.metadata_table()
    everything: dict[str, Instant] = {}
    seen: list[tuple[str, ...]] = []
    for _ in range(70):
        change(table, ours)
        timeline = visible_instants(table.metadata_timeline, table.timeline)
        everything |= {name_of(found): found for found in table.metadata_timeline}
        (found,) = slices_of(table.store, FilesKind(), timeline)
        seen.append(tuple(log.name.name for log in found.log_files))
    timeline = table.metadata_timeline
    moved = {name_of(found): found for found in TimelineArchive(table.store, METADATA_HISTORY).instants()}
    assert {found.action for found in timeline} == {Action.COMMIT, Action.DELTA_COMMIT, Action.CLEAN}
    assert moved.keys() | {name_of(found) for found in timeline} == everything.keys()
    assert len(everything) == len(moved) + len(timeline) > 40 + len(timeline)
    assert all(everything[key].completion_time == found.completion_time for key, found in moved.items())
    assert timeline.start is not None
    assert all(key < timeline.start for key in moved)
    assert table.metadata_table().listing(table.timeline) == ours.listing(table.timeline)
    assert {name for logs in seen[-20:] for name in logs} <= names(table)
    _, first, *_ = sorted(found.requested_time for found in moved.values() if found.action == "deltacommit")
    with pytest.raises(UnsupportedError, match="archived"):
        ours.rollback(first, rollback_instant=table.clock.next_time(table.timeline), table=table.locked)


def test_the_archive_waits_for_a_pending_data_instant(table: FakeTable) -> None:
    ours = table.metadata_table()
    change(table, ours, 5)
    pending = table.begin()
    change(table, ours, 60)
    timeline = table.metadata_timeline
    assert timeline.start is not None
    assert timeline.start < pending
    assert not timeline.contains_or_before_start(pending)
    # What its tasks wrote before it reached the metadata table is still nobody's.
    table.store.create(f"{FOLDER}/{log_of(pending)}", b"rows")
    assert table.metadata_table().listing(table.timeline) == ours.listing(table.timeline)
    assert log_of(pending) in names(table)


def test_files_that_nobody_committed_go_before_they_would_be_believed(table: FakeTable) -> None:
    ours = table.metadata_table()
    change(table, ours, 15)
    orphan = table.clock.next_time(table.timeline)
    orphans = {log_of(orphan), base_of(orphan)}
    for name in orphans:
        table.store.create(f"{FOLDER}/{name}", b"rows")
    while not table.metadata_timeline.contains_or_before_start(orphan):
        assert orphans <= names(table)
        change(table, ours)
        assert table.metadata_table().listing(table.timeline) == ours.listing(table.timeline)
    assert not orphans & names(table)


@pytest.fixture
def planned(table: FakeTable) -> ServiceContext:
    """Thirty commits, every fifth of them a compaction."""
    commits = timeline_of(*(f"{'c' if number % 5 == 4 else 'd'}{number}-{number}5" for number in range(10, 40)))
    return beside(replace(context_of(table), metadata_timeline=commits), Timeline())


def archived_of(context: ServiceContext, used: set[str]) -> list[str]:
    return [found.requested_time for found in instants_to_archive(context, context.completed_commits(), used)]


def test_an_instant_stays_as_long_as_its_files_do(planned: ServiceContext) -> None:
    """The first: the base file of a bucket that nothing was written to since the first compaction."""
    expected = [str(number) for number in range(10, 34) if number not in (14, 30, 31)]
    assert archived_of(planned, {"14", "30", "31", "35"}) == expected


def test_nothing_is_archived_before_a_savepoint(planned: ServiceContext) -> None:
    first, later = (
        Instant(requested_time=time, action=Action.SAVEPOINT, state=State.COMPLETED, completion_time=f"{time}5")
        for time in ("10", "15")
    )
    assert archived_of(planned, set()) == [str(number) for number in range(10, 34)]
    assert archived_of(beside(planned, Timeline.of([later])), {"12"}) == ["10", "11", "13", "14"]
    clean = Instant(requested_time="395", action=Action.CLEAN, state=State.COMPLETED, completion_time="396")
    due = replace(planned, metadata_timeline=Timeline.of([*planned.metadata_timeline, clean]))
    assert not archive_if_due(beside(due, Timeline.of([first])))


def test_nothing_is_archived_before_two_compactions_or_without_a_clean(table: FakeTable) -> None:
    limits = replace(SMALL, delta_commits_to_compact=100)
    ours = table.metadata_table()
    change(table, ours, 8)
    context = context_of(table, limits)
    assert not clean_if_due(context)
    assert not archive_if_due(context)


def test_an_empty_clean_request_is_forgotten(table: FakeTable) -> None:
    folder = table.metadata_folder
    folder.request("20270101000000000", Action.CLEAN)
    assert finish_clean(context_of(table))
    assert folder.timeline().get("20270101000000000") is None


def test_a_clean_that_the_jvm_left_pending_is_finished(table: FakeTable) -> None:
    folder = table.metadata_folder
    gone = log_of("20200101000000000")
    table.store.create(f"{FOLDER}/{gone}", b"rows")
    plan = CleanerPlan(policy="KEEP_LATEST_COMMITS", files_to_be_deleted_per_partition={"files": (gone, "missing")})
    folder.request("20270101000000000", Action.CLEAN, plan.to_bytes())
    change(table, table.metadata_table())
    assert gone not in names(table)
    assert folder.timeline().pending().instants == ()


def test_since_when_nothing_is_archived() -> None:
    newest = ServiceLimits().commits_kept_min
    commits = timeline_of(*(f"d{number}-{number}5" for number in range(10, 50)))
    assert never_archived_from(commits) == str(50 - newest)
    assert never_archived_from(timeline_of("d10-11", "d12-13", "d14")) == "10"
    assert never_archived_from(Timeline()) == ""


def test_a_log_compaction_that_the_jvm_left_pending_is_taken_back(table: FakeTable) -> None:
    ours = table.metadata_table()
    change(table, ours, 3)
    before = ours.listing(table.timeline)
    folder = table.metadata_folder
    requested_time = table.clock.next_time(folder.timeline())
    folder.request(requested_time, Action.LOG_COMPACTION, b"plan")
    folder.begin(requested_time, Action.LOG_COMPACTION)
    table.store.create(f"{FOLDER}/{log_of(requested_time)}", b"half a block")
    change(table, ours)
    assert folder.timeline().get(requested_time) is None
    assert log_of(requested_time) not in names(table)
    assert len(ours.listing(table.timeline)["city=sf"]) == len(before["city=sf"]) + 1


def test_limits_come_from_the_stored_properties() -> None:
    assert ServiceLimits.of({}) == ServiceLimits()
    assert ServiceLimits.of({"hoodie.metadata.compact.max.delta.commits": "3"}).delta_commits_to_compact == 3


class RemoteEngine:
    """Runs what arrives at workers that share nothing with the caller."""

    name = "remote"
    parallelism = 1

    def process(self, *arguments: object) -> list[R]:
        raise NotImplementedError

    def run(
        self, function: Callable[[T, TaskContext], R], tasks: Sequence[T], sizes: Sequence[int] | None = None
    ) -> list[R]:
        sent = pickle.loads(pickle.dumps((function, tasks)))
        return [sent[0](task, TaskContext(number, 0, 0)) for number, task in enumerate(sent[1])]


def test_compaction_runs_on_the_engine_for_its_size_whose_workers_open_their_own_store(table: FakeTable) -> None:
    """But not of a partition that is being built: the base file of the build would be older, so that nobody sees it."""
    asked: list[int] = []

    def engine_for(work_bytes: int) -> RemoteEngine:
        asked.append(work_bytes)
        return RemoteEngine()

    ours = table.metadata_table()
    change(table, ours, SMALL.delta_commits_to_compact)
    before = ours.listing(table.timeline)
    logs_bytes = sum(info.size_bytes for info in table.store.list(FOLDER) if ".log." in info.name)
    context = context_of(table)
    context = replace(context, table=replace(context.table, engine_for=engine_for))
    assert not compact_if_due(replace(context, unfinished=frozenset({"files"})))
    assert compact_if_due(context)
    assert len(of(table.metadata_timeline, Action.COMMIT)) == 1
    assert asked == [logs_bytes]
    assert table.metadata_table().listing(table.timeline) == before
