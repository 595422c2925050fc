"""Writers that end in all the ways a writer can: in processes of their own, and on machines that are not here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hoodie.timeline.owner import Owner


@contextmanager
def other_process(table: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """Run `code` with `store` in another process; killed at the end without a chance to clean up."""
    program = (
        "import sys\nfrom hoodie.storage import LocalStore\nfrom hoodie.timeline import Heartbeat, TableLock\n"
        f"store = LocalStore({str(table)!r})\n{code}\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def on_another_machine() -> Owner:
    """A writer that cannot be seen from here."""
    return replace(Owner.new(), machine="another machine", host="elsewhere")
