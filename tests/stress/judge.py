"""What must hold after a stress: the table is what its completed operations made, and no worker was told otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.table import Table
from tests.stress.journal import DONE, INTENT, REFUSED, Line, read_journal
from tests.stress.worker import OPERATION, rows_of
from tests.support.deaths import check_tidy

State = str | None
"""The operation that wrote the row of a key; None: the table has no such key."""


@dataclass(frozen=True)
class Completed:
    """An operation whose commit is on the timeline."""

    operation: str
    instant: str
    completion_time: str


@dataclass
class Told:
    """What the journals of all workers say, by operation."""

    intents: dict[str, Line] = field(default_factory=dict)
    done: dict[str, Line] = field(default_factory=dict)
    refused: dict[str, Line] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Told:
        """Read all journals."""
        told = cls()
        places = {INTENT: told.intents, DONE: told.done, REFUSED: told.refused}
        for path in sorted(folder.glob("*.journal")):
            for line in read_journal(path):
                if line.state in places:
                    places[line.state][line.operation] = line
        return told


_SERVICES = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT)


def completed_operations(table: Table) -> list[Completed]:
    """The operations of the timeline, in the order of their completion."""
    view = table.view()
    found: list[Completed] = []
    active = ((instant, view.commit_metadata(instant)) for instant in view.whole_timeline().completed().writes())
    for instant, commit in (*view.archived_commits(view.archived_writes()), *active):
        operation = commit.extra_metadata.get(OPERATION)
        # The compaction that a JVM writer runs after its write has the write's extra metadata.
        if operation is not None and commit.operation_type not in _SERVICES:
            assert instant.completion_time is not None
            found.append(Completed(operation, instant.requested_time, instant.completion_time))
    names = [each.operation for each in found]
    assert len(set(names)) == len(names), "an operation was committed twice"
    return sorted(found, key=lambda each: each.completion_time)


def possible_rows(completed: Iterable[Completed], intents: Mapping[str, Line]) -> dict[str, set[State]]:
    """What the rows of each key may be: nearly always one state.

    A delete that began before the key existed may leave the key that another operation inserted meanwhile.
    """
    history: dict[str, list[tuple[str, set[State]]]] = {}
    for each in completed:
        intent = intents[each.operation]
        for key in intent.keys:
            states = history.setdefault(key, [("", {None})])
            after: set[State] = {each.operation}
            if intent.kind == "delete":
                at_begin = next(found for time, found in reversed(states) if time <= each.instant)
                is_concurrent = states[-1][0] > each.instant
                after = {None}
                if is_concurrent and None in at_begin:
                    after |= states[-1][1]
            states.append((each.completion_time, after))
    return {key: states[-1][1] for key, states in history.items()}


def check_answers(completed: Iterable[Completed], told: Told) -> None:
    """What is on the timeline was intended; all that was acknowledged is there, and nothing that was refused."""
    instants = {each.operation: each.instant for each in completed}
    assert set(instants) <= set(told.intents), "operations that no worker intended"
    lost = {name: line for name, line in told.done.items() if _is_lost(instants.get(name), line)}
    assert lost == {}, f"acknowledged operations that are not on the timeline: {lost}"
    kept = {name: line for name, line in told.refused.items() if name in instants}
    assert kept == {}, f"refused operations that are on the timeline: {kept}"


def _is_lost(instant: str | None, told: Line) -> bool:
    """Whether an acknowledged operation is not on the timeline. The JVM does not tell the instant of a write."""
    return instant is None or told.instant not in ("", instant)


def check_rows(table: Table, possible: Mapping[str, set[State]]) -> None:
    """No row lost, none that no completed operation wrote, none doubled."""
    found = table.to_arrow(columns=["id", "operation"]).to_pydict()
    rows: dict[str, State] = dict(zip(found["id"], found["operation"], strict=True))
    assert len(rows) == len(found["id"]), "a key has two rows"
    assert set(rows) <= set(possible), "keys that no completed operation wrote"
    wrong = {key: (rows.get(key), states) for key, states in possible.items() if rows.get(key) not in states}
    assert wrong == {}, f"rows and what they may be: {wrong}"


def judge(table: Table, told: Told) -> int:
    """Check everything; return how many operations are on the timeline."""
    completed = completed_operations(table)
    check_answers(completed, told)
    possible = possible_rows(completed, told.intents)
    check_rows(table, possible)
    table.upsert(rows_of(["next"], "next"))  # rolls dead writes back; a pending compaction stays until it is taken up
    while table.pending_compactions().instants:
        table.compact()
    check_rows(table, {**possible, "next": {"next"}})
    check_tidy(table.view().store)
    report = table.index.verify()
    assert report.ok, str(report)
    return len(completed)
