"""Procedures that list the instants of a table, and export them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hoodie.errors import HoodieError
from hoodie.format.instants.service_metadata import RollbackMetadata, RollbackPlan
from hoodie.read.history import instant_content
from hoodie.statements.procedures.procedure import FILTER, TABLE, Call, Row, optional, procedure, required
from hoodie.storage import open_store
from hoodie.timeline import Action, Instant, State, parse_instant_time, read_instant
from hoodie.view.table_view import TableView

_EXPORTED: Final = "clean,commit,deltacommit,rollback,savepoint,restore"


def active_contents(view: TableView, action: Action) -> Iterator[tuple[Instant, bytes]]:
    """Yield the completed instants of an action with their contents, newest first."""
    for instant in reversed(view.timeline.completed().instants):
        if instant.action is action:
            yield instant, read_instant(view.store, view.layout, instant)


def archived_contents(view: TableView, action: Action) -> Iterator[tuple[Instant, bytes]]:
    """Yield the archived instants of an action with the content of their completed file, newest first."""
    archive = view.archive()
    wanted = {instant.requested_time: instant for instant in archive.completed() if instant.action is action}
    contents = {found.requested_time: found.metadata or b"" for found in archive.contents(list(wanted.values()))}
    for requested_time in sorted(contents, reverse=True):
        yield wanted[requested_time], contents[requested_time]


@procedure(
    parameters=(
        *TABLE,
        optional("limit", 20),
        optional("showArchived", False),
        FILTER,
        optional("startTime", ""),
        optional("endTime", ""),
    ),
    columns="instant_time string, action string, state string, requested_time string, inflight_time string, "
    "completed_time string, timeline_type string, rollback_info string",
)
def show_timeline(call: Call) -> Iterable[Row]:
    """List the newest instants in their states."""
    view = call.table.view()
    begin, end = call["startTime"].strip(), call["endTime"].strip()
    found = [(instant, "ACTIVE") for instant in view.timeline]
    if call["showArchived"]:
        known = {(instant.requested_time, instant.action) for instant in view.timeline}
        archived = (one for one in view.archive().completed() if (one.requested_time, one.action) not in known)
        found += [(instant, "ARCHIVED") for instant in archived]
    found = [
        (instant, kind)
        for instant, kind in sorted(found, key=lambda pair: (pair[0].requested_time, pair[0].action), reverse=True)
        if (not begin or instant.requested_time >= begin) and (not end or instant.requested_time <= end)
    ]
    texts = _rollbacks(view)
    rows = (_instant(view, instant, kind, texts) for instant, kind in found)
    return rows if begin and end else call.limited(rows)  # as in Hudi


def _instant(view: TableView, instant: Instant, kind: str, texts: Mapping[tuple[str, bool], str]) -> Row:
    is_rollback = instant.action is Action.ROLLBACK
    requested = _clock(view, instant.requested_time)
    return {
        "instant_time": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.name,
        "requested_time": requested,
        "inflight_time": None if instant.state is State.REQUESTED else requested,
        "completed_time": None if instant.completion_time is None else _clock(view, instant.completion_time),
        "timeline_type": kind,
        "rollback_info": texts.get((instant.requested_time, is_rollback)),
    }


def _clock(view: TableView, time: str) -> str | None:
    """Return day and time of an instant; None if it is no date."""
    try:
        return parse_instant_time(time, view.layout.zone).strftime("%m-%d %H:%M:%S")
    except HoodieError:
        return None


def _rollbacks(view: TableView) -> Mapping[tuple[str, bool], str]:
    """Return the texts of active rollbacks by (time, True), and of what they roll back by (that time, False)."""
    texts: dict[tuple[str, bool], str] = {}
    undone: dict[str, list[str]] = {}
    for instant in view.timeline:
        if instant.action is Action.ROLLBACK:
            commits = _rolled_back(view, instant)
            word = "Rolled back:" if instant.is_completed else "Rolls back"
            texts[instant.requested_time, True] = f"{word} {', '.join(commits)}"
            for commit in commits:
                undone.setdefault(commit, []).append(instant.requested_time)
    return {**{(time, False): f"Rolled back by: {', '.join(times)}" for time, times in undone.items()}, **texts}


def _rolled_back(view: TableView, rollback: Instant) -> tuple[str, ...]:
    """Return the instants that a rollback took back, or that its plan names."""
    if rollback.is_completed:
        content = read_instant(view.store, view.layout, rollback)
        return RollbackMetadata.parse(content, path=str(rollback)).commits_rollback
    plan = read_instant(view.store, view.layout, rollback, State.REQUESTED)
    target = RollbackPlan.parse(plan, path=str(rollback)).instant_to_rollback if plan else None
    return () if target is None else (target.commit_time,)


@procedure(
    parameters=(
        required("table"),
        required("local_folder"),
        optional("limit", -1),
        optional("actions", _EXPORTED),
        optional("desc", False),
    ),
    columns="export_detail string",
)
def export_instants(call: Call) -> Iterable[Row]:
    """Write the contents of completed instants of the active timeline as JSON into a folder."""
    view, folder = call.table.view(), call["local_folder"]
    actions = {name.strip() for name in call["actions"].split(",")}
    chosen = [instant for instant in view.timeline.completed() if instant.action.value in actions]
    if call["desc"]:
        chosen.reverse()
    limit = call["limit"]
    chosen = chosen if limit == -1 else chosen[:limit]
    target = open_store(folder)
    for instant in chosen:
        content = instant_content(view, instant.requested_time, instant.action)["content"]
        name = view.layout.names(instant, instant.state)[0]
        target.replace(name, json.dumps(content, ensure_ascii=False, indent=2).encode())
    return [{"export_detail": f"Exported {len(chosen)} Instants to {folder}"}]
