"""Conditional writes whose answer was lost, so that the client of the object store repeated them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from obstore.store import MemoryStore as Backend

from hoodie.errors import StorageError
from hoodie.storage.api import ExistingFileError, FileVersion, StoreSpec
from hoodie.storage.objects import ObjectStore

LOCK = ".hoodie/lock"
CONTENTS = (b"", b"same for all writers")


class Repeating(Backend):
    """A client that repeats each conditional put, as after an answer that was lost; another writer may come between."""

    between: bytes | None = None
    before: bytes | None = None

    def put(self, path: str, file: Any, **options: Any) -> Any:
        if options.get("mode", "overwrite") == "overwrite":
            return super().put(path, file, **options)
        if self.before is not None:
            super().put(path, self.before)
        super().put(path, file, **options)
        if self.between is not None:
            super().put(path, self.between)
        return super().put(path, file, **options)


def store_of(client: Repeating) -> ObjectStore:
    store = ObjectStore(client, StoreSpec("s3://bucket/table"))
    store.replace(LOCK, b"mine")
    return store


def create(store: ObjectStore, content: bytes) -> bool:
    try:
        store.create("new", content)
    except ExistingFileError:
        return False
    return True


def replace(store: ObjectStore, content: bytes) -> bool:
    return store.replace_version(LOCK, content, store.read_version(LOCK)[1]) is not None


CALLS: dict[str, Callable[[ObjectStore, bytes], bool]] = {
    "create": create,
    "create a version": lambda store, content: store.replace_version("new", content, None) is not None,
    "replace a version": replace,
    "refresh": lambda store, content: store.refresh(LOCK, store.read(LOCK)),
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_whose_answer_was_lost_is_done(name: str, content: bytes) -> None:
    store = store_of(Repeating())
    assert CALLS[name](store, content)
    assert name == "refresh" or store.read(LOCK if "replace" in name else "new") == content


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_file_of_another_writer_is_not_ours_even_with_the_same_bytes(name: str, content: bytes) -> None:
    client = Repeating()
    store = store_of(client)
    if name == "refresh":
        store.replace(LOCK, content)
    client.between = content
    assert not CALLS[name](store, content)
    if "create" in name:
        client = Repeating()
        client.before = content
        assert not CALLS[name](store_of(client), content)


def test_the_version_that_a_repeated_put_returns_is_that_of_the_object() -> None:
    store = store_of(Repeating())
    written = store.replace_version(LOCK, b"other", store.read_version(LOCK)[1])
    assert written is not None
    assert written == store.read_version(LOCK)[1]
    assert store.replace_version(LOCK, b"third", FileVersion("no such version")) is None
    assert store.read(LOCK) == b"other"


def test_the_error_of_an_existing_file_is_ours_and_travels() -> None:
    store = store_of(Repeating())
    with pytest.raises(ExistingFileError, match="another process has created it") as caught:
        store.create(LOCK, b"")
    assert isinstance(caught.value, StorageError)
    assert isinstance(caught.value, FileExistsError)
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert (str(travelled), travelled.errno) == (str(caught.value), caught.value.errno)
