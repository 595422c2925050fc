"""The time and the parser of a Spark session; local sessions for programs that have none, such as the demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import TokenType
from sqlglot.errors import TokenError

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.sql.parse import tokens_of

_SIGNS: Final = ('"', "\\", "''")
_ANSI: Final = "spark.sql.ansi.enabled"
_NAMES: Final = "spark.sql.ansi.doubleQuotedIdentifiers"
_AS_WRITTEN: Final = "spark.sql.parser.escapedStringLiterals"
_JOINED: Final = "spark.sql.legacy.consecutiveStringLiterals.enabled"
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


def check_literals(session: Any, text: str) -> None:
    """Check that the session's parser gives the literals of an expression the values that this library gives them.

    Else Spark and this library would decide by different values which rows match and which files are read. Settings
    of the session are read only for a text with such literals.

    Raises: InvalidConfigError: names the text and the setting.
    """
    if not any(sign in text for sign in _SIGNS):
        return
    try:
        strings = [text[one.start : one.end + 1] for one in tokens_of(text) if one.token_type is TokenType.STRING]
    except TokenError:
        return  # The parser refuses the text.
    is_doubled = any(one[0] * 2 in one[1:-1] for one in strings)
    is_escaped = any("\\" in one for one in strings)
    if any(one.startswith('"') for one in strings) and _is_set(session, _ANSI) and _is_set(session, _NAMES):
        raise _other_value(text, f"{_NAMES}=true", "text in double quotes is a name", "write literals in single quotes")
    if (is_doubled or is_escaped) and _is_set(session, _AS_WRITTEN):
        meaning = "backslashes and doubled quotes in literals are characters"
        raise _other_value(text, f"{_AS_WRITTEN}=true", meaning, "set it to false")
    if is_doubled and (session.version.startswith("3.") or _is_set(session, _JOINED)):
        setting = "Spark 3" if session.version.startswith("3.") else f"{_JOINED}=true"
        raise _other_value(text, setting, "'it''s' is two literals, its", r"write a backslash before a quote: 'it\'s'")


def _is_set(session: Any, name: str) -> bool:
    # The default of this setting depends on the version of the server.
    found = session.conf.get(name) if name == _ANSI else session.conf.get(name, "false")
    return str(found).lower() == "true"


def _other_value(text: str, setting: str, meaning: str, advice: str) -> InvalidConfigError:
    return InvalidConfigError(f"{text[:300]!r}: with {setting} {meaning}, so that other rows would match: {advice}")


def open_local_session(name: str, confs: Mapping[str, str] | None = None) -> Any:
    """Start Spark in a JVM on this machine, on all its cores; `confs` replace the defaults of this module.

    Raises: UnsupportedError if Spark does not start: Java is missing or too old.
    """
    # Workers must run the interpreter in which hoodie is installed; `python3` on PATH may be another interpreter.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").appName(name).config(map={**_CONFS, **(confs or {})})
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
    builder = SparkSession.builder.appName(name).config(map={**confs})
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise UnsupportedError(f"Spark does not start: {error}") from error
