"""The last step of an instant: a file is created in one atomic step, only while its writer holds the table's lock.

Why the step cannot be late is in docs/decisions/0014-fencing.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from hoodie.errors import CommitConflictError
from hoodie.storage import FileInfo, Store, UnsyncedError
from hoodie.storage.waves import send

OUTCOME_NOT_KNOWN = "The outcome is not known: read the rows, and run the operation again if they are missing"
"""End of the message if it cannot be seen whether the last step of an instant was done."""

_PREFIX = "prepared-"


@dataclass(frozen=True, slots=True)
class LastStep:
    """Last steps of the holder of a lock; `token` is the name of this holding, `locks` the folder of prepared files."""

    store: Store
    locks: str
    token: str
    _ahead: dict[bytes, list[tuple[str, Future[None]]]] = field(default_factory=dict)
    """What is prepared ahead: content -> path of each file, and its request."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    """Each prepared object has a name of its own: the previous object is deleted beside other work."""

    def prepare(self, content: bytes) -> None:
        """Write the file of a later `create` now, in an object store beside other work; elsewhere do nothing.

        Each call is for one `create`: two of the same content need two files.
        """
        if self.store.spec.is_remote:
            prepared = self._new_path()
            sent = send(partial(self.store.replace, prepared, content))
            self._ahead.setdefault(content, []).append((prepared, sent))

    def _new_path(self) -> str:
        number = f"{next(self._numbers)}-" if self.store.spec.is_remote else ""
        return f"{self.locks}/{_PREFIX}{number}{self.token}"

    def is_prepared(self, content: bytes) -> bool:
        """Return whether the content was prepared ahead, for each `prepare`; wait until it is."""
        found = self._ahead.get(content, [])
        return bool(found) and all(sent.exception() is None for _, sent in found)

    def clear(self) -> None:
        """Delete the files that were prepared ahead and not used."""
        for prepared, sent in itertools.chain.from_iterable(self._ahead.values()):
            with suppress(Exception):
                sent.result()
            with suppress(Exception):
                self.store.delete(prepared)
        self._ahead.clear()

    def create(self, path: str, content: bytes, ensure_held: Callable[[], None]) -> None:
        """Prepare the file, check the lock, move the file to `path`. Errors as `TableLock.create_last`."""
        ahead = self._ahead.get(content)
        prepared, sent = ahead.pop(0) if ahead else (self._new_path(), None)
        try:
            if sent is None:
                self.store.replace(prepared, content)
            else:
                sent.result()
            ensure_held()
        except BaseException:
            with suppress(Exception):
                self.store.delete(prepared)
            raise
        try:
            self.store.move(prepared, path)
        except Exception as error:
            if not self._was_created(prepared, path, content, error):
                raise

    def forbid_others(self, infos: Sequence[FileInfo]) -> None:
        """Delete what earlier holders prepared among these files, so that they cannot do their last step."""
        for info in infos:
            if info.name.startswith(_PREFIX) and not info.name.endswith(self.token):
                self.store.delete(info.path)

    def _was_created(self, prepared: str, path: str, content: bytes, error: Exception) -> bool:
        """Return whether the last step was done although it raised `error`: its answer may be lost.

        Raises: CommitConflictError: another writer took over the lock; or the outcome is not known.
        """
        is_over = False
        with suppress(OSError):
            self.store.delete(prepared)  # a request that is still on its way then finds nothing to move
            is_over = True
        try:
            has = self.store.read(path) == content
        except FileNotFoundError:
            has = False
        except OSError:
            has = is_over = False
        if has and not isinstance(error, UnsyncedError):
            return True
        if has or not is_over:
            raise CommitConflictError(
                f"the storage failed while {self.store.uri(path)} was created ({error}). {OUTCOME_NOT_KNOWN}"
            ) from error
        if isinstance(error, FileNotFoundError):
            raise CommitConflictError(
                f"{self.store.uri(path)} was not created: another writer took over the table's lock meanwhile. "
                "Nothing was committed: run the operation again"
            ) from error
        return False
