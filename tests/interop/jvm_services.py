"""Cleans by a write client of the JVM: planned only, or executed too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.judges import Jvm


def client_of(jvm: Jvm, path: Path, table_type: str, options: Mapping[str, str]) -> Any:
    """A write client of the JVM; the caller closes it."""
    settings = {
        "hoodie.datasource.write.table.type": table_type.upper(),
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        **options,
    }
    return jvm.write_client(path, "trips", settings)


def schedule_by_jvm(jvm: Jvm, path: Path, table_type: str, options: Mapping[str, str]) -> None:
    """Let the JVM plan a clean and put it on the timeline; it is not executed."""
    java: Any = jvm.spark._jvm
    client = client_of(jvm, path, table_type, options)
    try:
        kind = java.org.apache.hudi.common.model.TableServiceType.CLEAN
        nothing = java.org.apache.hudi.common.util.Option.empty()
        client.scheduleTableService(nothing, kind)
    finally:
        client.close()


def clean_by_jvm(jvm: Jvm, path: Path, table_type: str, options: Mapping[str, str]) -> None:
    client = client_of(jvm, path, table_type, options)
    try:
        client.clean()
    finally:
        client.close()
