"""Check the options of one call (`properties=` of a write or a table service) before the call changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config import check_options
from hoodie.config.option import checked_text
from hoodie.config.writes import DURABLE_KEY, PYTHON_MERGER_KEY
from hoodie.errors import InvalidConfigError
from hoodie.format.table import table_keys
from hoodie.format.table.table_config import TableConfig

_TABLE_KEYS: Final = frozenset(
    value for name, value in vars(table_keys).items() if name.isupper() and isinstance(value, str)
)


def is_table_property(name: str) -> bool:
    """Return whether an option is a property of a table, which is fixed when the table is created."""
    return name in _TABLE_KEYS or name.startswith(table_keys.TIMEBASED_PREFIX)


def check_call_options(properties: Mapping[str, str], config: TableConfig | None = None) -> None:
    """Refuse options that are unknown or do not parse, and table properties that differ from `config`.

    Without a `config` all table properties are accepted.

    Raises: InvalidConfigError.
    """
    check_texts("properties", properties)
    times = [key for key in properties if key.startswith(table_keys.TIMEBASED_PREFIX)]
    if config is not None:
        _check_stored(properties, config.raw, times)
    check_options(properties, also_known=(*_TABLE_KEYS, *times))


def check_texts(name: str, given: Mapping[str, str]) -> None:
    """Refuse keys and values that are not texts that files can hold; `name` is the argument's name.

    Raises: InvalidConfigError.
    """
    wrong = {key: value for key, value in given.items() if not (isinstance(key, str) and isinstance(value, str))}
    if wrong:
        raise InvalidConfigError(
            f"{name}: expected string keys and values, got {wrong}; write for example 'true' and '1024'"
        )
    for key, value in given.items():
        checked_text(f"{name}[{checked_text(name, key)!r}]", value)


def _check_stored(properties: Mapping[str, str], stored: Mapping[str, str], times: list[str]) -> None:
    fixed = [key for key in properties if key in _TABLE_KEYS or key in (PYTHON_MERGER_KEY, DURABLE_KEY)]
    contradicting = [key for key in fixed if stored.get(key) != properties[key]]
    contradicting += [key for key in times if stored.get(key, properties[key]) != properties[key]]
    if contradicting:
        key = contradicting[0]
        raise InvalidConfigError(
            f"{key} is fixed when the table is created: expected {stored.get(key)!r}, this call sets "
            f"{properties[key]!r}; remove the option from the call"
        )
