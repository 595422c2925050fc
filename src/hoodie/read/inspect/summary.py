"""The summary of a table: its properties, its timeline and its columns, without a look at the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hoodie.config.secrets import redacted
from hoodie.display import command_text
from hoodie.errors import HoodieError
from hoodie.index import index_of_view
from hoodie.read.history import completed_at
from hoodie.read.inspect.commits import columns_of
from hoodie.read.inspect.waiting import Findings
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView

_T = TypeVar("_T")


def summary(view: TableView, findings: Callable[[], Findings]) -> dict[str, Any]:
    """Return what a table is, its newest commit, its columns, and what is wrong on its timeline.

    One read of the newest commit that stores a schema; `findings` takes a request for each pending instant. What cannot
    be read is a finding of the kind `unreadable`, not an error.
    """
    config, problems = view.config, list[dict[str, str]]()
    writes = view.completed_writes()

    def tried(read: Callable[[], _T], default: _T, key: str) -> _T:
        try:
            return read()
        except (HoodieError, OSError) as error:
            remedy = command_text("hoodie verify TABLE", view.store.uri(""))
            facts = {"kind": "unreadable", "severity": "error", "key": key, "meaning": str(error), "remedy": remedy}
            problems.append(facts)
            return default

    found = tried(lambda: [dict(one) for one in findings()], list[dict[str, str]](), "timeline")
    newest = None if not writes else writes[-1]
    facts = {
        "name": config.name,
        "path": view.store.uri(""),
        "type": config.table_type.value.lower(),
        "version": config.version.value,
        "record_key": list(config.record_key_fields),
        "partitioned_by": list(config.partition_fields),
        "ordering": list(config.ordering_fields),
        "index": tried(lambda: index_of_view(view).name, None, "index"),
        "metadata_partitions": list(config.metadata_partitions),
        "instants": len(view.timeline),
        "newest": None if newest is None else tried(lambda: _newest(view, newest), None, newest.requested_time),
        "pending": len(view.timeline.pending()),
        "columns": tried(lambda: columns_of(view.schema().arrow), list[dict[str, Any]](), "schema"),
    }
    return {**facts, "findings": [*problems, *found], "properties": redacted(config.raw)}


def _newest(view: TableView, instant: Instant) -> dict[str, Any]:
    operation = view.commit_facts(instant).operation_type
    return {
        "instant": instant.requested_time,
        "action": instant.action.value,
        "operation": operation.lower() if operation else None,
        "completed_at": completed_at(instant, view.layout.zone),
    }
