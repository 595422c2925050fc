"""Compare `src/hoodie/config/hudi_options.tsv` with the configuration of a bundle of JVM Hudi.

Usage, with PySpark 3.5: python scripts/hudi_options.py BUNDLE.jar [--write]

Without `--write` it prints what differs, and the exit code is 1 if anything does. With `--write` keys and defaults are
those of the bundle; rows keep their fate and text, and a new key gets the fate `?`, which a test refuses.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "src" / "hoodie" / "config" / "hudi_options.tsv"
_HEAD = "key\tdefault\tfate\ttext\n"
_DEFAULT_CHARACTERS = 80


def options_of(bundle: str) -> dict[str, str]:
    """Return the default of each key, second names too; `""` for a key without a default, or with a long one."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.jars", bundle)
    session = spark.config("spark.driver.extraClassPath", bundle).config("spark.ui.enabled", "false").getOrCreate()
    found: dict[str, str] = {}
    for option in _options(session._jvm, bundle):
        default = str(option.defaultValue()) if option.hasDefaultValue() else ""
        default = default if len(default) <= _DEFAULT_CHARACTERS and "\n" not in default else ""
        others = option.getAlternatives()
        for key in (option.key(), *(others.get(number) for number in range(others.size()))):
            found.setdefault(key, default)
    session.stop()
    return found


def _options(jvm: Any, bundle: str) -> Iterator[Any]:
    """Yield the values of all fields that are options, of the classes whose names say that they have some."""
    files = [name for name in zipfile.ZipFile(bundle).namelist() if name.endswith(".class")]
    names = [name.removesuffix(".class").replace("/", ".") for name in files]
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    option_class = jvm.java.lang.Class.forName("org.apache.hudi.common.config.ConfigProperty", False, loader)
    for name in names:
        is_config = name.startswith("org.apache.hudi.") and name.count("$") <= 1
        if not is_config or not any(word in name.lower() for word in ("config", "options", "props")):
            continue
        found = jvm.java.lang.Class.forName(name, False, loader)
        for field in found.getDeclaredFields():
            if not field.getType().equals(option_class):
                continue
            field.setAccessible(True)
            is_static = jvm.java.lang.reflect.Modifier.isStatic(field.getModifiers())
            owner = None if is_static else found.getDeclaredField("MODULE$").get(None)
            option = field.get(owner)
            if option is not None:
                yield option


def main(arguments: list[str]) -> int:
    """Compare or write the table; return the exit code."""
    rows = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:]]
    stored = {key: (default, fate, text) for key, default, fate, text in rows}
    bundled = options_of(arguments[0])
    if "--write" in arguments:
        lines = (
            "\t".join((key, default, *(stored[key][1:] if key in stored else ("?", "")))) + "\n"
            for key, default in sorted(bundled.items())
        )
        TABLE.write_text(_HEAD + "".join(lines), "utf-8")
        return 0
    differences = [f"not in the table: {key}" for key in sorted(bundled.keys() - stored.keys())]
    differences += [f"not in the bundle: {key}" for key in sorted(stored.keys() - bundled.keys())]
    differences += [
        f"{key}: the table has the default {stored[key][0]!r}, the bundle {default!r}"
        for key, default in sorted(bundled.items())
        if key in stored and stored[key][0] != default
    ]
    print("\n".join(differences) or f"{len(stored)} keys, as in the bundle")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
