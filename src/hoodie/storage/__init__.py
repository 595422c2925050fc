"""All access to file systems: list, ranged read, create-if-absent, replace, delete."""

from hoodie.storage.api import FileInfo, FileVersion, Store, StoreSpec, UnsyncedError
from hoodie.storage.disk_errors import explained
from hoodie.storage.faults import CrashError, CrashPoint, FaultStore
from hoodie.storage.local import LocalStore
from hoodie.storage.memory import MemoryStore
from hoodie.storage.objects import ObjectStore
from hoodie.storage.opening import open_store
from hoodie.storage.scratch import ScratchFolder, scratch_folder, scratch_input, scratch_output, scratch_root

__all__ = [
    "CrashError",
    "CrashPoint",
    "FaultStore",
    "FileInfo",
    "FileVersion",
    "LocalStore",
    "MemoryStore",
    "ObjectStore",
    "ScratchFolder",
    "Store",
    "StoreSpec",
    "UnsyncedError",
    "explained",
    "open_store",
    "scratch_folder",
    "scratch_input",
    "scratch_output",
    "scratch_root",
]
