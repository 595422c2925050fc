"""Where the keys of a write's rows come from, and what a table with automatic record keys refuses.

Inserts get new keys. Updates and deletes name stored records by `_hoodie_record_key` (docs/automatic-keys.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.config import writes
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.automatic_keys import KeySource
from hoodie.write.setup import WriteSetup


def key_source(setup: WriteSetup, operation: WriteOperation) -> KeySource:
    """Return where the record keys of the rows come from.

    Raises: UnsupportedError for an upsert without stored keys into a table with automatic keys; InvalidConfigError if
    the options of an insert contradict automatic keys.
    """
    if not setup.has_automatic_keys:
        return KeySource.COLUMNS
    if operation is WriteOperation.UPSERT:
        if setup.data is not None and RECORD_KEY not in setup.data.schema.names:
            raise UnsupportedError(
                f"upsert: {setup.view.store.uri('')} makes its record keys automatically, so the rows do not say which "
                f"records they change: call insert to add them, update or delete_where to change records by a "
                f"condition, or upsert rows that were read from the table with their {RECORD_KEY}"
            )
        return KeySource.STORED
    if operation is WriteOperation.DELETE:
        return KeySource.STORED
    check_no_duplicates(setup.options)
    return KeySource.AUTOMATIC


def check_no_duplicates(properties: Mapping[str, str]) -> None:
    """Refuse options that look for rows with equal keys: automatic keys differ in all rows.

    Raises: InvalidConfigError.
    """
    policy = writes.INSERT_DUP_POLICY
    wrong = {
        f"{policy.key}={policy.get(properties)}": policy.get(properties) != "none",
        f"{writes.COMBINE_BEFORE_INSERT.key}=true": writes.COMBINE_BEFORE_INSERT.get(properties),
    }
    for option in (text for text, is_set in wrong.items() if is_set):
        raise InvalidConfigError(
            f"{option} contradicts automatic record keys: each row gets a new key, so no two rows have the same; "
            "omit the option, and remove duplicates from the data before the write"
        )
