"""Runs the services of the metadata table that are due, at the start of a commit. So all commits cost about the same.

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
# Each makes the one before it due, so every one has its turn.


def run_services(context: ServiceContext) -> Timeline:
    """Finish pending services and run one service that is due. Returns the metadata table's timeline after that.

    Only one runs, so that no commit bears the cost of all of them (the JVM runs all): the others run at later commits.
    Call it under the table's lock. If a service dies at any step, the next call finishes it. No file is read or written
    if nothing is due.

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
