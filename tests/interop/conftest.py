"""Fixtures of the interop lane: one session that runs JVM Hudi and hoodie side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.interop.judges import JVM_CONFS, Jvm
from tests.support.sessions import open_classic_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder, and grant it the time that JVM commits take."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jvm]:
    """JVM Hudi of the release of the bundle. A missing bundle or another PySpark fails the lane; it never skips."""
    import pyspark

    bundle = os.environ.get("HOODIE_JVM_BUNDLE", "")
    if not Path(bundle).is_file():
        pytest.fail(f"HOODIE_JVM_BUNDLE is '{bundle}', not the JVM Hudi bundle: run `make interop`", pytrace=False)
    if not pyspark.__version__.startswith("3.5."):
        pytest.fail(f"JVM Hudi needs PySpark 3.5, found {pyspark.__version__}: run `make interop`", pytrace=False)
    release = Path(bundle).stem.rpartition("-")[2]
    # 0.15 looks keys up in threads of Java's common pool, which do not see the classes of `spark.jars`: no delete in a
    # log could be read from then on.
    key = "spark.driver.extraClassPath" if release == "0.15.0" else "spark.jars"
    jars = {key: str(Path(bundle).resolve())}
    session = open_classic_session(tmp_path_factory.mktemp("warehouse"), {**JVM_CONFS, **jars})
    yield Jvm(session, scratch=tmp_path_factory.mktemp("jvm"), release=release)
    session.stop()


@pytest.fixture(scope="session")
def spark(jvm: Jvm) -> SparkSession:
    """The same session for our own writers, so that a test can alternate between the two."""
    return jvm.spark
