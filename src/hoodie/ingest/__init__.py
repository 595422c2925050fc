"""`hoodie.ingest`: batches of a source become commits of a table, each of them once.

The module is callable: `hoodie.ingest(source, table)` is `hoodie.ingest.run.ingest`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that is called as its main function; the function is loaded with the first call."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from hoodie.ingest.run import ingest

        return ingest(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
