"""Tables on a local (or mounted) file system.

The process may stop at any point without leaving a half-written file that readers take for a complete file. A durable
store also syncs files and folders, in the order in which they depend on each other: what a call has written survives a
power failure once the call returns. By default the store syncs only the bytes of lock files (`is_never_empty`); the
JVM writer syncs nothing.
"""

from __future__ import annotations

import errno
import functools
import os
import uuid
from collections.abc import Callable, Iterable
from itertools import compress
from operator import attrgetter
from typing import Any, TypeVar, cast

import pyarrow as pa

from hoodie.errors import StorageError, UnsupportedError
from hoodie.storage.api import ExistingFileError, FileInfo, FileVersion, Store, StoreSpec, UnsyncedError
from hoodie.storage.disk import Disk, explanation, is_unsupported
from hoodie.storage.links import LinkGuard
from hoodie.storage.paths import (
    TEMPORARY_PREFIX,
    checked_deletable,
    checked_folder,
    checked_path,
    is_listed,
    is_never_empty,
    is_temporary,
    is_volatile,
    join,
    sidecar_name,
)

DURABLE = "durable"
"""The storage option of local tables; see `LocalStore`."""

_Entries = list[os.DirEntry[str]]
_T = TypeVar("_T")
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _explained(method: _Method) -> _Method:
    """Let the method raise `StorageError` instead of errors of the system, except for missing and existing files."""

    @functools.wraps(method)
    def call(self: LocalStore, path: str, *args: Any, **options: Any) -> Any:
        try:
            return method(self, path, *args, **options)
        except (FileNotFoundError, StorageError):
            raise
        except FileExistsError as error:
            raise ExistingFileError(self.uri(path)) from error
        except OSError as error:
            raise self._explanation(path, error) from error

    return cast(_Method, call)


class LocalStore(Store):
    """A table's folder on a local file system (see `Store`).

    It uses no object-store library: such libraries percent-encode names, and Hudi stores names without encoding. No
    call follows a symbolic link out of the table's folder (`LinkGuard`).
    """

    def __init__(self, base_path: str | os.PathLike[str], *, durable: bool = False, disk: Disk | None = None) -> None:
        """Open the folder; it may be missing. A relative path is relative to the working directory.

        With `durable`, each call that writes returns when a power failure cannot undo it, except for files that matter
        only while their writer runs. `disk` replaces the calls that change files, for tests.
        """
        self._root = os.path.abspath(base_path)
        self._prefix = f"{self._root.rstrip('/')}/"
        self._links = LinkGuard(self._root)
        self._durable = durable
        self._spec = StoreSpec(self._root, ((DURABLE, "true"),) if durable else ())
        self._disk = disk or Disk()

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r}{', durable=True' if self._durable else ''})"

    @property
    def spec(self) -> StoreSpec:
        """The description with which another process of this machine opens this store."""
        return self._spec

    def as_durable(self) -> LocalStore:
        """Return a store of the same folder that syncs what it writes."""
        return self if self._durable else LocalStore(self._root, durable=True, disk=self._disk)

    def uri(self, path: str) -> str:
        """Return `file://` and the path without percent-encoding, as Hadoop and Spark expect."""
        return f"file://{self._path(checked_folder(path))}"

    def folders(self, folder: str) -> list[str]:
        """Return the paths of the folders directly in `folder`, sorted; empty folders are included."""
        return sorted([join(folder, entry.name) for entry in self._entries(folder)[1] if entry.is_dir()])

    def names(self, folder: str) -> list[str]:
        files, others = self._entries(folder)
        names = [found.name for found in (*files, *(found for found in others if not found.is_dir()))]
        return sorted([name for name in names if name[0] != "." or is_listed(name)])

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        return [*self._found(folder, is_listed, recursive=recursive)]

    def temporary_files(self) -> tuple[FileInfo, ...]:
        """Return the half-written files of the whole folder: those that have no name yet in the place of a file."""
        return self._found("", is_temporary, recursive=True)

    def _found(self, folder: str, is_wanted: Callable[[str], bool], *, recursive: bool) -> tuple[FileInfo, ...]:
        found = []
        linked: set[str] = set()
        pending = [folder]
        while pending:
            current = pending.pop()
            prefix = f"{current}/" if current else ""
            files, others = self._entries(current)
            for entry in others:
                if not entry.is_dir():
                    files.append(entry)
                elif recursive:
                    self._check_once(f"{prefix}{entry.name}", entry, linked)
                    pending.append(f"{prefix}{entry.name}")
            for entry in files:
                if is_wanted(entry.name):
                    info = _file_info(f"{prefix}{entry.name}", entry.stat)
                    if info is not None:
                        found.append(info)
        return tuple(sorted(found, key=attrgetter("path")))

    @_explained
    def head(self, path: str) -> FileInfo | None:
        """Return size and change time of one file, or None if it does not exist or is a folder."""
        target = self._readable(path)
        info = None if os.path.isdir(target) else _file_info(path, lambda: os.stat(target))
        if info is None:
            self._check_root()
        return info

    @_explained
    def read(self, path: str) -> bytes:
        with open(self._readable(path), "rb") as file:
            return file.read()

    @_explained
    def read_range(self, path: str, start: int, length: int) -> bytes:
        with open(self._readable(path), "rb") as file:
            file.seek(start)
            return file.read(length)

    @_explained
    def create(self, path: str, data: bytes) -> None:
        """Create the file with all its bytes in one atomic step.

        Raises:
            ExistingFileError: the file exists.
            UnsupportedError: the file system has neither hard links nor a rename that replaces nothing. Then a file
                that is not empty cannot be created in one step.
        """
        target = self._changeable(path)
        syncs_bytes = self._syncs(path) or is_never_empty(path)
        self._with_parent(target, lambda: self._create(target, data, syncs_bytes))
        if self._syncs(path):
            self._disk.sync_folder(os.path.dirname(target))

    @_explained
    def replace(self, path: str, data: bytes) -> None:
        target = self._changeable(path)
        self._with_parent(target, lambda: self._replace(target, data, self._syncs(path)))

    @_explained
    def refresh(self, path: str, expected: bytes) -> bool:
        target = self._readable(path)
        try:
            with open(target, "rb") as file:
                if file.read(len(expected) + 1) != expected:
                    return False
                # Through the open file: if another process replaced the file meanwhile, its file is not changed.
                os.utime(file.fileno() if os.utime in os.supports_fd else target)
        except FileNotFoundError:
            return False
        return True

    @_explained
    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(self._changeable(path), ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def read_version(self, path: str) -> tuple[bytes, FileVersion]:
        """Refuse: files have no versions. Raises: UnsupportedError."""
        raise self._without_versions(path)

    def replace_version(self, path: str, data: bytes, version: FileVersion | None) -> FileVersion | None:
        """Refuse: no call of the system replaces a file only if it is unchanged. Raises: UnsupportedError."""
        raise self._without_versions(path)

    @_explained
    def move(self, source: str, target: str) -> None:
        """Give the file `source` the name `target`, in one atomic step. Raises: UnsyncedError."""
        old, new, synced = self._changeable(source), self._changeable(target), self._syncs(target)

        def moved() -> None:
            if synced:
                self._disk.sync_file(old)
            self._delete_sidecar(new)
            self._disk.rename(old, new)

        self._with_parent(new, moved)
        if synced:
            try:
                self._disk.sync_folder(os.path.dirname(new))
            except OSError as error:
                raise UnsyncedError(str(self._explanation(target, error)), error.errno) from error

    @_explained
    def delete(self, path: str) -> None:
        """Delete the file and its checksum sidecar; does nothing for a missing file. A link is deleted, not its target.

        A durable store syncs the deletion of data files: a rollback deletes them before it deletes the last trace of
        their instant.
        """
        target = self._changeable(path)
        self._delete_sidecar(target)
        if self._unlink(target) and self._syncs(path) and not path.startswith("."):
            self._disk.sync_folder(os.path.dirname(target))

    @_explained
    def delete_folder(self, folder: str) -> None:
        """Delete the folder and everything below it; does nothing if it does not exist. Links are not followed."""
        self._delete_tree(self._changeable(checked_deletable(folder)))

    @_explained
    def open_input(self, path: str) -> pa.NativeFile:
        """Open a random-access reader. Not memory-mapped: a truncated file must raise an error, not end the process."""
        return pa.OSFile(self._readable(path), mode="rb")

    @_explained
    def open_output(self, path: str) -> pa.NativeFile:
        """Open a streaming writer on the final name; the file is complete once it is closed without an error."""
        target = self._path(checked_path(path))
        self._links.check(path)

        def closed() -> None:
            if self._syncs(path):
                self._disk.sync_file(target)
                self._disk.sync_folder(os.path.dirname(target))

        def opened() -> pa.NativeFile:
            self._delete_sidecar(target)
            return self._disk.open_stream(target, closed)

        return self._with_parent(target, opened)

    def check_links(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._links.check_read(path)

    def check_writable(self) -> None:
        """Refuse a folder in which `create` cannot work. What exists of the path is tried; nothing is left there.

        Raises: StorageError, UnsupportedError.
        """
        folder = self._nearest_folder()
        names = [os.path.join(folder, f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}") for _ in range(2)]
        try:
            self._disk.write_new(names[0], b"x")
            self._publish(*names)
        except OSError as error:
            raise self._explanation("", error) from error
        finally:
            for name in names:
                self._unlink(name)

    def _without_versions(self, path: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.uri(path)}: expected an object store, which can replace a file only if it is unchanged; a local "
            "file system cannot do that. Use the file-system lock or ZooKeeper"
        )

    def _path(self, path: str) -> str:
        return f"{self._prefix}{path}" if path else self._root

    def _readable(self, path: str) -> str:
        target = self._path(checked_path(path))
        self._links.check_read(path)
        return target

    def _changeable(self, path: str) -> str:
        target = self._path(checked_path(path))
        self._links.check_parents(path)
        return target

    def _syncs(self, path: str) -> bool:
        return self._durable and not is_volatile(path)

    def _entries(self, folder: str) -> tuple[_Entries, _Entries]:
        """Return the files of a folder, and its folders and links."""
        target = self._path(checked_folder(folder))
        self._links.check_read(folder)
        try:
            entries = os.scandir(target)
        except (FileNotFoundError, NotADirectoryError):
            self._check_root()
            return [], []
        except OSError as error:
            raise self._explanation(folder, error) from error
        with entries:
            found = [*entries]
        are_files = [entry.is_file(follow_symlinks=False) for entry in found]
        files = [*compress(found, are_files)]
        others = [entry for entry, is_file in zip(found, are_files, strict=True) if not is_file]
        for entry in others:
            if entry.is_symlink() and is_listed(entry.name):
                self._links.target(join(folder, entry.name))
        return files, others

    def _check_once(self, path: str, entry: os.DirEntry[str], linked: set[str]) -> None:
        """Refuse a second link to one folder in a listing: links in a circle would list its files without an end."""
        if entry.is_symlink():
            real = self._links.target(path)
            if real in linked:
                raise StorageError(f"{self.uri(path)} is a second symbolic link to {real}: remove one of the two")
            linked.add(real)

    def _nearest_folder(self) -> str:
        """Return what exists of the base path."""
        folder = self._root
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        return folder

    def _check_root(self) -> None:
        """Refuse a base path that is a file, or below a file. A missing base path is a table without files."""
        folder = self._nearest_folder()
        if not os.path.isdir(folder) and not os.path.islink(folder):
            raise StorageError(f"{folder} is a file: expected the folder of a table; give the path of a folder")

    def _explanation(self, path: str, error: OSError) -> StorageError:
        self._check_root()
        return explanation(self._path(path), error)

    def _with_parent(self, target: str, action: Callable[[], _T]) -> _T:
        """Run `action`; if the folder of `target` is missing, create the folder and run `action` again."""
        try:
            return action()
        except FileNotFoundError:
            self._make_folder(os.path.dirname(target))
            return action()

    def _make_folder(self, folder: str) -> None:
        try:
            self._disk.make_folder(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
            return
        except FileNotFoundError:
            self._make_folder(os.path.dirname(folder))
            self._make_folder(folder)
            return
        if self._durable:
            self._disk.sync_folder(os.path.dirname(folder))

    def _create(self, target: str, data: bytes, syncs_bytes: bool) -> None:
        if not data:
            # An empty file is complete as soon as it exists: no temporary file is needed.
            self._disk.create_empty(target)
            # With the sidecar of a deleted file of this name, the JVM's checksum test of the new file would fail.
            self._delete_sidecar(target)
        else:
            if os.path.lexists(target):
                raise _exists(target)
            temporary = self._write_temporary(target, data, syncs_bytes)
            try:
                self._delete_sidecar(target)
                self._publish(temporary, target)
            finally:
                self._unlink(temporary)

    def _publish(self, temporary: str, target: str) -> None:
        """Give a whole file its final name if no file has it."""
        try:
            try:
                self._disk.link(temporary, target)
            except OSError as error:
                if not is_unsupported(error):
                    raise
                self._disk.rename_new(temporary, target)
        except FileExistsError:
            if not _is_same_file(temporary, target):  # else a network file system lost the answer and tried again
                raise _exists(target) from None
        except OSError as error:
            if not is_unsupported(error):
                raise
            raise UnsupportedError(
                f"the file system of {os.path.dirname(target)} has neither hard links nor a rename that replaces "
                f"nothing ({error.strerror}), so two writers could create one file: such a table can be read, but not "
                "written; keep it on another file system or in an object store"
            ) from error

    def _replace(self, target: str, data: bytes, synced: bool) -> None:
        temporary = self._write_temporary(target, data, synced)
        try:
            # Delete the sidecar first: the JVM reads a file without a sidecar, but not a file with a wrong checksum.
            self._delete_sidecar(target)
            self._disk.rename(temporary, target)
        except BaseException:
            self._unlink(temporary)
            raise
        if synced:
            self._disk.sync_folder(os.path.dirname(target))

    def _write_temporary(self, target: str, data: bytes, synced: bool) -> str:
        temporary = f"{target.rpartition('/')[0]}/{TEMPORARY_PREFIX}{os.urandom(16).hex()}"
        try:
            self._disk.write_new(temporary, data)
            if synced:
                self._disk.sync_file(temporary)
        except BaseException:
            self._unlink(temporary)
            raise
        return temporary

    def _delete_sidecar(self, target: str) -> None:
        folder, _, name = target.rpartition("/")
        self._unlink(f"{folder}/{sidecar_name(name)}")

    def _unlink(self, target: str) -> bool:
        """Remove the name; return whether it existed."""
        try:
            self._disk.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _delete_tree(self, folder: str) -> None:
        """Delete a folder. Other processes may delete in it, or add to it, at the same time."""
        if os.path.islink(folder):
            self._unlink(folder)
            return
        while True:
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            self._delete_tree(entry.path)
                        else:
                            self._unlink(entry.path)
                self._disk.remove_folder(folder)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                return


def _exists(target: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _file_info(path: str, stat: Callable[[], os.stat_result]) -> FileInfo | None:
    """Return path, size and change time of a file, or None if it was deleted after the listing."""
    try:
        status = stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FileInfo(path, status.st_size, status.st_mtime_ns // 1_000_000)


def has_folder(store: Store) -> bool:
    """Return whether the folder of a store exists; True for stores that have no folders without files."""
    return "://" in store.spec.uri or os.path.isdir(store.spec.uri)
