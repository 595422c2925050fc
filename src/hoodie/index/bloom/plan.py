"""Plan the comparisons of keys with files: which keys each file meets, and what one task does.

Comparisons are counted, not files: a file that meets many keys is divided, so that no task does more than a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hoodie.index.bloom.sorted_keys import KeySequence

FILE_COST: Final = 50_000
"""Comparisons that cost as much as reading the footer and the filter of a file."""
_TASK_COST_MIN: Final = 1_000_000
_TASKS_EACH: Final = 4
"""Tasks for each core, so that a task that takes longer does not run alone at the end."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Element i: the keys `first[i]` to `stop[i]` (exclusive) of a sequence are compared with a file.

    Files and sequences are numbers in lists of the caller. The elements of one file are neighbours.
    """

    file: Ints
    sequence: Ints
    first: Ints
    stop: Ints

    @classmethod
    def of(cls, sequences: Sequence[KeySequence]) -> Comparisons:
        """Return what the files meet of all sequences."""
        numbers = [np.full(len(found.files), number) for number, found in enumerate(sequences)]
        files, first, stop = (
            np.concatenate([getattr(found, name) for found in sequences] or [np.zeros(0, np.int64)])
            for name in ("files", "first", "stop")
        )
        order = np.argsort(files, kind="stable")
        sequence = np.concatenate(numbers or [np.zeros(0, np.int64)])
        return cls(files[order], sequence[order], first[order], stop[order])

    @property
    def costs(self) -> Ints:
        """What each element costs, in comparisons; the first element of a file includes reading its filter."""
        is_new = np.concatenate([[True], np.diff(self.file) != 0])[: len(self.file)]
        found: Ints = self.stop - self.first + is_new * FILE_COST
        return found

    def part(self, first: int, stop: int) -> Comparisons:
        """Return a few neighbouring elements."""
        here = slice(first, stop)
        return Comparisons(self.file[here], self.sequence[here], self.first[here], self.stop[here])

    def divided(self, most: int) -> Comparisons:
        """Divide each element into elements of at most `most` comparisons."""
        rows = self.stop - self.first
        parts = np.maximum(-(-rows // most), 1)
        which = np.repeat(np.arange(len(rows)), parts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)
        first = self.first[which] + number * most
        return Comparisons(self.file[which], self.sequence[which], first, np.minimum(first + most, self.stop[which]))


def tasks_of(found: Comparisons, *, bound: int, parallelism: int) -> list[Comparisons]:
    """Divide comparisons into tasks of about the same cost; no task does more than `bound` comparisons."""
    wanted = min(max(int(found.costs.sum()) // (parallelism * _TASKS_EACH), _TASK_COST_MIN), bound)
    pieces = found.divided(wanted)
    before = np.concatenate([[0], np.cumsum(pieces.costs)])
    rows_before = np.concatenate([[0], np.cumsum(pieces.stop - pieces.first)])
    tasks, start = [], 0
    while start < len(pieces.file):
        by_cost = int(np.searchsorted(before, before[start] + wanted, "right")) - 1
        by_rows = int(np.searchsorted(rows_before, rows_before[start] + wanted, "right")) - 1
        stop = max(min(by_cost, by_rows), start + 1)
        tasks.append(pieces.part(start, stop))
        start = stop
    return tasks
