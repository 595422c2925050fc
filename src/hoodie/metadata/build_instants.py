"""Instants of the metadata table that fill a partition as a whole, and have none of their own on the data timeline.

docs/format/metadata.md §3.4, §3.9. A table's first partitions are filled at counters, `0000…`. An index that is built
beside writers gets the time of its indexing instant with the operation code of the indexer: greater than the time of
every instant that was there before, so that its files do not count as files of archived instants before it completes.
"""

from __future__ import annotations

from typing import Final

_COUNTER_BEGINS: Final = "0000"
_INSTANT_DIGITS: Final = 17
_INDEXER: Final = "004"
"""Operation code of the indexer. On disk: do not change."""


def build_time(indexing_time: str) -> str:
    """The instant at which an index is filled that an indexing instant of the data timeline builds."""
    return f"{indexing_time}{_INDEXER}"


def fills_a_partition(instant_time: str) -> bool:
    """Whether the instant fills a partition: its entries are those of many instants of the data table.

    >>> fills_a_partition("00000000000000001"), fills_a_partition("20261121123616628004")
    (True, True)
    >>> fills_a_partition("20261121123616628")
    False
    """
    is_coded = len(instant_time) == _INSTANT_DIGITS + len(_INDEXER) and instant_time.endswith(_INDEXER)
    return is_coded or instant_time.startswith(_COUNTER_BEGINS)
