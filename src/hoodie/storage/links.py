"""Keep a local store inside its folder: symbolic links of the table that lead out of it are refused.

The base path itself may be, or be below, a link. It is resolved once, when the first link is met. Links whose target is
in the table's folder are followed. This is no defence against a process that makes links while the store is used.
"""

from __future__ import annotations

import errno
import os
import stat

from hoodie.errors import PartitionPathError
from hoodie.storage.api import Store
from hoodie.storage.paths import join

_CHECKED_MAX = 10_000
"""Folders that are remembered as checked for reads. More of them are forgotten all at once."""


class LinkGuard:
    """Checks paths of one table for links. Thread-safe."""

    def __init__(self, root: str) -> None:
        """Make a guard of the folder `root`, an absolute path. Nothing is read."""
        self._root = root
        self._prefix = f"{root.rstrip('/')}/"
        self._real_root: str | None = None
        self._checked: set[str] = set()

    def check(self, path: str) -> None:
        """Check all folders on the way to `path`, and `path`: one `lstat` for each. What is missing is no link.

        Raises: PartitionPathError if a link leads outside the table's folder, to nothing, or back to itself.
        """
        end = 0 if path else -1
        while end >= 0:
            end = path.find("/", end + 1)
            current = path if end < 0 else path[:end]
            try:
                mode = os.lstat(f"{self._prefix}{current}").st_mode
            except (FileNotFoundError, NotADirectoryError):
                return
            if stat.S_ISLNK(mode):
                self.target(current)

    def check_parents(self, path: str) -> None:
        """Check the folders on the way to `path` as `check` does, but not `path` itself: it is not followed."""
        self.check(path.rpartition("/")[0])

    def check_read(self, path: str) -> None:
        """Check `path` for a read: one `lstat`, and one for each folder that this object has not checked before.

        Raises: as `check`.
        """
        folder = path.rpartition("/")[0]
        if folder not in self._checked:
            self.check(folder)
            if len(self._checked) >= _CHECKED_MAX:
                self._checked.clear()
            self._checked.add(folder)
        try:
            mode = os.lstat(f"{self._prefix}{path}").st_mode if path else 0
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISLNK(mode):
            self.target(path)

    def target(self, path: str) -> str:
        """Return the real path of a link.

        Raises: as `check`.
        """
        full = join(self._root, path)
        self._real_root = self._real_root or os.path.realpath(self._root)
        try:
            real = os.path.realpath(full, strict=True)
        except OSError as error:
            what = "goes in a circle" if error.errno == errno.ELOOP else "leads to nothing"
            raise self._refusal(full, f"{what} ({error.strerror})") from error
        if not _is_in(real, self._real_root):
            raise self._refusal(full, f"leads to {real}, outside the table's folder {self._real_root}")
        if _is_in(os.path.realpath(os.path.dirname(full)), real):
            raise self._refusal(full, f"goes in a circle: it leads to {real}, which contains it")
        return real

    @staticmethod
    def _refusal(full: str, what: str) -> PartitionPathError:
        return PartitionPathError(f"the symbolic link {full} {what}: replace it by the folder or file itself")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def folders_inside(store: Store, folder: str) -> tuple[list[str], list[str]]:
    """Return the folders directly in `folder`, sorted, and a note for each symbolic link that leads out of the store.

    No link of a local folder is followed: a folder inside of the store is found at its own place.

    Raises: StorageError, or OSError, if the folder cannot be listed; PartitionPathError if it is behind such a link.
    """
    if "://" in store.spec.uri:
        return store.folders(folder), []
    store.check_links([folder] if folder else [])
    folders, notes = [], []
    with os.scandir(join(store.spec.uri, folder) if folder else store.spec.uri) as entries:
        for entry in entries:
            path = join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_symlink():
                try:
                    store.check_links([path])
                except PartitionPathError as error:
                    notes.append(f"not followed: {error}")
    return sorted(folders), sorted(notes)
