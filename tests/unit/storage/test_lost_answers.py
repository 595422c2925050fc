"""Conditional writes whose answer was lost, so that the client of the object store repeated them."""

from __future__ import annotations

from typing import Any, cast

from obstore.store import MemoryStore as Backend

from hoodie.storage.api import StoreSpec
from hoodie.storage.objects import ObjectStore

LOCK = ".hoodie/lock"


class Repeating:
    """A client that repeats each conditional put, as after an answer that was lost; another writer may come between."""

    def __init__(self, between: bytes | None = None) -> None:
        self.backend = Backend()
        self.between = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def put(self, path: str, data: bytes, **options: Any) -> Any:
        done = self.backend.put(path, data, **options)
        if not isinstance(options.get("mode"), dict):
            return done
        if self.between is not None:
            self.backend.put(path, self.between)
        return self.backend.put(path, data, **options)


def store_of(client: Repeating) -> ObjectStore:
    store = ObjectStore(cast(Any, client), StoreSpec("s3://bucket/table"))
    store.replace(LOCK, b"mine")
    return store


def test_a_renewal_whose_answer_was_lost_still_holds() -> None:
    store = store_of(Repeating())
    assert store.refresh(LOCK, b"mine")
    assert store.refresh(LOCK, b"mine")
    assert store.read(LOCK) == b"mine"


def test_a_renewal_after_which_another_writer_took_the_file_is_lost() -> None:
    store = store_of(Repeating(between=b"other"))
    assert not store.refresh(LOCK, b"mine")
    assert store.read(LOCK) == b"other"
