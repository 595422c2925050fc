"""Schedule a clustering: create an instant whose requested file contains the plan. Readers are not affected.

Also the advice whether a table needs one.

Implements docs/format/table.md §9.3. Until the clustering is completed or rolled back, writers of the planned file
groups are refused; see `hoodie.clustering.updates.strategy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hoodie.commit.call import Call
from hoodie.commit.pending import request
from hoodie.commit.writable import check_no_exclusive_service, check_writable
from hoodie.config.clustering import CLUSTER_LAYOUT, CLUSTER_PARTITIONS, CLUSTER_SORT_COLUMNS
from hoodie.config.indexes import INDEX_TYPE
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.format.table.call_options import check_texts, effective_options
from hoodie.services.clustering.plan import (
    PlanLimits,
    Planned,
    PlanRequest,
    RowOrder,
    SmallFiles,
    Trigger,
    changed_partitions,
    choose_partitions,
    plan_clustering,
    small_files,
)
from hoodie.services.clustering.sorting import check_order
from hoodie.timeline import Action
from hoodie.view.listing import list_files
from hoodie.view.pending_plans import planned_groups
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a caller requires of a clustering; None: by the options of the call and of the table.

    `by`: columns to sort by; empty: rows are not sorted. `partitions`: paths. `properties`: options of the call.
    """

    by: str | Sequence[str] | None = None
    layout: str | None = None
    partitions: str | Sequence[str] | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises: InvalidConfigError for no partitions: the option without a path would mean all of them."""
        if self.partitions is not None and not self.partitions:
            raise InvalidConfigError("partitions: expected partition paths, found none; omit it to cluster all")

    def options(self) -> dict[str, str]:
        """Return the options of the call, with the arguments as options. Raises: InvalidConfigError."""
        check_texts("extra_metadata", self.extra_metadata)
        found = dict(self.properties)
        if self.by is not None:
            found[CLUSTER_SORT_COLUMNS.key] = _joined("by", self.by)
        if self.layout is not None:
            found[CLUSTER_LAYOUT.key] = self.layout
        if self.partitions is not None:
            found[CLUSTER_PARTITIONS.key] = _joined("partitions", self.partitions)
        return found


def schedule_clustering(
    state: TableState, wish: Wish | None = None, trigger: Trigger | None = None
) -> tuple[str, Planned] | None:
    """Plan a clustering of small file slices; return its instant and the plan, or None if there is nothing to cluster.

    File groups in a pending compaction or clustering are skipped, so that any number of plans can be pending. With a
    `trigger`, a clustering is planned only if it is due, and only partitions that changed since the last plan are
    examined; else all partitions are.

    Raises: as `Table.schedule_clustering`; InvalidConfigError too for a table property among the options.
    """
    wish = wish or Wish()
    given = wish.options()
    view = Call(state=state, properties=given).checked_view()
    check_clusterable(view)
    effective = effective_options(view.config, given)
    check_order(RowOrder.of(effective), view.schema().arrow)
    # Called for the errors of wrong options.
    PlanLimits.of(effective)
    choose_partitions([], effective, hour=0)
    if trigger is not None and not trigger.is_due(view):
        return None
    with TableView.locked(state, given, finishes_update=True) as view:
        check_no_exclusive_service(view)
        if trigger is not None and not trigger.is_due(view):
            return None
        planned = plan_of(view, effective, is_incremental=trigger is not None)
        if not planned.plan.input_groups:
            return None
        content = RequestedReplaceMetadata(
            operation_type=WriteOperation.CLUSTER.value,
            clustering_plan=planned.plan,
            extra_metadata=dict(wish.extra_metadata),
        )
        return request(view, Action.CLUSTERING, content.to_bytes()).requested_time, planned


def check_clusterable(view: TableView) -> None:
    """Refuse tables whose rows cannot go to other file groups, and those that this release does not rewrite.

    Raises: UnsupportedError.
    """
    check_writable(view, "cluster")
    if INDEX_TYPE.get(view.config.raw) == "bucket":
        raise UnsupportedError(
            f"{view.store.uri('')} has a bucket index, by which the name of a file group decides which keys it has: "
            "rows cannot go to other file groups, here or with JVM Hudi; compact it instead"
        )


def is_clusterable(view: TableView) -> bool:
    """Return whether `check_clusterable` passes."""
    try:
        check_clusterable(view)
    except UnsupportedError:
        return False
    return True


def clustering_advice(view: TableView) -> SmallFiles:
    """Return the small files of a table as of a view, by the options that the table stores. Reads the listing only.

    A table that cannot be clustered gets no advice.

    Raises: CorruptFileError if a pending plan does not parse; InvalidConfigError for a wrong option of the table.
    """
    if not is_clusterable(view):
        return SmallFiles()
    busy = planned_groups(view)
    return small_files(list_slices(view), busy, PlanLimits.of(view.config.raw))


def plan_of(view: TableView, properties: Mapping[str, str], *, is_incremental: bool = False) -> Planned:
    """Return the plan for a view by these options; it may have no groups. Nothing is changed.

    Partitions that changed since the last plan and are not examined now are stored in the plan as missing, for the next
    incremental plan. Costs a listing of the examined partitions.
    """
    changed = changed_partitions(view)
    examined = sorted(changed) if is_incremental and changed is not None else list(list_files(view))
    hour = datetime.now(UTC).astimezone().hour
    chosen = choose_partitions(examined, properties, hour=hour)
    request_ = PlanRequest(
        order=RowOrder.of(properties),
        limits=PlanLimits.of(properties),
        uri=view.store.uri,
        missing=frozenset(examined if changed is None else changed) - set(chosen),
    )
    busy = planned_groups(view)
    return plan_clustering(list_slices(view, chosen) if chosen else [], busy, request_)


def _joined(name: str, found: str | Sequence[str]) -> str:
    names = [found] if isinstance(found, str) else list(found)
    wrong = [one for one in names if not isinstance(one, str) or "," in one]
    if wrong:
        raise InvalidConfigError(f"{name}: expected names without commas, found {wrong}")
    return ",".join(names)
