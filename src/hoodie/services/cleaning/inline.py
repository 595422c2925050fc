"""The clean that follows a commit, or runs in a round of services."""

from __future__ import annotations

from hoodie import config as options
from hoodie.services.call import ServiceCall
from hoodie.services.cleaning.result import CleanResult
from hoodie.services.cleaning.run import OPERATION, clean, is_clean_due
from hoodie.services.inline import InlineService


def _run(call: ServiceCall) -> CleanResult | None:
    result = clean(call)
    return result if result.instant is not None or result.notes else None


CLEAN = InlineService(name=OPERATION, is_on=options.CLEAN_AUTOMATIC.get, is_due=is_clean_due, run=_run)
