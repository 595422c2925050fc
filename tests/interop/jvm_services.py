"""Cleans by a write client of the JVM: planned only, or executed too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.interop.judges import QUICK_OPTIONS, Jvm


def client_of(jvm: Jvm, path: Path, table_type: str, options: Mapping[str, str]) -> Any:
    """A write client of the JVM; the caller closes it."""
    settings = {
        **QUICK_OPTIONS,
        "hoodie.datasource.write.table.type": table_type.upper(),
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        **options,
    }
    java: Any = jvm.spark._jvm
    java_options = java.java.util.HashMap()
    for key, value in settings.items():
        java_options.put(key, value)
    return java.org.apache.hudi.DataSourceUtils.createHoodieClient(jvm.spark._jsc, "", str(path), "trips", java_options)


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
