"""All access to file systems: list, ranged read, create-if-absent, replace, delete."""

from typing import TYPE_CHECKING, Any

from hoodie.storage.api import ExistingFileError, FileInfo, FileVersion, Store, StoreSpec, UnsyncedError
from hoodie.storage.disk import explained
from hoodie.storage.local import LocalStore, has_folder
from hoodie.storage.memory import MemoryStore, kept_value, memory_folder
from hoodie.storage.opening import open_store
from hoodie.storage.scratch import scratch_folder, scratch_input, scratch_output
from hoodie.storage.waves import (
    Sending,
    Started,
    ask,
    asking_ahead,
    asks_ahead,
    forget_answers,
    is_asked,
    later,
    settle,
    together,
)

if TYPE_CHECKING:
    from hoodie.storage.objects import ObjectStore

__all__ = [
    "ExistingFileError",
    "FileInfo",
    "FileVersion",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "Sending",
    "Started",
    "Store",
    "StoreSpec",
    "UnsyncedError",
    "ask",
    "asking_ahead",
    "asks_ahead",
    "explained",
    "forget_answers",
    "has_folder",
    "is_asked",
    "kept_value",
    "later",
    "memory_folder",
    "open_store",
    "scratch_folder",
    "scratch_input",
    "scratch_output",
    "settle",
    "together",
]


def __getattr__(name: str) -> Any:
    """Load `ObjectStore` when it is first used: it needs obstore."""
    if name == "ObjectStore":
        from hoodie.storage.objects import ObjectStore

        return ObjectStore
    raise AttributeError(f"module 'hoodie.storage' has no attribute {name!r}")
