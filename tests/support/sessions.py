"""Small, quick Spark sessions for tests: classic, Connect, and classic with JVM Hudi on its class path."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Options that cannot change once the JVM runs. C1-only compilation saves seconds in sessions as short as ours. A heap
# that is large from the start saves an eighth of the CPU time: a small one is collected hundreds of times as it grows.
STATIC_CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms2g -Xmn1g",
}
SQL_CONFS = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
MASTER = "local[2]"
RETRIES = "local[2,4]"
"""As `MASTER`, but a task that fails runs again, up to four times."""
CLUSTER = "local-cluster[2,1,512]"
"""Two executors in processes of their own, with one core and 512 MB each: tasks that fail run again."""


def open_classic_session(
    warehouse: Path, confs: Mapping[str, str] | None = None, *, master: str = MASTER
) -> SparkSession:
    """Start Spark in a JVM of this process; `confs` win over the defaults above."""
    from pyspark.sql import SparkSession

    _use_this_python()
    builder = SparkSession.builder.master(master).appName("hoodie tests")
    all_confs = {**STATIC_CONFS, **SQL_CONFS, "spark.sql.warehouse.dir": str(warehouse), **(confs or {})}
    for key, value in all_confs.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def open_connect_session(
    warehouse: Path, confs: Mapping[str, str] | None = None, *, master: str = MASTER
) -> SparkSession:
    """Start a local Connect server, and a client session that knows no JVM; `confs` win over the defaults above."""
    from pyspark.sql import SparkSession

    _use_this_python()
    builder = SparkSession.builder.remote(master).appName("hoodie tests")
    all_confs = {**STATIC_CONFS, **SQL_CONFS, "spark.sql.warehouse.dir": str(warehouse), **(confs or {})}
    for key, value in all_confs.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        # The server has taken the static options at its start; the client tries to set them again, and warns.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        return builder.getOrCreate()


def cluster_confs() -> dict[str, str]:
    """Options of a session with `CLUSTER`: its executors find Spark, this Python and this package.

    The program must run no other Spark.
    """
    import pyspark

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    return {"spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def _use_this_python() -> None:
    """Workers run the interpreter of the tests: `python3` on PATH has no hoodie."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
