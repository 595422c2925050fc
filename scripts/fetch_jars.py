"""Download what the tests run in a JVM: by Maven, otherwise by Spark's resolver.

Usage: python scripts/fetch_jars.py TARGET   (without Maven, Python must have PySpark)

TARGET is a JVM Hudi bundle of any release, such as `…/hudi-spark3.5-bundle_2.12-1.2.0.jar`, or one of the folders
`…/hbase-2.6.1`, HBase with its Thrift server; `…/kafka-3.9.1`, a Kafka broker; `…/connectors-4.2.0`, Spark's Kafka
connector of this release and the JDBC driver of PostgreSQL. A folder has all jars that its programs need.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HUDI_GROUP = "org.apache.hudi"
POSTGRESQL = "org.postgresql:postgresql:42.7.4"
# What a folder has, by its name without the release, and its size.
FOLDERS = {
    "hbase": ("org.apache.hbase:hbase-thrift:{}", "110 MB"),
    "kafka": ("org.apache.kafka:kafka_2.13:{}", "50 MB"),
    "connectors": (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{{}},{POSTGRESQL}", "20 MB"),
}
# PySpark has these jars, mostly of newer releases.
OF_PYSPARK = (
    "hadoop-client-",
    "scala-",
    "spark-tags_",
    "slf4j-",
    "jsr305-",
    "lz4-java-",
    "snappy-java-",
    "checker-qual-",
)
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>hoodie.tests</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def main(target: Path) -> None:
    """Download the jar or the folder of jars to `target`, whose name ends with the version."""
    is_jar = target.suffix == ".jar" and target.name.startswith("hudi")
    name, _, version = (target.stem if is_jar else target.name).rpartition("-")
    artifacts, megabytes = (f"{HUDI_GROUP}:{name}:{{}}", "") if is_jar else FOLDERS[name]
    coordinates = artifacts.format(version)
    size = "" if is_jar else f" and what it needs (about {megabytes}, once)"
    print(f"Fetching {coordinates}{size} ...", flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        jars = _with_maven(coordinates, Path(scratch)) or _with_spark(coordinates, Path(scratch))
        found = jars if jars is None or not is_jar else next(jars.glob(f"*{target.name}"), None)
        if found is None:
            sys.exit(
                f"hoodie: {coordinates} could not be fetched; put {'the jar' if is_jar else 'its jars'} at {target} by "
                "hand, or install Maven"
            )
        if name == "connectors":
            for jar in [jar for jar in found.iterdir() if jar.name.rpartition("org.")[2].startswith(OF_PYSPARK)]:
                jar.unlink()
        shutil.rmtree(target, ignore_errors=True)
        found.rename(target)


def _with_maven(coordinates: str, scratch: Path) -> Path | None:
    """Return a folder with the jars of the coordinates and all that they need; None without Maven, or if it fails."""
    maven = shutil.which("mvn")
    if maven is None:
        return None
    dependencies = "\n".join(DEPENDENCY.format(*one.split(":")) for one in coordinates.split(","))
    pom, jars = scratch / "pom.xml", scratch / "maven"
    pom.write_text(POM.format(dependencies=dependencies))
    goal = [f"{MAVEN_PLUGIN}:copy-dependencies", f"-DoutputDirectory={jars.resolve()}", "-DincludeScope=runtime"]
    done = subprocess.run([maven, "-q", "-B", "-f", str(pom), *goal], check=False)
    return jars if done.returncode == 0 and jars.is_dir() else None


def _with_spark(coordinates: str, scratch: Path) -> Path | None:
    """Return a folder with the jar and the jars that it needs; None if Spark's resolver fails."""
    from pyspark.sql import SparkSession

    ivy = scratch.resolve() / "ivy"
    options = {
        "spark.jars.packages": coordinates,
        "spark.jars.ivy": str(ivy),
        # HBase depends on a runtime of Java that every JDK has, and asks for it as an artifact that does not exist.
        "spark.jars.excludes": "jdk.tools:jdk.tools",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]").appName("fetch jars")
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        builder.getOrCreate().stop()
    except Exception as error:
        print(f"Spark's resolver failed: {error}", file=sys.stderr)
        return None
    return ivy / "jars" if (ivy / "jars").is_dir() else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
