"""The instants of the metadata table that readers see."""

from __future__ import annotations

from hoodie.metadata.instants import visible_instants
from hoodie.timeline import Action, Instant, State, Timeline


def instant(requested_time: str, completion_time: str | None) -> Instant:
    state = State.REQUESTED if completion_time is None else State.COMPLETED
    return Instant(
        requested_time=requested_time, action=Action.DELTA_COMMIT, state=state, completion_time=completion_time
    )


def test_instants_that_are_pending_on_either_timeline_are_not_visible() -> None:
    metadata = Timeline.of([instant("100", "109"), instant("200", "209"), instant("300", None), instant("400", "409")])
    data = Timeline.of([instant("100", "110"), instant("200", None), instant("300", None)])
    assert [found.requested_time for found in visible_instants(metadata, data)] == ["100", "400"]
    assert visible_instants(metadata, data).start == "100"
