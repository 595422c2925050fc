"""Which files hold a table's rows as of an instant; all slices of a file group."""

from __future__ import annotations

from dataclasses import replace

from hoodie.files.slices import latest_slices, logs_in_doubt, slice_histories
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action, Instant, State, Timeline


def instant(time: int, *, state: State = State.COMPLETED, completed: int | None = None) -> Instant:
    done = None if state is not State.COMPLETED else str(completed if completed is not None else time + 1)
    return Instant(requested_time=str(time), action=Action.COMMIT, state=state, completion_time=done)


def base(file_id: str, time: int, token: str = "0-1-0") -> str:
    return f"{file_id}_{token}_{time}.parquet"


def log(file_id: str, time: int, version: int = 1) -> str:
    return f".{file_id}_{time}.log.{version}_0-1-0"


def timeline(*instants: Instant) -> Timeline:
    return Timeline.of(instants)


def names(
    listing: dict[str, dict[str, int]], on: Timeline, as_of: int | None = None, **replaced: set[str]
) -> list[str]:
    found = latest_slices(
        listing, on, replaced, as_of=None if as_of is None else f"{as_of:03d}", version=TableVersion.NINE
    )
    return [slice_.base_file.name if slice_.base_file else "-" for slice_ in found]


FILES = {"p": {base("f", 100): 1, base("f", 200): 2, base("f", 300): 3, base("g", 200): 4, "other.txt": 5}}


def test_the_newest_committed_base_file_of_each_group() -> None:
    assert names(FILES, timeline(instant(100), instant(200), instant(300))) == [base("f", 300), base("g", 200)]


def test_files_of_pending_and_unknown_instants_are_not_seen() -> None:
    pending = timeline(instant(100), instant(200), instant(300, state=State.INFLIGHT))
    assert names(FILES, pending) == [base("f", 200), base("g", 200)]
    assert names(FILES, timeline(instant(100), instant(300))) == [base("f", 300)]
    assert names(FILES, timeline()) == []


def test_files_older_than_the_timeline_were_archived() -> None:
    assert names(FILES, timeline(instant(250))) == [base("f", 200), base("g", 200)]


def test_as_of_is_inclusive() -> None:
    on = timeline(instant(100), instant(200), instant(300))
    assert names(FILES, on, 99) == []
    assert names(FILES, on, 100) == [base("f", 100)]
    assert names(FILES, on, 299) == [base("f", 200), base("g", 200)]
    assert names(FILES, on, 300) == [base("f", 300), base("g", 200)]


def test_replaced_file_groups_are_gone_in_their_partition_only() -> None:
    on = timeline(instant(100), instant(200), instant(300))
    both = {**FILES, "q": {base("f", 100): 1}}
    assert names(both, on, p={"f"}) == [base("g", 200), base("f", 100)]
    assert names(both, on, q={"f"}, p={"g"}) == [base("f", 300)]


def test_sorted_by_partition_and_file_id() -> None:
    on = timeline(instant(100))
    listing = {"z": {base("a", 100): 1}, "a": {base("z", 100): 1, base("b", 100): 1}, "": {base("m", 100): 1}}
    found = latest_slices(listing, on, {}, version=TableVersion.NINE)
    assert [(slice_.partition_path, slice_.file_id) for slice_ in found] == [
        ("", "m"),
        ("a", "b"),
        ("a", "z"),
        ("z", "a"),
    ]
    assert next(slice_.base_file.path for slice_ in found if slice_.base_file) == base("m", 100)


SIX, NINE = TableVersion.SIX, TableVersion.NINE
Listing = list[str]


def slice_of(
    files: Listing, on: Timeline, as_of: int | None = None, version: TableVersion = NINE
) -> tuple[str, list[str]]:
    """The instant of the only slice, and the instant and number of each of its log files."""
    moment = None if as_of is None else str(as_of)
    (found,) = latest_slices({"p": dict.fromkeys(files, 1)}, on, {}, as_of=moment, version=version)
    assert found.size_bytes == len(found.paths)
    return found.base_instant_time, [f"{each.name.instant_time}.{each.name.version}" for each in found.log_files]


def test_log_files_belong_to_the_slice_they_complete_after() -> None:
    on = timeline(instant(100), instant(150), instant(200), instant(250), instant(260, state=State.INFLIGHT))
    files = [base("f", 100), log("f", 150), base("f", 200), log("f", 250), log("f", 260)]
    assert slice_of(files, on) == ("200", ["250.1"])
    assert slice_of(files, on, 160) == ("100", ["150.1"])


def test_a_log_written_while_a_base_file_was_made_belongs_to_that() -> None:
    on = timeline(instant(100), instant(150, completed=220), instant(200, completed=210))
    assert slice_of([base("f", 100), base("f", 200), log("f", 150)], on) == ("200", ["150.1"])


def test_a_file_group_of_log_files_only() -> None:
    logs = [log("f", 150), log("f", 100), log("f", 150, 2)]
    assert slice_of(logs, timeline(instant(100), instant(150))) == ("100", ["100.1", "150.1", "150.2"])


def test_logs_of_a_pending_compaction_belong_to_the_slice_before() -> None:
    on = timeline(instant(100), instant(150), instant(200, state=State.INFLIGHT), instant(250))
    assert slice_of([base("f", 100), log("f", 150), base("f", 200), log("f", 250)], on) == ("100", ["150.1", "250.1"])
    # In version 6 the names of the log files name it.
    on = timeline(instant(100), instant(200, state=State.REQUESTED), instant(250))
    files = [base("f", 100), log("f", 100), base("f", 200), log("f", 200)]
    assert slice_of(files, on, version=SIX) == ("100", ["100.1", "200.1"])


def test_as_of_a_time_before_a_compaction_finds_the_older_base_file_and_its_logs() -> None:
    on = timeline(instant(100), instant(150), instant(160, completed=220), instant(200, completed=230), instant(250))
    files = [base("f", 100), log("f", 150), log("f", 160), base("f", 200), log("f", 250)]
    assert slice_of(files, on, 199) == ("100", ["150.1", "160.1"])
    # The compaction did not see the log that completed after it was begun.
    assert slice_of(files, on, 200) == ("200", ["160.1"])


def test_logs_of_change_records_are_no_part_of_a_slice() -> None:
    assert slice_of([base("f", 100), log("f", 100) + ".cdc"], timeline(instant(100))) == ("100", [])


def test_version_6_log_files_name_the_slice_that_they_extend_whoever_wrote_them() -> None:
    on = timeline(instant(100), instant(150, state=State.INFLIGHT), instant(200, completed=290), instant(250))
    files = [base("f", 100), log("f", 100), log("f", 100, 2), base("f", 200), log("f", 200)]
    assert slice_of(files, on, version=SIX) == ("200", ["200.1"])
    assert slice_of(files, on, 199, SIX) == ("100", ["100.1", "100.2"])
    # Whether the blocks of the pending writer count is for the scan to say.
    assert slice_of([log("g", 150)], on, version=SIX) == ("150", ["150.1"])


# All slices of a file group, and log files whose slice depends on an archived instant


def histories(listed: list[str], on: Timeline) -> list[list[str]]:
    """The names of the files of each slice, newest first."""
    (slices,) = slice_histories("p", dict.fromkeys(listed, 1), on, version=TableVersion.NINE)
    return [[path.removeprefix("p/") for path in found.paths] for found in slices]


def test_a_log_file_belongs_to_the_newest_base_file_at_its_completion() -> None:
    bases = [base("f", 100), base("f", 500)]
    early, late, slow = log("f", 200), log("f", 700), log("f", 300)
    on = timeline(*(instant(at, completed=until) for at, until in ((100, 100), (200, 200), (300, 600))))
    on = timeline(*on, instant(500, completed=900), instant(700, completed=800))
    listed = [*bases, early, late, slow]
    # The commit of `slow` was requested before the compaction at 500, and completed after it was requested.
    assert histories(listed, on) == [[bases[1], slow, late], [bases[0], early]]
    assert logs_in_doubt(listed, on.start) == set()


def test_log_files_before_the_first_base_file_are_a_slice() -> None:
    logs = [log("f", 100), log("f", 200)]
    assert histories([base("f", 500), *logs], timeline(*map(instant, (100, 200, 500)))) == [[base("f", 500)], logs]


def test_a_log_file_of_an_archived_instant_stays_with_the_newest_slice_until_it_is_looked_up() -> None:
    listed = [base("f", 100), base("f", 500), log("f", 200)]
    older, newer, logged = listed
    on = timeline(instant(500), instant(700))
    assert logs_in_doubt(listed, on.start) == {"200"}
    assert histories(listed, on) == [[newer, logged], [older]]
    assert histories(listed, replace(on, archived={"200": "300"})) == [[newer], [older, logged]]


def test_files_of_pending_instants_are_left_out() -> None:
    cdc = log("f", 100) + ".cdc"
    assert histories([base("f", 100), base("f", 900), cdc, "other.txt"], timeline(instant(100))) == [
        [base("f", 100), cdc]
    ]


def test_a_log_file_of_version_6_without_its_base_file_begins_no_slice() -> None:
    """Its compaction is pending or was rolled back: a clean must not take it for a newer slice."""
    listed = [base("f", 100), log("f", 100), log("f", 300), base("f", 500), log("g", 300)]
    on = timeline(*map(instant, (100, 300, 500)))
    found = slice_histories("p", dict.fromkeys(listed, 1), on, version=TableVersion.SIX)
    names = [[[path.removeprefix("p/") for path in one.paths] for one in slices] for slices in found]
    assert names == [[[base("f", 500)], [base("f", 100), log("f", 100), log("f", 300)]], [[log("g", 300)]]]
