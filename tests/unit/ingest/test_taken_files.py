"""Files that leave their folder, on an object store that refuses to delete them."""

from __future__ import annotations

from typing import Any

import obstore.store
import pytest
from obstore.exceptions import PermissionDeniedError

from hoodie.errors import StorageError
from hoodie.ingest.source import Batch, Request
from hoodie.ingest.sources.files import Files
from hoodie.storage import StoreSpec
from hoodie.storage.objects import ObjectStore


class Keeping(obstore.store.MemoryStore):
    """A service that refuses to delete the files of the source, but not what the source created."""

    refuses = True

    def delete(self, paths: Any, *args: Any, **kwargs: Any) -> Any:
        if self.refuses and "a.json" in paths:
            raise PermissionDeniedError("403")
        return super().delete(paths, *args, **kwargs)


@pytest.mark.parametrize("after", ["archive", "delete"])
def test_a_file_that_cannot_be_deleted_is_not_read_twice(after: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Keeping()
    store = ObjectStore(service, StoreSpec("s3://bucket/landing"))
    monkeypatch.setattr(Files, "_store", lambda _self: store)
    source = Files(path="x", after=after, archive="_done" if after == "archive" else None, lag_seconds=0)
    store.replace("a.json", b'{"id":1}\n')
    batch = _planned(source)
    batch.read()
    assert batch.after_commit is not None
    with pytest.raises(StorageError, match=r"a\.json"):
        batch.after_commit()
    with pytest.raises(StorageError, match=r"a\.json"):
        source.plan(Request(after=batch.place))
    service.refuses = False
    assert source.plan(Request(after=batch.place)) is None
    assert {info.path.partition("/")[0] for info in store.list("", recursive=True)} <= {"_done"}
    store.replace("b.json", b'{"id":2}\n')
    assert _planned(source, batch.place).about.startswith("1 files")


def _planned(source: Files, after: str | None = None) -> Batch:
    found = source.plan(Request(after=after))
    assert found is not None
    return found
