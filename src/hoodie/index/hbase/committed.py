"""Which instants of versions are committed: the rule by which a rollback or a restore needs no work in HBase."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.index.hbase.versions import built_instant, is_built
from hoodie.view.table_view import TableView


def committed_instants(view: TableView, times: Collection[str], identity: str) -> set[str]:
    """Return those of the instants that are committed in a view. Reads the archive if the active timeline lacks some.

    An instant is committed if it is completed on the active timeline, or archived. One that is in neither was rolled
    back, taken back by a restore, or never completed, also if it is before the start of the active timeline. Only of
    instants before all that are known nothing tells, as in a copy of the table without its archive: they count, and
    their file groups exist only if they are committed. The instant of the build of this identity counts, and that of no
    other build: whether a build is valid is asked for the whole index (`readiness.check_recorded`).

    Raises: CorruptFileError if the archive is damaged.
    """
    timeline = view.timeline
    active = {found.requested_time: found for found in timeline.writes()}
    found = {time for time in times if time in active and active[time].is_completed}
    found |= {built_instant(identity)} & set(times)
    unknown = {time for time in times if time not in active and not is_built(time)}
    if not unknown:
        return found
    archive = view.archive()
    found |= {instant.requested_time for instant in archive.find(unknown) if instant.action.writes_data}
    known = [time for time in (archive.oldest_time(), min(active, default="")) if time]
    return found | {time for time in unknown if known and time < min(known)}
