"""Instants of the metadata table that fill a whole partition. The data timeline has no instant of the same time.

docs/format/metadata.md §3.4, §3.9. A table's first partitions are filled at counters, `0000…`. An index that is built
while writers run is filled at the time of its indexing instant followed by the operation code of the indexer. This time
is greater than the time of every earlier instant, so that the files do not count as files of archived instants before
the build completes.
"""

from __future__ import annotations

from typing import Final

_COUNTER_BEGINS: Final = "0000"
_INSTANT_DIGITS: Final = 17
_INDEXER: Final = "004"
"""Operation code of the indexer. On disk: do not change."""


def build_time(indexing_time: str) -> str:
    """Return the metadata table's instant for an index build; `indexing_time` is its instant on the data timeline."""
    return f"{indexing_time}{_INDEXER}"


def fills_a_partition(instant_time: str) -> bool:
    """Return whether the instant fills a partition: it holds the entries of many instants of the data table.

    >>> fills_a_partition("00000000000000001"), fills_a_partition("20261121123616628004")
    (True, True)
    >>> fills_a_partition("20261121123616628")
    False
    """
    is_coded = len(instant_time) == _INSTANT_DIGITS + len(_INDEXER) and instant_time.endswith(_INDEXER)
    return is_coded or instant_time.startswith(_COUNTER_BEGINS)
