"""Quote names for Spark SQL. It imports no parser, so that reads without a condition need none (decision 0015)."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a name between backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return f"`{name.replace('`', '``')}`"
