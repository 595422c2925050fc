"""The `hoodie.*` options of a session: which of them are options of a statement that writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config.clustering import CLUSTER_INLINE, CLUSTER_SCHEDULE_INLINE
from hoodie.config.hudi_options import Fate, hudi_options
from hoodie.config.known import OPTIONS
from hoodie.config.option import Option
from hoodie.config.retention import TTL_INLINE
from hoodie.config.writes import COMBINE_BEFORE_INSERT, INSERT_DUP_POLICY

INTO_OPERATION: Final = "hoodie.spark.sql.insert.into.operation"
OVERWRITE_MODE: Final = "hoodie.datasource.overwrite.mode"
OVERWRITES: Final = ("insert_overwrite", "insert_overwrite_table")
"""The operations of INSERT OVERWRITE. UPDATE, DELETE and MERGE are the operations `update`, `delete` and `merge`."""
_BULK: Final = ("bulk_insert", *OVERWRITES)
_OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "hoodie.bootstrap.data.queries.only": (),
    "hoodie.bulkinsert.overwrite.operation.type": OVERWRITES,
    "hoodie.bulkinsert.schema.ddl": _BULK,
    "hoodie.bulkinsert.sort.suffix.record_key": _BULK,
    "hoodie.bulkinsert.user.defined.partitioner.class": _BULK,
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": _BULK,
    # UPDATE and DELETE change each stored row by itself, and MERGE refuses several source rows of one key.
    "hoodie.combine.before.delete": (),
    "hoodie.combine.before.upsert": ("upsert",),
    COMBINE_BEFORE_INSERT.key: ("insert", *_BULK),
    INSERT_DUP_POLICY.key: ("insert",),
    "hoodie.datasource.write.insert.drop.duplicates": ("insert",),
    "hoodie.merge.allow.duplicate.on.inserts": ("insert",),
    OVERWRITE_MODE: (),  # INSERT OVERWRITE reads it
    "hoodie.static.overwrite.partition.paths": OVERWRITES,
    "hoodie.datasource.read.incr.filters": (),
    "hoodie.datasource.read.incr.path.glob": (),
    "hoodie.datasource.read.schema.use.end.instanttime": (),
    "hoodie.read.timeline.holes.resolution.policy": (),
    "hoodie.metadata.index.drop": (),
    "hoodie.metadata.index.expression.column": (),
    "hoodie.metadata.index.expression.file.group.count": (),
    "hoodie.metadata.index.expression.options": (),
}
"""The operations on which an option has an effect; the options that are not here have one on every write."""
_CLUSTERING: Final = (CLUSTER_INLINE, CLUSTER_SCHEDULE_INLINE)
_SERVICES: Final[Mapping[str, tuple[Option[bool], ...]]] = {
    "hoodie.clustering.execution.strategy.class": _CLUSTERING,
    "hoodie.clustering.plan.strategy.class": _CLUSTERING,
    "hoodie.clustering.plan.strategy.earliest.commit.to.cluster": _CLUSTERING,
    "hoodie.layout.optimize.curve.build.method": _CLUSTERING,
    "hoodie.layout.optimize.enable": _CLUSTERING,
    "hoodie.partition.ttl.strategy.class": (TTL_INLINE,),
}
"""Options of a service, and the options with which a write runs it."""


def options_of(operation: str, settings: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a session that have an effect on an operation; `stored` are the table's properties."""

    def has_effect(key: str) -> bool:
        switches = _SERVICES.get(key, ())
        runs = not switches or any(switch.get(settings, stored) for switch in switches)
        return runs and operation in _OPERATIONS.get(key, (operation,))

    return {key: text for key, text in settings.items() if is_option(key) and has_effect(key)}


def is_option(key: str) -> bool:
    """Return whether a key of the session is an option that can have an effect on a write."""
    known = hudi_options().get(key.lower())
    return key in OPTIONS or (known is not None and known.fate not in (Fate.CALL, Fate.IDLE))
