"""Look up tables in Spark's catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException


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
