"""Tables that mix the fields of two versions: version 6 in turns with JVM Hudi 0.15.0, version 8 with 1.0.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.judges import NEWEST_TABLE_VERSION, Jvm
from tests.interop.shared_mixing import take_turns
from tests.support.mixing_tables import PAYLOADS
from tests.support.seeds import seeded

RELEASES = ("0.15.0", "1.0.2")


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("payload", PAYLOADS)
@seeded(22)
def test_both_write_in_turns(older: Jvm, tmp_path: Path, payload: str, table_type: str, seed: int) -> None:
    take_turns(older, tmp_path / "mixed", payload, NEWEST_TABLE_VERSION[older.release], table_type, seed)
