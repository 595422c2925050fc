"""Change the options that a table stores: every call takes them, unless it has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.commit.writable import check_writable
from hoodie.config import indexes
from hoodie.config.writes import DURABLE_KEY, PYTHON_MERGER_KEY
from hoodie.errors import InvalidConfigError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table.call_options import is_table_property
from hoodie.index import INDEXES
from hoodie.metadata.kinds.registry import KINDS
from hoodie.progress import PhaseTimes
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.options import check_no_duplicates, check_storable, checked_options
from hoodie.write.result import AlterResult

OF_INDEXES: Final = frozenset(
    {indexes.INDEX_TYPE_KEY, indexes.BUCKETS_SINCE.key, indexes.COLUMNS_SINCE.key}
    | {option.key for kind in INDEXES for option in kind.own_options}
    | {kind.moves_option.key for kind in INDEXES if kind.moves_option is not None}
    | {kind.switch.key for kind in KINDS.named if kind.switch is not None}
)
_OF_LOCKS: Final = "hoodie.write.lock."


def store_options(state: TableState, changes: Mapping[str, str | None]) -> AlterResult:
    """Store options in hoodie.properties, or remove them (None), under the table's lock.

    Calls that run keep the options of before.

    Raises: InvalidConfigError for unknown options and values that do not parse, and for what is fixed when a table is
        created or belongs to an index or the lock; UnsupportedError for a table that this release does not write.
    """
    watch = PhaseTimes("commit")
    for key in changes:
        _refuse_fixed(key)
    with watch.phase("commit"), TableView.locked(state, finishes_update=True) as view:
        check_writable(view)
        stored = view.config.raw
        given = {key: text for key, text in changes.items() if text is not None}
        checked_options(view.config, given)
        if not view.config.record_key_fields:
            check_no_duplicates(given)
        check_storable(given, {key: text for key, text in stored.items() if key not in changes})
        changed = tuple(
            f"{key}: {stored.get(key, 'not set')} -> {'not set' if text is None else text}"
            for key, text in changes.items()
            if stored.get(key) != text
        )
        update_table_config(state.store, dict(changes))
    notes = tuple(f"{key} is not stored" for key, text in changes.items() if text is None and key not in stored)
    return AlterResult(operation="set properties", changes=changed, seconds=watch.seconds(), notes=notes)


def _refuse_fixed(key: str) -> None:
    """Refuse what a change of an option would break. Raises: InvalidConfigError."""
    if is_table_property(key) or key in (PYTHON_MERGER_KEY, DURABLE_KEY):
        raise InvalidConfigError(f"{key} is fixed when the table is created: write the rows to a new table")
    if key in OF_INDEXES:
        raise InvalidConfigError(f"{key} belongs to an index: call t.index.switch, t.index.build or t.index.drop")
    if key.startswith(_OF_LOCKS):
        raise InvalidConfigError(
            f"{key}: writers that run would keep another lock; stop them, and pass lock= to hoodie.open or the option "
            "to each call"
        )
    if not key.startswith("hoodie."):
        raise InvalidConfigError(
            f"{key}: expected an option hoodie.<name> (docs/options.md); other texts are not stored"
        )
