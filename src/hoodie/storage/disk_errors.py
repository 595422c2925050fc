"""Errors of the operating system in one sentence: what it answered for which file, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.errors import StorageError

_ADVICE = {
    errno.EACCES: "give this user access to it, or choose another folder",
    errno.EPERM: "give this user access to it, or choose another folder",
    errno.ENOTDIR: "a file or a broken link is in the place of a folder",
    errno.EROFS: "mount the file system for writing, or choose another folder",
    errno.ENOSPC: "free some space and try again",
    errno.EDQUOT: "free some space and try again",
    errno.ENAMETOOLONG: "use shorter partition values, or another partition column",
    errno.ELOOP: "replace the symbolic links by the folders themselves",
}


def explanation(where: str, error: OSError) -> StorageError:
    """Return the error to raise instead of the system's; `where` is the file or folder."""
    advice = _ADVICE.get(error.errno or 0, "check the disk and try again")
    what = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
    return StorageError(f"{where}: {what}; {advice}", error.errno)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Raise `StorageError` instead of the system's errors, except for missing and existing files.

    For streaming writers, because Arrow writes without a call of the store.
    """
    try:
        yield
    except (StorageError, FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise explanation(where, error) from error
