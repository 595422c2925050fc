"""The policy of an insert for rows whose keys the table has: count them, ignore them, or refuse the write.

JVM Hudi has the same option, and stores such rows as further rows by default. With a record index that is worse than
without: the index has one location for each key. So small inserts are looked up, and the result reports what was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hoodie.config import writes
from hoodie.errors import RecordKeyError, UnsupportedError
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, keys_of_rows, write_hits
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index import index_kind, index_of
from hoodie.storage import Store
from hoodie.write.options import wants_look_up
from hoodie.write.setup import WriteSetup
from hoodie.write.staging import Staged

_SHOWN = 3
_COUNTED_BYTES = 1 << 20


def looks_up_keys(setup: WriteSetup, operation: WriteOperation) -> bool:
    """Return whether a write looks up its keys. An insert does: by its policy, or because the look-up is cheap.

    Raises: UnsupportedError if the policy requires it, and the index does not look up keys.
    """
    is_wanted = wants_look_up(operation, setup.view.config, setup.data, setup.options)
    if not is_wanted or operation is not WriteOperation.INSERT:
        return is_wanted
    policy = writes.INSERT_DUP_POLICY.get(setup.options)
    if policy != "none" and setup.places_rows:
        raise UnsupportedError(
            f"{writes.INSERT_DUP_POLICY.key}={policy}: the index {setup.index.name!r} does not look up whether the "
            "table has a key; use upsert, which merges the rows"
        )
    return policy != "none" or (setup.index.indexes_logs and not setup.places_rows)


def for_look_up(setup: WriteSetup) -> WriteSetup:
    """Return the setup with an index that decides no moves: an insert only looks whether the table has a key."""
    moves = index_kind(setup.index.name).moves_option
    if moves is None:
        return setup
    return replace(setup, index=index_of(setup.view, {**setup.options, moves.key: "false"}))


def known_rows(store: Store, hits: Sequence[StagedHits]) -> npt.NDArray[np.int64]:
    """Return the ordinals of the staged rows that have a hit, ascending. Memory: 8 bytes for each hit."""
    with StageReader(store) as reader:
        found = [np.asarray(reader.read(hit).column("row")) for hit in hits]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


def known_row_count(store: Store, hits: Sequence[StagedHits]) -> int:
    """Return the number of staged rows that have a hit. Memory: one bit for each staged row, and the hits of one file.

    A row counts once, however many file groups have its key.
    """
    seen = np.zeros((max((hit.last for hit in hits), default=-1) >> 3) + 1, np.uint8)
    with StageReader(store) as reader:
        for hit in hits:
            # The ordinals of one batch ascend: the bits of one byte are neighbours.
            rows = np.asarray(reader.read(hit).column("row"))
            places = rows >> 3
            starts = np.flatnonzero(np.diff(places, prepend=-1))
            bits = np.left_shift(1, rows & 7).astype(np.uint8)
            seen[places[starts]] |= np.bitwise_or.reduceat(bits, starts)
    return sum(
        int(np.unpackbits(seen[start : start + _COUNTED_BYTES]).sum()) for start in range(0, len(seen), _COUNTED_BYTES)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKeys:
    """Rows that are not inserted, because the table has their keys or (`known_only`) has not: `hits` exclude them."""

    hits: tuple[StagedHits, ...] = ()
    ignored: int = 0
    notes: tuple[str, ...] = ()


def apply_policy(
    setup: WriteSetup, runs: Sequence[StagedRun], hits: Sequence[StagedHits] | None, folder: str
) -> KnownKeys:
    """Apply the policy to the rows with known keys; `hits` is None if no keys were looked up.

    Raises: RecordKeyError if the policy is to fail and the table has some of the keys.
    """
    policy, option = writes.INSERT_DUP_POLICY.get(setup.options), writes.INSERT_DUP_POLICY.key
    store = setup.view.store
    if hits is None:
        asks_nothing = setup.has_automatic_keys or setup.places_rows or not setup.index.indexes_logs
        if asks_nothing or not setup.view.completed_writes():
            return KnownKeys()
        unknown = f"keys were not looked up: a record that the table had may be stored twice; {option}=drop or fail"
        return KnownKeys(notes=(f"{unknown} looks them up, and upsert merges",))
    known = known_rows(store, [hit for hit in hits if hit.file_id])
    if not len(known):
        return KnownKeys()
    if policy == "fail":
        shown = keys_of_rows(store, runs, known[:_SHOWN])
        raise RecordKeyError(
            f"{len(known):,} rows have keys that {store.uri('')} has, e.g. {shown}, and "
            f"{option}=fail; use upsert, or {option}=drop to ignore the rows"
        )
    if policy == "drop":
        dropped = write_hits(store, f"{folder}/known.arrow", [("", "", known, np.zeros(len(known), np.int8))])
        return KnownKeys(hits=tuple(dropped), ignored=len(known))
    stored_twice = f"{len(known):,} rows have keys that the table has: these records are stored twice now"
    return KnownKeys(notes=(f"{stored_twice}; use upsert, or {option}=drop or fail",))


def known_only(setup: WriteSetup, staged: Staged, hits: Sequence[StagedHits], folder: str) -> KnownKeys:
    """Exclude the rows whose keys the table has not, where other rows are inserted into the partition they move to.

    Memory: 9 bytes for each staged row.
    """
    store, is_known = setup.view.store, np.zeros(staged.rows, np.bool_)
    is_known[known_rows(store, hits)] = True
    unknown = np.flatnonzero(~is_known)
    if not len(unknown):
        return KnownKeys(hits=tuple(hits))
    excluded = write_hits(store, f"{folder}/unknown.arrow", [("", "", unknown, np.zeros(len(unknown), np.int8))])
    return KnownKeys(hits=(*hits, *excluded))
