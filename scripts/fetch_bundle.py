"""Download the JVM Hudi bundle of the interop tests to the given path: by Maven, otherwise by Spark's resolver.

Usage: python scripts/fetch_bundle.py .cache/hudi-spark3.5-bundle_2.12-1.2.0.jar   (Python must have PySpark 3.5)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

GROUP = "org.apache.hudi"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


def main(target: Path) -> None:
    """Download the jar with the file name `artifact-version.jar` of `target` to `target`."""
    artifact, version = target.name.removesuffix(".jar").rsplit("-", 1)
    coordinates = f"{GROUP}:{artifact}:{version}"
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {coordinates} ...", flush=True)
    if not (_fetch_with_maven(coordinates, target) or _fetch_with_spark(coordinates, target)):
        sys.exit(f"hoodie: {coordinates} could not be fetched; put the jar at {target} by hand, or install Maven")


def _fetch_with_maven(coordinates: str, target: Path) -> bool:
    maven = shutil.which("mvn")
    if maven is None:
        return False
    goal = [f"{MAVEN_PLUGIN}:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={target.parent}"]
    done = subprocess.run([maven, "-q", "-B", *goal], check=False).returncode == 0
    return done and target.exists()


def _fetch_with_spark(coordinates: str, target: Path) -> bool:
    from pyspark.sql import SparkSession

    ivy = target.parent.resolve() / "ivy"
    builder = SparkSession.builder.master("local[1]").appName("fetch the JVM Hudi bundle")
    options = {"spark.jars.packages": coordinates, "spark.jars.ivy": str(ivy), "spark.ui.enabled": "false"}
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        builder.getOrCreate().stop()
    except Exception as error:
        print(f"Spark's resolver failed: {error}", file=sys.stderr)
        return False
    found = next(ivy.glob(f"jars/*{target.name}"), None)
    if found is not None:
        shutil.copyfile(found, target)
    return found is not None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
