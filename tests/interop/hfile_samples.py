"""HFiles that a reader of the JVM judges: all entries by a scan, and each by a seek.

A judge is one Java class, compiled and run against the bundle, in one process for all files.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes


@dataclass(frozen=True)
class Sample:
    """Keys in the order of their bytes, and their values."""

    keys: pa.Array
    values: pa.Array


def _sample(keys: list[str], *, value_bytes: int = 40) -> Sample:
    ordered = sorted({key.encode() for key in keys})
    values = [(b"%d:" % number + key)[: 1 + number % value_bytes] for number, key in enumerate(ordered)]
    return Sample(pa.array(ordered, pa.binary()).cast(pa.string()), pa.array(values, pa.binary()))


def _million() -> Sample:
    digits = np.char.zfill(np.arange(1_000_000).astype("S7"), 7)
    return Sample(pa.array([b"key-" + text for text in digits.tolist()], pa.binary()), pa.array(digits.tolist()))


_EMOJI = ["\U0001f600", "\U0001f469\u200d\U0001f680", "\U0001f1eb\U0001f1f7", "\uffff", "\ue000", "\ufffd"]
_COMBINING = ["e\u0301", "é", "a\u0308\u0304", "क्षि", "\u1112\u1161\u11ab", "Z\u0351\u036b\u0343"]

SAMPLES = {
    "empty": lambda: _sample([]),
    "one": lambda: _sample(["a"]),
    "empty key": lambda: _sample(["", "a"]),
    "every length": lambda: _sample([char * length for length in range(1, 301) for char in "aé"]),
    "many of every length": lambda: _sample([f"{n:05d}" + "x" * (n % 296) for n in range(6000)]),
    "long keys": lambda: _sample(["k" * 32767, "l" * 20000, "l" * 20000 + "m"]),
    "long values": lambda: _sample([f"{number:04d}" * 300 for number in range(300)], value_bytes=5000),
    "emoji": lambda: _sample([a + b + c for a in _EMOJI for b in _EMOJI for c in "1\uffff\U0010ffff"]),
    "combining": lambda: _sample([f"{a}{b}{n}" for a in _COMBINING for b in _COMBINING for n in range(200)]),
    "control": lambda: _sample([chr(code) + chr(other) for code in range(128) for other in range(0, 128, 9)]),
    "million": _million,
}


def check_hfiles(judge: Path, folder: Path, *, libraries: str = "", leave_out: str = "") -> None:
    """Fail unless a Java class reads all samples but one, in every compression. `libraries`: more of its class path."""
    bundle = os.environ.get("HOODIE_JVM_BUNDLE", "")
    if not Path(bundle).is_file():
        pytest.fail(f"HOODIE_JVM_BUNDLE is '{bundle}', not the JVM Hudi bundle: run `make interop`", pytrace=False)
    path = os.pathsep.join([bundle, *([libraries] if libraries else [])])
    subprocess.run(["javac", "-cp", path, "-d", str(folder), str(judge)], check=True)
    expected = _written_samples(folder, leave_out)
    command = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", f"{path}{os.pathsep}{folder}", judge.stem, *expected]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert dict(zip(expected, done.stdout.splitlines(), strict=True)) == expected


def _written_samples(folder: Path, leave_out: str) -> dict[str, str]:
    """Write each sample; return what a judge has to print of each path."""
    expected: dict[str, str] = {}
    for name, make in SAMPLES.items():
        if name == leave_out:
            continue
        sample = make()
        count = len(sample.keys)
        told = f"{count} {count} {count} {_digest(sample.keys)} {_digest(sample.values)}"
        for codec in Compression:
            path = folder / f"{name}-{codec.name}.hfile"
            content = hfile_to_bytes(sample.keys, sample.values, schema_json='"bytes"', codec=codec)
            path.write_bytes(content)
            expected[str(path)] = told
            keys, values = HFileReader(content, path=name).entries()
            assert keys.equals(sample.keys.cast(pa.binary()))
            assert values.equals(sample.values)
    return expected


def _digest(column: pa.Array) -> str:
    """What the judge computes: each content, then its length in four bytes."""
    contents = column.cast(pa.binary()).to_pylist()
    pieces = chain.from_iterable((content, len(content).to_bytes(4, "big")) for content in contents)
    return hashlib.sha256(b"".join(pieces)).hexdigest()
