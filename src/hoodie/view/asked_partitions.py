"""Metadata partitions that options ask for, and that a table with rows does not have."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.config import Option
from hoodie.view.table_view import TableView


def asks_and_lacks(view: TableView, properties: Mapping[str, str], option: Option[bool], partition: str) -> bool:
    """Return whether `properties` set the option, and a table with rows has no such partition, also not in a build.

    The archive is looked at only if the active timeline has no write.
    """
    named = {*view.config.metadata_partitions, *view.config.metadata_partitions_inflight}
    if option.key not in properties or not option.get(properties) or partition in named:
        return False
    return bool(view.timeline.writes().completed().instants) or view.has_archived_instants()
