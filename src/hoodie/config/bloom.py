"""Options of the bloom indexes and of the bloom filters in base files."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, one_of, positive, share

BLOOM_ENTRIES: Final = Option(
    "hoodie.index.bloom.num_entries",
    60_000,
    positive,
    "0.4",
    "Bloom filters: number of keys for which a filter (simple) or one of its rows (dynamic_v0) is made. The size of a "
    "filter follows from it and from the rate of false positives, not from the keys in the file.",
)
BLOOM_RATE: Final = Option(
    "hoodie.index.bloom.fpp",
    1e-9,
    share,
    "0.4",
    "Bloom filters: share of absent keys that a filter reports as present, at the number of keys for which it is made.",
)
BLOOM_FILTER_TYPE: Final = Option(
    "hoodie.bloom.index.filter.type",
    "dynamic_v0",
    one_of("simple", "dynamic_v0"),
    "0.5",
    "Bloom filters: of one size (simple), or with a further row when a row is full (dynamic_v0).",
)
BLOOM_ENTRIES_MAX: Final = Option(
    "hoodie.bloom.index.filter.dynamic.max.entries",
    100_000,
    positive,
    "0.5",
    "Bloom filters of type dynamic_v0: keys after which no row is added. More keys than this in one file raise the "
    "rate of false positives: set it to the number of records of a full file.",
)
