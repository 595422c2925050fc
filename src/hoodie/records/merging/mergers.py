"""Custom mergers: functions of the program that uses a table; the table stores only their names.

No executable code is read from a table: a program registers a function under the stored name before it writes to a
table with a custom merger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoodie.arguments import check_arguments
from hoodie.errors import InvalidConfigError

if TYPE_CHECKING:
    from hoodie.records.merging.merge import MergeFunction

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
