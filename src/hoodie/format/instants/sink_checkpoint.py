"""The entry of a commit that names the newest batch of a stream, so that each batch is written once.

The JVM's streaming sink writes and reads `CHECKPOINT_KEY`: a JSON object of batch numbers, as text, by the identifier
of the stream. `QUERY_KEY` is ours, of the same form: the id of the query that numbered the batch. docs/streaming.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.errors import CorruptFileError

CHECKPOINT_KEY: Final = "_hudi_streaming_sink_checkpoint"
QUERY_KEY: Final = "_hoodie_streaming_sink_query"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCheckpoint:
    """A batch of a stream. `query`: id of the query that numbered it; None if not known, as in commits of the JVM."""

    identifier: str
    batch: int
    query: str | None = None

    def entries(self) -> dict[str, str]:
        """Return the entries of the extra metadata of the commit."""
        found = {CHECKPOINT_KEY: json.dumps({self.identifier: str(self.batch)}, separators=(",", ":"))}
        if self.query is not None:
            found[QUERY_KEY] = json.dumps({self.identifier: self.query}, separators=(",", ":"))
        return found

    @classmethod
    def of(cls, extra: Mapping[str, str], identifier: str, *, path: str) -> SinkCheckpoint | None:
        """Return the checkpoint of a stream from a commit's extra metadata; None if the commit is not of the stream.

        `path` names the commit in errors. Raises: CorruptFileError for text that is not such a JSON object.
        """
        batch = _texts(extra, CHECKPOINT_KEY, path).get(identifier)
        if batch is None:
            return None
        try:
            return cls(identifier=identifier, batch=int(batch), query=_texts(extra, QUERY_KEY, path).get(identifier))
        except ValueError as error:
            raise CorruptFileError(f"{CHECKPOINT_KEY}: expected a batch number, found {batch!r}", path=path) from error


def batches_of(extra: Mapping[str, str], *, path: str) -> dict[str, str]:
    """Return the numbers of the batches in a commit's extra metadata, as text, by the identifier of their stream.

    Raises: CorruptFileError, as `SinkCheckpoint.of`.
    """
    return _texts(extra, CHECKPOINT_KEY, path)


def _texts(extra: Mapping[str, str], key: str, path: str) -> dict[str, str]:
    text = extra.get(key)
    if not text:
        return {}
    try:
        found = json.loads(text)
        return {str(name): str(value) for name, value in found.items()}
    except (ValueError, AttributeError) as error:
        raise CorruptFileError(f"{key}: expected a JSON object, found {text!r}", path=path) from error
