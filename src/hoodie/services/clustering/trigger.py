"""Decide whether a clustering is due: by the number of commits since the last clustering, as in Hudi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config import clustering
from hoodie.services.clustering.history import last_clustering, writes_since
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A clustering is due after this number of commits since the last one, which may be pending."""

    commits: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Trigger:
        """Return the rule of these properties; the option depends on whether the write executes the clustering."""
        runs = clustering.CLUSTER_INLINE.get(properties)
        option = clustering.CLUSTER_INLINE_COMMITS if runs else clustering.CLUSTER_SCHEDULE_COMMITS
        return cls(commits=option.get(properties))

    def is_due(self, view: TableView) -> bool:
        """Return whether a clustering should be scheduled now."""
        return len(writes_since(view, last_clustering(view))) >= self.commits
