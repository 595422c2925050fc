"""A program without PySpark: what needs Spark says what to install, and what needs none works."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["pyspark"] = None
import hoodie, pyarrow as pa
rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
table = hoodie.create("memory://t", rows, record_key="id")
table.upsert(rows)
assert table.to_arrow().num_rows == table.count() == table.read_keys(["a", "b"]).num_rows == 2
try:
    table.read()
except hoodie.UnsupportedError as error:
    assert "pip install 'hoodie[spark]'" in str(error), error
else:
    raise AssertionError("no error")
print("done")
"""


def test_what_needs_spark_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr
