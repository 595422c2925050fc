"""`config/hudi_options.tsv` has every option of the bundle of JVM Hudi, with its default."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.pages import ROOT


def test_the_table_of_options_is_that_of_the_bundle() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "hudi_options.py"), os.environ["HOODIE_JVM_BUNDLE"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "keys, as in the bundle" in done.stdout
