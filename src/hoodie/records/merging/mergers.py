"""Custom mergers: functions of the writing program, known to a table by name only.

Nothing executable is ever read from a table: a program that writes to a table with a custom merger registers a function
under the stored name first.
"""

from __future__ import annotations

from hoodie.errors import InvalidConfigError
from hoodie.records.merging.merge import MergeFunction

_REGISTERED: dict[str, MergeFunction] = {}


def register_merger(name: str, function: MergeFunction) -> None:
    """Make a merge function known to this process under the name by which tables refer to it.

    The function gets two Arrow tables of the same rows, older and newer, and returns the merged one (see
    `records.merging.merge.MergeFunction`). It runs in workers, so it must be picklable. Registering a name again
    replaces it.
    """
    if not name or not name.isidentifier():
        raise InvalidConfigError(f"a merger's name must be an identifier such as 'sum_counts', got {name!r}")
    _REGISTERED[name] = function


def registered_merger(name: str) -> MergeFunction:
    """The function registered under a name.

    Raises: InvalidConfigError if this process registered none.
    """
    if name not in _REGISTERED:
        raise InvalidConfigError(
            f"the table merges with the Python merger {name!r}, which this program has not registered; call "
            f"hoodie.register_merger({name!r}, function) before it reads or writes"
        )
    return _REGISTERED[name]
