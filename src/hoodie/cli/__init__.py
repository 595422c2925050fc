"""The command line: parse the arguments, call the table, print the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from hoodie.cli.words import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit; see `hoodie.cli.app.main`. Ctrl-C while modules are loaded ends it quietly too."""
    try:
        from hoodie.cli.app import main as run

        run(arguments)
    except KeyboardInterrupt:
        print("hoodie: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


__all__ = ["main"]
