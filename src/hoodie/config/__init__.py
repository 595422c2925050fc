"""The `hoodie.*` options that hoodie uses: key, type, default, first release, meaning; a module for each subject.

Options are given at creation (`properties=`, stored in hoodie.properties), or for one write (`properties=` of the
call, which take precedence). An option that is neither in this list nor a table property is refused: otherwise a
misspelt option would be ignored silently.
"""

from __future__ import annotations

from hoodie.config.known import OPTIONS, check_options, check_sizes
from hoodie.config.option import Option, flag, one_of

__all__ = ["OPTIONS", "Option", "check_options", "check_sizes", "flag", "one_of"]
