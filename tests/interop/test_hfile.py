"""The reader of JVM Hudi 1.x reads the HFiles that we write."""

from __future__ import annotations

from pathlib import Path

from tests.interop.hfile_samples import check_hfiles


def test_the_jvm_reads_every_entry(tmp_path: Path) -> None:
    check_hfiles(Path(__file__).parent / "HFileJudge.java", tmp_path)
