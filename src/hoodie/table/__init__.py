"""The handle that users hold: one thin method for each operation on a table.

`import hoodie` loads only this package and what its signatures need. A method imports its operation when it is called
(docs/decisions/0015-lazy-imports.md), so that a short program and each call of the command line start fast.
"""

from hoodie.table.handle import Table
from hoodie.table.opening import adopt, create, exists, open, rebuild_properties, register, unregister

__all__ = ["Table", "adopt", "create", "exists", "open", "rebuild_properties", "register", "unregister"]
