"""Custom mergers: functions of the program that uses a table; the table stores only their names.

No executable code is read from a table: a program registers a function under the stored name before it writes to a
table with a custom merger.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING

from hoodie.arguments import check_arguments
from hoodie.errors import InvalidConfigError

if TYPE_CHECKING:
    import pyarrow as pa

MergeFunction = Callable[["pa.Table", "pa.Table"], "pa.Table | tuple[pa.Table, pa.BooleanArray]"]
"""A custom merger: `(older, newer) -> merged`, or `(merged, deleted)`.

Both tables have the table's data columns and the same number of rows; row i of both is the same record. The function
returns as many rows in the same order. The record is deleted where the boolean array `deleted` is true.
"""
_REGISTERED: dict[str, MergeFunction] = {}


@check_arguments
def register_merger(name: str, function: MergeFunction) -> None:
    """Register a merge function in this process under the name that tables store.

    The function gets two Arrow tables with the older and the newer versions of the same records, and returns a table of
    merged rows (see `MergeFunction`). It runs in workers, so it must be picklable. Registering
    a name again replaces the function.

    Raises: InvalidConfigError for a name that is no identifier.

    >>> import hoodie, pyarrow as pa, pyarrow.compute as pc
    >>> def summed(older, newer):
    ...     return newer.set_column(newer.schema.get_field_index("n"), "n", pc.add(older["n"], newer["n"]))
    >>> hoodie.register_merger("summed", summed)
    >>> t = hoodie.create("memory://doc-register-merger", {"id": ["a"], "n": [1]}, record_key="id", merge_mode=summed)
    >>> [t.upsert({"id": ["a"], "n": [1]}).updated for _ in range(3)], t.to_arrow(["n"]).to_pylist()
    ([0, 1, 1], [{'n': 3}])
    """
    _check_name(name)
    _REGISTERED[name] = function


def check_merger(name: str, function: MergeFunction) -> None:
    """Check that a table can store the name for the function: no other function is registered under the name.

    A function that is defined again by the same code is the same function, such as a cell that runs again.

    Raises: InvalidConfigError.
    """
    _check_name(name)
    found = _REGISTERED.get(name)
    if found is not None and not _are_same(found, function):
        raise InvalidConfigError(
            f"the Python merger {name!r} is another function in this program, from module {_module(found)!r}, and its "
            f"tables would merge by the function from {_module(function)!r}: rename one of the functions, or replace "
            f"the registered function for all tables by hoodie.register_merger({name!r}, function)"
        )


def _check_name(name: str) -> None:
    if not name or not name.isidentifier():
        raise InvalidConfigError(f"a merger's name must be an identifier such as 'sum_counts', got {name!r}")


def _module(function: MergeFunction) -> str:
    return str(getattr(function, "__module__", None))


def _are_same(one: MergeFunction, other: MergeFunction) -> bool:
    """Return whether two functions are one, or have the same code and nothing else that decides their result."""
    if one == other:
        return True
    if not (isinstance(one, FunctionType) and isinstance(other, FunctionType)):
        return False
    holds_values = any(found.__closure__ or found.__defaults__ or found.__kwdefaults__ for found in (one, other))
    is_same_place = (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
    return is_same_place and one.__code__ == other.__code__ and not holds_values


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
