"""A worker of Spark without ISA-L writes and reads the same HFiles by zlib."""

from __future__ import annotations

import gzip

import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import compression
from hoodie.format.hfile.block import ChecksumType, checksums
from hoodie.format.hfile.compression import gunzip, gzip_member

PAYLOAD = bytes(range(256)) * 400


def member() -> bytes:
    return gzip_member(PAYLOAD, length_before=33, chunk_bytes=16 * 1024, checksum_bytes=4)


def payload_of(stored: bytes) -> bytes:
    return bytes(gunzip(memoryview(stored), len(PAYLOAD), path="f", offset=0))


def test_zlib_and_isa_l_read_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    by_isal, crcs = member(), checksums(PAYLOAD, ChecksumType.CRC32, 512)
    with monkeypatch.context() as patch:
        patch.setattr(compression, "igzip_lib", None)
        patch.setattr(compression, "isal_zlib", None)
        by_zlib = member()
        assert checksums(PAYLOAD, ChecksumType.CRC32, 512) == crcs
        assert payload_of(by_isal) == payload_of(by_zlib) == PAYLOAD
        for wrong, says in (
            (b"no gzip member", "does not decompress"),
            (by_zlib[:-9], "does not end at the end"),
            (by_zlib + b"x", "does not end at the end"),
            (gzip.compress(PAYLOAD + b"more"), "found more than"),
            (gzip.compress(PAYLOAD[:-1]), "payload bytes, found"),
        ):
            with pytest.raises(CorruptFileError, match=says):
                payload_of(wrong)
    assert payload_of(by_zlib) == PAYLOAD
    assert gzip.decompress(by_zlib) == PAYLOAD
