"""Compare the forms of automatic record keys, as RFC-76 does: bytes in Parquet, and the time to make them.

`python -m bench.automatic_keys ROWS REPEATS FORM` measures one form in a separate process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.child import figures_of, print_figures, tell
from bench.key_forms import COMMIT_TIME, OTHER_FORMS, Share
from bench.markdown import machine_line, seconds_text, table
from bench.picture import draw_key_sizes
from bench.settings import Settings, machine
from hoodie.records.keys.automatic_keys import automatic_keys

ORIGINAL = "commit time, partition, row"
CODECS = ("none", "snappy", "gzip", "zstd")
_PARTITIONS = 100
_RFC = {
    ORIGINAL: ("40.0", "2.4", "1"),
    "UUID v6": ("40.0", "14.5", "10"),
    "UUID v7": ("40.0", "14.5", "10"),
    "Base64": ("24.0", "2.0", "400"),
    "ASCII": ("19.0", "1.8", "400"),
}
"""The document's figures: bytes of a key, without and with compression, in a file of 100,000 keys; ratio of times."""


def _original(share: Share) -> pa.StringArray:
    return automatic_keys(COMMIT_TIME, share.partition, share.start, share.rows)


FORMS: dict[str, Callable[[Share], pa.StringArray]] = {ORIGINAL: _original, **OTHER_FORMS}


def run(settings: Settings) -> dict[str, Any]:
    """Measure each form, and draw the picture."""
    told = machine()
    rows, repeats = settings.automatic_keys, settings.automatic_repeats
    forms = {}
    for name in FORMS:
        tell(f"automatic keys, {name}: {rows:,} keys ...")
        forms[name] = figures_of("bench.automatic_keys", rows, repeats, name)
    result = {"machine": told, "rows": rows, "repeats": repeats, "forms": forms}
    draw_key_sizes(result, settings.keys_picture)
    return result


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each form: bytes of a key for each codec, seconds, and the figures of the document."""
    forms, count = result["forms"], result["rows"]
    head = ["bytes of a key", *CODECS, "seconds", "document: none", "compressed", "time"]
    rows = []
    for name, found in forms.items():
        sizes = [f"{found['bytes'][codec] / count:.2f}" for codec in CODECS]
        rows.append(
            [f"{name}: `{found['example']}`", *sizes, seconds_text(found["seconds"]), *_RFC.get(name, ("-",) * 3)]
        )
    title = (
        f"{count:,} keys of {_PARTITIONS} Spark partitions in one Parquet file without dictionaries, seconds to make "
        f"them, {machine_line(result['machine'])}, median of {result['repeats']} (least-greatest)"
    )
    return "\n".join([title, "", table(head, rows), ""])


def _measure(make: Callable[[Share], pa.StringArray], count: int, repeats: int) -> dict[str, Any]:
    shares = list(_shares(count))
    make(shares[0])
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        for share in shares:
            make(share)
        seconds.append(round(time.perf_counter() - started, 4))
    sizes = {codec: _column_bytes(map(make, shares), codec) for codec in CODECS}
    example = make(shares[-1])[-1].as_py()
    return {"seconds": seconds, "bytes": sizes, "example": "".join(c if c.isprintable() else "." for c in example)}


def _shares(count: int) -> Iterator[Share]:
    for partition in range(_PARTITIONS):
        yield Share(partition, 0, count // _PARTITIONS)


def _column_bytes(parts: Iterator[pa.StringArray], codec: str) -> int:
    """Return the size of the keys as a Parquet column, written as the key column of base files."""
    sink = pa.BufferOutputStream()
    schema = pa.schema([("_hoodie_record_key", pa.string())])
    with pq.ParquetWriter(sink, schema, compression=codec, use_dictionary=False, write_statistics=False) as writer:
        for part in parts:
            writer.write_table(pa.table([part], schema=schema))
    groups = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata
    return sum(groups.row_group(number).column(0).total_compressed_size for number in range(groups.num_row_groups))


def main() -> None:
    """Measure the form that the arguments name."""
    count, repeats, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    print_figures(_measure(FORMS[name], count, repeats))


if __name__ == "__main__":
    main()
