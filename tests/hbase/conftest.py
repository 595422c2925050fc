"""Fixtures of the HBase lane: one server for all its tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.hbase_server import running_hbase


@pytest.fixture(scope="session")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real HBase's Thrift 2 server. Missing jars fail the lane; it never skips."""
    with running_hbase(tmp_path_factory.mktemp("hbase")) as port:
        yield port


@pytest.fixture
def options(hbase: int) -> dict[str, str]:
    """The properties of a new table with an HBase index of its own."""
    return {"hoodie.index.hbase.thrift.port": str(hbase), "hoodie.index.hbase.table": f"t{uuid.uuid4().hex}"}
