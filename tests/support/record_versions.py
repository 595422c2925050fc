"""Versions of records, and in plain Python what merging them one after the other gives (docs/format/table.md §6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.table.merge_config import MergeMode, PartialUpdateMode
from hoodie.records.merging.fold import FoldRule, VersionKind
from hoodie.records.merging.merge import Overlay, RecordMerger

EVENT, COMMIT, CUSTOM = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING, MergeMode.CUSTOM
ROW, DELETE, IN_ORDER, RECORD, ROW_ALONE = VersionKind
FIELDS = ("a", "b")
UNAVAILABLE = "?"


@dataclass
class Version:
    """One version of a record: what happens, its ordering value, and the fields that it brings."""

    kind: VersionKind
    ordering: int | None = None
    fields: dict[str, str | None] = field(default_factory=dict)


def rule_of(
    mode: MergeMode,
    *,
    is_partial: bool = False,
    update_mode: PartialUpdateMode | None = None,
    pre_combines: bool = False,
    newest_meta_fields: bool = False,
) -> FoldRule:
    """The rule of a table ordered by `ord`; a custom merge joins texts."""
    function = joined if mode is CUSTOM else None
    overlay = None if update_mode is None else Overlay(update_mode, UNAVAILABLE, is_payload=newest_meta_fields)
    ordering = ("ord",) if mode is EVENT or pre_combines else ()
    return FoldRule(RecordMerger(mode, ordering, function, pre_combines, overlay=overlay), is_partial)


def joined(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.BooleanArray]:
    """Join the texts of `a`; a record whose text grows beyond four characters is deleted."""
    texts = pc.binary_join_element_wise(pc.fill_null(older["a"], ""), pc.fill_null(newer["a"], ""), "")
    merged = newer.set_column(newer.schema.get_field_index("a"), "a", texts)
    return merged, pc.greater(pc.binary_length(texts), 4).combine_chunks()


class Model:
    """Merges one version after the other, as the specification says it.

    `null_rank`: the ordering value that null stands for; in a column of type int that is 0.
    """

    def __init__(self, rule: FoldRule, *, null_rank: int = -1) -> None:
        self._rule = rule
        self._null_rank = null_rank
        self._mode = None if rule.overlay is None else rule.overlay.mode

    def fold(self, versions: Sequence[Version]) -> Version:
        """Merge the logged versions of one record, oldest first."""
        folded = versions[0]
        for version in versions[1:]:
            folded = self.merge(folded, version)
        return folded

    def merge(self, old: Version | None, new: Version, *, is_final: bool = False) -> Version:
        """Merge a version with what comes before it; `is_final`: that is the stored row, which no log can follow."""
        by_order = self._rule.merger.mode is EVENT
        if old is None:
            return new
        if self._rule.merger.pre_combines:
            return self._combine(old, new) if is_final else self._pre_combine(old, new)
        if self._rule.merger.function is not None:
            return self._by_function(old, new)
        if not by_order:
            return self._mixed(old, new) if old.kind is ROW and new.kind is ROW else new
        if new.kind is DELETE:
            return new
        if old.kind is DELETE:
            return old if new.kind is RECORD and not is_final else new
        wins = self._rank(new.ordering) >= self._rank(old.ordering)
        if old.kind is ROW and new.kind is ROW:
            return self._mixed(old, new) if wins else self._mixed(new, old)
        return new if wins else old

    def _pre_combine(self, old: Version, new: Version) -> Version:
        """Two logged versions in Hudi 0.x: `preCombine` of the payload, and the log scanner for deletes."""
        if old.kind in (DELETE, RECORD) or new.kind is DELETE:
            return new
        wins = self._rank(new.ordering) >= self._rank(old.ordering)
        if old.kind is ROW and new.kind is ROW and self._rule.newest_meta_fields:
            return self._mixed(old, new) if wins else self._mixed(new, old)
        return new if wins else old

    def _combine(self, old: Version, new: Version) -> Version:
        """A logged version and the stored row in Hudi 0.x: `combineAndGetUpdateValue` of the payload."""
        if new.kind in (DELETE, RECORD):
            return new
        wins = self._rule.merger.mode is COMMIT or self._rank(new.ordering) >= self._rank(old.ordering)
        if new.kind is ROW:
            return self._mixed(old, new) if wins else self._mixed(new, old)
        return new if wins else old

    def _by_function(self, old: Version, new: Version) -> Version:
        """What was deleted is not merged with what comes later."""
        if new.kind is not ROW:
            return new
        if old.kind is DELETE:
            return replace(new, kind=ROW_ALONE)
        called = self._called(old, new)
        return replace(called, kind=ROW_ALONE) if old.kind is ROW_ALONE and called.kind is ROW else called

    def _mixed(self, loser: Version, winner: Version) -> Version:
        if self._rule.overlay is None:
            return winner
        fields = {
            name: winner.fields.get(name) if self._brings(winner, name) else loser.fields.get(name)
            for name in FIELDS
            if self._brings(winner, name) or self._brings(loser, name)
        }
        rest = {name: winner.fields.get(name) for name in FIELDS if name not in fields and name in winner.fields}
        ordering = winner.ordering
        if ordering is None and self._mode is PartialUpdateMode.IGNORE_DEFAULTS:
            ordering = loser.ordering
        return Version(ROW, ordering, fields | rest)

    def _called(self, old: Version, new: Version) -> Version:
        fields = {name: new.fields[name] if name in new.fields else old.fields.get(name) for name in FIELDS}
        names = [name for name in FIELDS if name in {**old.fields, **new.fields}]
        text = (old.fields.get("a") or "") + (fields["a"] or "")
        if len(text) > 4:
            return Version(DELETE)
        return Version(ROW, new.ordering, {name: text if name == "a" else fields[name] for name in names})

    def _brings(self, version: Version, name: str) -> bool:
        if self._rule.is_partial:
            return name in version.fields
        if self._mode is PartialUpdateMode.IGNORE_DEFAULTS:
            return version.fields[name] is not None
        return version.fields[name] != UNAVAILABLE

    def _rank(self, ordering: int | None) -> int:
        return self._null_rank if ordering is None else ordering


def shown(version: Version | None) -> tuple[int | None, str | None, str | None] | None:
    """Ordering value and fields of a row; None for a delete."""
    if version is None or version.kind not in (ROW, ROW_ALONE):
        return None
    return (version.ordering, version.fields.get("a"), version.fields.get("b"))
