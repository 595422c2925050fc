"""Recipe of filters.json: JVM Hudi 1.2.0 builds a few small bloom filters. PySpark 3.5; run as a module."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.jvm_session import open_session

KEYS = [f"key-{i:06d}" for i in range(2000)] + ["é", "日本", "ab\u00ff", "naïve-клю́ч", "😀x", "😀xy", "😀"]
# name: entries, false positive rate, most entries of a dynamic filter, type, first key, number of keys
FILTERS = {
    "simple": (100, 1e-6, -1, "SIMPLE", 0, 100),
    "dynamic_overflow": (50, 1e-6, 200, "DYNAMIC_V0", 0, 2000),
    "dynamic_two_rows": (50, 1e-3, 200, "DYNAMIC_V0", 0, 60),
    "dynamic_uneven": (30, 1e-3, 100, "DYNAMIC_V0", 0, 500),
    "unicode": (20, 1e-6, -1, "SIMPLE", 2000, 7),
    "empty": (10, 1e-3, 20, "DYNAMIC_V0", 0, 0),
}


def main() -> None:
    """Write filters.json beside this file."""
    session = open_session()
    factory = session._jvm.org.apache.hudi.common.bloom.BloomFilterFactory
    made = {}
    for name, (entries, rate, entries_max, kind, first, count) in FILTERS.items():
        bloom = factory.createBloomFilter(entries, rate, entries_max, kind)
        for key in KEYS[first : first + count]:
            bloom.add(key)
        made[name] = {
            "filter_type": kind,
            "entries": entries,
            "false_positive_rate": rate,
            "entries_max": entries_max,
            "first_key": first,
            "key_count": count,
            "base64": bloom.serializeToString(),
        }
    Path(__file__).with_name("filters.json").write_text(json.dumps(made, indent=1))
    session.stop()


if __name__ == "__main__":
    main()
