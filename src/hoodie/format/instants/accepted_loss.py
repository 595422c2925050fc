"""The files that a commit gave up, in its extra metadata (docs/operations/verify-and-repair.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from hoodie.format.instants.commit_metadata import CommitMetadata

ACCEPTED_LOSS: Final = "hoodie.python.accepted.loss"


def accepted_losses(commits: Iterable[CommitMetadata]) -> Iterator[str]:
    """Yield the paths of the files that commits gave up."""
    for commit in commits:
        try:
            found = json.loads((commit.extra_metadata or {}).get(ACCEPTED_LOSS) or "[]")
        except ValueError:
            continue
        yield from (path for path in found if isinstance(path, str)) if isinstance(found, list) else ()
