"""The tested versions in constraints/ are those of every dependency, within the bounds of pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.tidy.sources import ROOT

SPARK = {"spark", "connect", "demo", "test"}
FILES = {
    "newest.txt": (SPARK | {"dev", "bench", "site"}, ""),
    "spark-3.5.txt": (SPARK, "3.5."),
    "spark-4.0.txt": (SPARK, "4.0."),
}


@pytest.mark.parametrize("name", FILES)
def test_every_dependency_has_its_tested_version(name: str) -> None:
    extras, spark = FILES[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(text for extra in extras for text in project["optional-dependencies"][extra])]
    lines = (ROOT / "constraints" / name).read_text().splitlines()
    versions = dict(line.split("==") for line in lines if "==" in line)
    wrong = [text for text in wanted if not _holds(Requirement(text), versions)]
    assert not wrong, f"constraints/{name} has no version for these: run `make constraints`"
    assert versions["pyspark"].startswith(spark)


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_its_python_and_no_index(name: str) -> None:
    heading, *lines = (ROOT / "constraints" / name).read_text().splitlines()
    assert re.match(r"# Python 3\.\d+\. ", heading)
    assert [line for line in lines if not re.fullmatch(r"--only-binary [\w-]+|[\w-]+==[\w.!+]+", line)] == []


def test_every_constraint_file_is_checked() -> None:
    assert {path.name for path in (ROOT / "constraints").iterdir()} == FILES.keys()


def _holds(wanted: Requirement, versions: dict[str, str]) -> bool:
    version = versions.get(re.sub(r"[-_.]+", "-", wanted.name).lower())
    return version is not None and wanted.specifier.contains(version, prereleases=True)
