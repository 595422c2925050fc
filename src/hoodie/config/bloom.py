"""Options of the bloom indexes and of the bloom filters in base files."""

from __future__ import annotations

from typing import Final

from hoodie.config.option import Option, flag, one_of, positive, share

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
BLOOM_PRUNE: Final = Option(
    "hoodie.bloom.index.prune.by.ranges",
    True,
    flag,
    "0.4",
    "Bloom indexes: leave out files whose key range does not contain a key. false saves reading the ranges if keys are "
    "random.",
)
BLOOM_KEYS_PER_TASK: Final = Option(
    "hoodie.bloom.index.keys.per.bucket",
    10_000_000,
    positive,
    "0.4",
    "Bloom indexes: number of comparisons of a key with a file that one task does at most.",
)
BLOOM_UPDATE_PARTITION_PATH: Final = Option(
    "hoodie.bloom.index.update.partition.path",
    True,
    flag,
    "0.5",
    "Global bloom index: a record whose partition path changed moves to the new partition (true), or is updated in its "
    "old partition (false).",
)
BLOOM_USE_METADATA: Final = Option(
    "hoodie.bloom.index.use.metadata",
    False,
    flag,
    "0.11",
    "Bloom indexes: read the filters from the metadata partition bloom_filters if the table has it, not from footers.",
)
BLOOM_FILTERS_ENABLE: Final = Option(
    "hoodie.metadata.index.bloom.filter.enable",
    False,
    flag,
    "0.11",
    "New tables: store the bloom filter of each base file in the metadata table too.",
)
BLOOM_FILTERS_FILE_GROUPS: Final = Option(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    positive,
    "0.11",
    "File groups of a new metadata partition bloom_filters.",
)
