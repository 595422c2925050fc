"""The merger of a table, and custom mergers: functions of the program; the table stores only their names.

No executable code is read from a table: a program registers a function under the stored name before it writes to a
table with a custom merger.
"""

from __future__ import annotations

import pyarrow as pa

from hoodie.arguments import check_arguments
from hoodie.config import PYTHON_MERGER
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.merge_config import MergeMode
from hoodie.format.table.table_config import TableConfig
from hoodie.records.merging.merge import MergeFunction, RecordMerger

_REGISTERED: dict[str, MergeFunction] = {}


@check_arguments
def register_merger(name: str, function: MergeFunction) -> None:
    """Register a merge function in this process under the name that tables store.

    The function gets two Arrow tables with the older and the newer versions of the same records, and returns a table of
    merged rows (see `records.merging.merge.MergeFunction`). It runs in workers, so it must be picklable. Registering a
    name again replaces the function.
    """
    if not name or not name.isidentifier():
        raise InvalidConfigError(f"a merger's name must be an identifier such as 'sum_counts', got {name!r}")
    _REGISTERED[name] = function


def registered_merger(name: str) -> MergeFunction:
    """Return the function that is registered under a name.

    Raises: InvalidConfigError if this process registered no function under the name.
    """
    if name not in _REGISTERED:
        raise InvalidConfigError(
            f"the table merges with the Python merger {name!r}, which this program has not registered; call "
            f"hoodie.register_merger({name!r}, function) before it reads or writes"
        )
    return _REGISTERED[name]


def table_merger(config: TableConfig) -> RecordMerger:
    """Return the table's merge rule; a custom rule uses the function that this program registered.

    Raises: UnsupportedError for a JVM merger, and for ordering fields inside structs; InvalidConfigError if the Python
    merger is not registered.
    """
    mode = config.merge_rule.mode
    nested = [name for name in config.ordering_fields if "." in name]
    if nested and mode is not MergeMode.COMMIT_TIME_ORDERING:
        raise UnsupportedError(
            f"the ordering field {nested[0]!r} of table {config.name!r} is inside a struct, which this release does "
            "not support; write to the table with JVM Hudi"
        )
    if mode is not MergeMode.CUSTOM:
        ordering = config.ordering_fields if mode is MergeMode.EVENT_TIME_ORDERING else ()
        return RecordMerger(mode, ordering)
    name = PYTHON_MERGER.get(config.raw)
    if not name:
        raise UnsupportedError(
            f"table {config.name!r} merges with {config.merge_rule.merger or config.payload_class!r}, which exists "
            "only in JVM Hudi; write to the table with JVM Hudi, or create a table with a Python merger"
        )
    return RecordMerger(mode, config.ordering_fields, registered_merger(name))


def check_ordering(merger: RecordMerger, schema: pa.Schema, config: TableConfig) -> None:
    """Check that the columns by which a merge orders exist.

    Raises: InvalidConfigError that names the column.
    """
    missing = [name for name in merger.ordering_columns if schema.get_field_index(name) < 0]
    if missing:
        raise InvalidConfigError(
            f"table {config.name!r}: ordering field {missing[0][:100]!r} expected among its columns, found "
            f"{', '.join(schema.names)[:500]}; correct hoodie.table.ordering.fields, or add the column"
        )
