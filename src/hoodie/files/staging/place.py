"""Where the staged files of one write are: in the table's folder, or in a scratch folder of this process.

The path of a staged file says which. Staged files in the table's folder are read by workers on other machines. Those of
a write that runs in this process only are scratch files, if the table is in an object store: each would cost requests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hoodie.files.markers import TEMP_FOLDER
from hoodie.storage import Store, scratch_input, scratch_output, scratch_root
from hoodie.timeline.owner import Owner

STAGE_PREFIX: Final = "stage-"
_SCRATCH: Final = "scratch:"


@contextlib.contextmanager
def stage_folder(store: Store, *, in_process: bool = False) -> Iterator[str]:
    """Yield a new folder for one write's staged files, and delete it at the end; else a later write deletes it.

    `in_process`: all of the write runs on threads of this process, so that its staged files may be on the local disk.
    """
    if in_process and store.spec.is_remote:
        with scratch_root() as root:
            yield f"{_SCRATCH}{root}"
        return
    owner = Owner.new()
    owner.run()
    folder = f"{TEMP_FOLDER}/{STAGE_PREFIX}{owner.short_name}"
    try:
        yield folder
    finally:
        owner.forget()
        with contextlib.suppress(Exception):
            store.delete_folder(folder)


def staged_output(store: Store, path: str) -> pa.NativeFile:
    """Open a streaming writer of a new staged file."""
    if not path.startswith(_SCRATCH):
        return store.open_output(path)
    return scratch_output(path.removeprefix(_SCRATCH))


def staged_input(store: Store, path: str) -> pa.NativeFile:
    """Open a random-access reader of a staged file."""
    if not path.startswith(_SCRATCH):
        return store.open_input(path)
    return scratch_input(path.removeprefix(_SCRATCH))
