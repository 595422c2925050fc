"""Download HBase with its Thrift server to the given folder, for the tests: by Maven, else by Spark's resolver.

Usage: python scripts/fetch_hbase.py .cache/hbase-2.6.1   (without Maven, Python must have PySpark)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ARTIFACT = "org.apache.hbase:hbase-thrift"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>hoodie.tests</groupId><artifactId>hbase</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""


def main(target: Path) -> None:
    """Download the jars of the version that the name of the folder ends with, and all jars that they need."""
    coordinates = f"{ARTIFACT}:{target.name.rpartition('-')[2]}"
    print(f"Fetching {coordinates} and what it needs (about 110 MB, once) ...", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        jars = Path(scratch) / "jars"
        if not (_fetch_with_maven(coordinates, Path(scratch), jars) or _fetch_with_spark(coordinates, jars)):
            sys.exit(
                f"hoodie: {coordinates} could not be fetched; put its jars into {target} by hand, or install Maven"
            )
        whole = target.with_name(f"{target.name}.part")
        shutil.rmtree(whole, ignore_errors=True)
        shutil.copytree(jars, whole)
        shutil.rmtree(target, ignore_errors=True)
        whole.rename(target)


def _fetch_with_maven(coordinates: str, scratch: Path, jars: Path) -> bool:
    maven = shutil.which("mvn")
    if maven is None:
        return False
    group, name, version = coordinates.split(":")
    (scratch / "pom.xml").write_text(POM.format(group=group, name=name, version=version))
    goal = [f"{MAVEN_PLUGIN}:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    command = [maven, "-q", "-B", "-f", str(scratch / "pom.xml"), *goal]
    return subprocess.run(command, check=False).returncode == 0 and jars.is_dir()


def _fetch_with_spark(coordinates: str, jars: Path) -> bool:
    from pyspark.sql import SparkSession

    options = {
        "spark.jars.packages": coordinates,
        "spark.jars.ivy": str(jars.parent / "ivy"),
        # HBase depends on a runtime of Java that every JDK has, and asks for it as an artifact that does not exist.
        "spark.jars.excludes": "jdk.tools:jdk.tools",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]").appName("fetch HBase")
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        builder.getOrCreate().stop()
    except Exception as error:
        print(f"Spark's resolver failed: {error}", file=sys.stderr)
        return False
    found = jars.parent / "ivy" / "jars"
    if found.is_dir():
        found.rename(jars)
    return jars.is_dir()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
