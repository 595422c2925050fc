"""HFile version 3: the sorted key-value files of the metadata table (docs/format/metadata.md §1)."""

from __future__ import annotations

from hoodie.format.hfile.compression import Compression
from hoodie.format.hfile.reader import KEPT_BYTES_MAX, HFileReader
from hoodie.format.hfile.source import ByteSource
from hoodie.format.hfile.writer import hfile_to_bytes

__all__ = ["KEPT_BYTES_MAX", "ByteSource", "Compression", "HFileReader", "hfile_to_bytes"]
