"""Run the table services that are due after a write.

A service of this kind is one line in `SERVICES`. It never fails the write: the write is committed already, so an error
becomes a note of the service's result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie.commit.call import Call, Occasion
from hoodie.progress import PhaseTimes
from hoodie.services.archiving.run import ARCHIVE
from hoodie.services.cleaning.clean import CLEAN
from hoodie.services.clustering.inline import INLINE_CLUSTERING
from hoodie.services.inline import InlineService
from hoodie.services.results import ServiceResult
from hoodie.services.ttl import EXPIRE
from hoodie.view.table_view import TableView

SERVICES: Final[tuple[InlineService, ...]] = (INLINE_CLUSTERING, EXPIRE, CLEAN, ARCHIVE)
"""The services in the order in which they run. Compaction runs before them: see `write/outcome.py`."""


def run_after_write(call: Call, watch: PhaseTimes) -> list[ServiceResult]:
    """Run each service that is on and due. `call.properties` are the effective options of the write.

    The view is loaded once, and again after a service that changed the table. Each service that runs is a phase.
    """
    call = replace(call, occasion=Occasion.AFTER_WRITE)
    results: list[ServiceResult] = []
    view: TableView | None = None
    for service in SERVICES:
        try:
            if not service.is_on(call.properties):
                continue
            view = view or TableView.load(call.state)
            if not service.is_due(call, view):
                continue
            view = None
            with watch.phase(service.name):
                result = service.run(call)
        except Exception as error:
            # Also errors of Arrow or Spark: a caller that sees an error would write the rows again.
            note = f"{service.name} failed after this write, which is committed: {error}"
            result = ServiceResult(operation=service.name, notes=(note,))
        if result is not None:
            results.append(result)
    return results
