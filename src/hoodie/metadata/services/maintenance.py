"""The metadata table looks after itself: what is due runs at the start of a commit, so that all commits cost the same.

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
# Each of them leaves work to the one before it, so none waits for ever.


def run_services(context: ServiceContext) -> Timeline:
    """Finish what is pending and run one service that is due; the metadata table's timeline as it is then.

    One, so that no commit bears the cost of them all (the JVM's does): what else is due still is at the next commit.
    Call it under the table's lock. A service may die at any step: the next call takes up what is pending. If nothing is
    due it touches no file.

    Raises:
        CorruptFileError: a file of the metadata table does not parse.
        CommitConflictError: another process does the same, which the lock should have kept it from.
    """
    for finish in _TO_FINISH:
        if finish(context):
            context = context.reloaded()
    for service in _WHEN_DUE:
        if service(context):
            return context.reloaded().metadata_timeline
    return context.metadata_timeline
