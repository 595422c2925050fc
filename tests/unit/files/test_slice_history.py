"""All slices of a partition's file groups, and log files whose slice depends on an archived instant."""

from __future__ import annotations

from dataclasses import replace

from hoodie.files.slices import logs_in_doubt, slice_histories
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action, Instant, State, Timeline

BASE = "{id}_0-0-0_{time}.parquet"
LOG = ".{id}_{time}.log.1_0-0-0"


def at(number: int) -> str:
    return f"202601010000000{number:02}"


def timeline_of(*times: tuple[int, int], archived_until: int = 0) -> Timeline:
    """A timeline of completed commits, as pairs of requested and completion time."""
    return Timeline.of(
        Instant(
            requested_time=at(requested),
            action=Action.DELTA_COMMIT,
            state=State.COMPLETED,
            completion_time=at(completed),
        )
        for requested, completed in times
        if requested >= archived_until
    )


def names_of(listed: dict[str, int], timeline: Timeline) -> list[list[str]]:
    (history,) = slice_histories("p", listed, timeline, version=TableVersion.NINE)
    return [[path.removeprefix("p/") for path in found.paths] for found in history.slices]


def test_a_log_file_belongs_to_the_newest_base_file_at_its_completion() -> None:
    bases = [BASE.format(id="f", time=at(number)) for number in (1, 5)]
    early, late, slow = (LOG.format(id="f", time=at(number)) for number in (2, 7, 3))
    timeline = timeline_of((1, 1), (2, 2), (3, 6), (5, 9), (7, 8))
    listed = dict.fromkeys([*bases, early, late, slow], 1)
    # The commit of `slow` was requested before the compaction at 5, and completed after it was requested.
    assert names_of(listed, timeline) == [[bases[1], slow, late], [bases[0], early]]
    assert logs_in_doubt(listed, timeline.start) == set()


def test_log_files_before_the_first_base_file_are_a_slice() -> None:
    base = BASE.format(id="f", time=at(5))
    logs = [LOG.format(id="f", time=at(number)) for number in (1, 2)]
    timeline = timeline_of((1, 1), (2, 2), (5, 6))
    assert names_of(dict.fromkeys([base, *logs], 1), timeline) == [[base], logs]


def test_a_log_file_of_an_archived_instant_stays_with_the_newest_slice_until_it_is_looked_up() -> None:
    base, newer = BASE.format(id="f", time=at(1)), BASE.format(id="f", time=at(5))
    log = LOG.format(id="f", time=at(2))
    timeline = timeline_of((1, 1), (2, 3), (5, 6), (7, 8), archived_until=5)
    listed = dict.fromkeys([base, newer, log], 1)
    assert logs_in_doubt(listed, timeline.start) == {at(2)}
    assert names_of(listed, timeline) == [[newer, log], [base]]
    known = replace(timeline, archived={at(2): at(3)})
    assert names_of(listed, known) == [[newer], [base, log]]


def test_files_of_pending_instants_are_left_out() -> None:
    base, pending = BASE.format(id="f", time=at(1)), BASE.format(id="f", time=at(9))
    cdc = ".f_" + at(1) + ".log.1_0-0-0.cdc"
    assert names_of(dict.fromkeys([base, pending, cdc, "other.txt"], 1), timeline_of((1, 1))) == [[base, cdc]]
