"""Local Spark sessions for programs that have none, such as the demo, and look-ups in Spark's catalog."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException, PySparkException
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


def catalog_path(session: Any, name: str, providers: Sequence[str]) -> str | None:
    """Return the location of a table that was created with one of these providers; None for other names and for views.

    `name` is quoted. DESCRIBE of Spark 4.3 leaves out the provider and the location of tables with a Python data
    source. A classic session asks Spark's catalog for them; Spark Connect has no way to them.
    """
    try:
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except AnalysisException:
        return None
    facts = {row[0]: row[1] or "" for row in rows}
    provider, location = facts.get("Provider", ""), facts.get("Location", "")
    if not provider and "Database" in facts and hasattr(session, "_jsparkSession"):
        state = session._jsparkSession.sessionState()
        known = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
        provider = str(known.provider().get()) if known.provider().isDefined() else ""
        uri = known.storage().locationUri()
        location = str(uri.get()) if uri.isDefined() else ""
    return _path(location) if provider.lower() in providers and location else None


def _path(location: str) -> str:
    """Return the path of a file URI, and other URIs as they are."""
    return unquote(location.removeprefix("file:").removeprefix("//")) if location.startswith("file:") else location
