"""Tables of versions 8 and 9 that mix the fields of two versions, in turns with JVM Hudi 1.2.0.

Judge of the logs of version 8 is 1.0.2 (tests/interop/older/test_mixed_fields_of_older_releases.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.judges import Jvm
from tests.interop.shared_mixing import take_turns
from tests.support.mixing_tables import PAYLOADS
from tests.support.seeds import seeded


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(("version", "table_type"), [(8, "COPY_ON_WRITE"), (9, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")])
@seeded(21)
def test_both_write_in_turns(jvm: Jvm, tmp_path: Path, version: int, payload: str, table_type: str, seed: int) -> None:
    take_turns(jvm, tmp_path / "mixed", payload, version, table_type, seed)
