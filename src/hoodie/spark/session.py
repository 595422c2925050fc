"""The time of a Spark session; local sessions for programs that have none, such as the demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie.errors import UnsupportedError

_CONFS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    # A session of one or two minutes is too short to gain from the JVM's second compiler.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def now(session: Any) -> tuple[datetime, date]:
    """Return the time, and its date in the time zone of the session; Spark runs no job."""
    query = "SELECT unix_micros(current_timestamp()) AS at, unix_date(current_date()) AS day"
    found = session.sql(query).collect()[0]
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=found["at"])
    return moment, date(1970, 1, 1) + timedelta(days=found["day"])


def open_local_session(name: str, confs: Mapping[str, str] | None = None) -> Any:
    """Start Spark in a JVM on this machine, on all its cores; `confs` replace the defaults of this module.

    Raises: UnsupportedError if Spark does not start: Java is missing or too old.
    """
    # Workers must run the interpreter in which hoodie is installed; `python3` on PATH may be another interpreter.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").appName(name)
    for key, value in {**_CONFS, **(confs or {})}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, FileNotFoundError) as error:
        raise UnsupportedError(
            f"Spark does not start ({error}): install a JDK 17 or 21 and put it on PATH or in JAVA_HOME"
        ) from error


def open_session(name: str, confs: Mapping[str, str]) -> Any:
    """Open the session of a long-running program with these settings.

    `spark.remote` in the settings: of a Spark Connect server. Under spark-submit: of its cluster. `spark.master`: of
    another cluster; else Spark starts on this machine.

    Raises: UnsupportedError if Spark does not start.
    """
    master = confs.get("spark.master", "local")
    if "spark.remote" not in confs and "PYSPARK_GATEWAY_PORT" not in os.environ and master.startswith("local"):
        return open_local_session(name, {"spark.driver.extraJavaOptions": "", **confs})
    builder = SparkSession.builder.appName(name)
    for key, value in confs.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise UnsupportedError(f"Spark does not start: {error}") from error
