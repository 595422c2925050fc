"""The deletion of expired partitions after a commit."""

from __future__ import annotations

from hoodie import config as options
from hoodie.services.call import ServiceCall
from hoodie.services.inline import InlineService
from hoodie.services.ttl.run import ExpiredResult, expire_partitions, is_expiry_due


def _run(call: ServiceCall) -> ExpiredResult | None:
    result = expire_partitions(call)
    return result if result.partitions else None


EXPIRE = InlineService(name="ttl", is_on=options.TTL_INLINE.get, is_due=is_expiry_due, run=_run)
