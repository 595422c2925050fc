"""Runs the services of the metadata table that are due, at the start of a commit.

docs/format/metadata.md §3.9.
"""

from __future__ import annotations

from collections.abc import Callable

from hoodie.metadata.services.archiving import archive_if_due
from hoodie.metadata.services.cleaning import clean_if_due, finish_clean
from hoodie.metadata.services.compaction import compact_if_due, finish_compaction
from hoodie.metadata.services.context import ServiceContext
from hoodie.timeline import Timeline

_Service = Callable[[ServiceContext], bool]
_TO_FINISH: tuple[_Service, ...] = (finish_compaction, finish_clean)
_WHEN_DUE: tuple[_Service, ...] = (archive_if_due, clean_if_due, compact_if_due)
# Each service makes the service before it due, so no service is postponed forever.


def run_services(context: ServiceContext) -> Timeline:
    """Finish pending services and run one service that is due. Returns the metadata table's timeline after that.

    Only one service runs, so that all commits cost about the same; the other services run at later commits. (The JVM
    runs all services that are due.) Call it under the table's lock. If a service is interrupted at any step, the next
    call finishes it. No file is read or written if no service is due.

    Raises:
        CorruptFileError: a file of the metadata table does not parse.
        CommitConflictError: another process runs the same service without holding the lock.
    """
    for finish in _TO_FINISH:
        if finish(context):
            context = context.reloaded()
    for service in _WHEN_DUE:
        if service(context):
            return context.reloaded().metadata_timeline
    return context.metadata_timeline
