"""The entries of a commit that store where an ingestion goes on, with the keys and forms of HoodieStreamer.

A *place* is the text of a source: offsets of Kafka, a time of files, a value of a column, an instant of a Hudi table.
Version 1 of the keys stores it for all sources. Version 2 is for Hudi tables as sources, whose places are completion
times; releases 1.0 to 1.2 of Hudi write version 2 for every source. Several jobs that write one table keep their places
by name in one JSON object. docs/ingest/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.errors import CorruptFileError, InvalidConfigError

_PLACE: Final = "deltastreamer.checkpoint.key"
_START: Final = "deltastreamer.checkpoint.reset_key"
_IGNORED: Final = "deltastreamer.checkpoint.ignore_key"
_PLACE_V2: Final = "streamer.checkpoint.key.v2"
_START_V2: Final = "streamer.checkpoint.reset.key.v2"
_STARTED: Final = "_hoodie_ingest_start"
"""Ours: the starts, the ignored places and version 2 of the places of jobs with a name, by name."""
KEYS: Final = (_PLACE, _START, _IGNORED, _PLACE_V2, _START_V2, _STARTED)
"""All keys of the extra metadata that this module reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestCheckpoint:
    """Where an ingestion goes on.

    `place`: where the next batch begins; None if no place is stored. `start`: the place that the user gave for a start;
    the same start counts once. `ignored`: the same for a request to ignore what is stored. `version`: of the keys.
    """

    place: str | None
    start: str | None = None
    ignored: str | None = None
    version: int = 1

    def entries(self, name: str | None = None, others: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the entries of the extra metadata of a commit.

        `name`: of the job, if several write the table; `others`: the entries of the newest commit with a place of a
        named job, whose places the new entries keep. Raises: InvalidConfigError for a place of an ambiguous form.
        """
        if name is not None:
            return self._of_several(name, others or {})
        if _json_object(self.place) is not None:
            raise InvalidConfigError(
                f"place {self.place!r}: a JSON object of texts has the form of the places of named flows: give the "
                "flow a name (name=), or return a place of another form"
            )
        place, start = (_PLACE, _START) if self.version == 1 else (_PLACE_V2, _START_V2)
        found = {place: self.place, start: self.start, _IGNORED: self.ignored}
        return {key: text for key, text in found.items() if text}

    def _of_several(self, name: str, others: Mapping[str, str]) -> dict[str, str]:
        places = {**(_json_object(others.get(_PLACE)) or {}), name: self.place or ""}
        own = {"start": self.start, "ignored": self.ignored, "version": "2" if self.version == 2 else None}
        started = {**(_json_object(others.get(_STARTED)) or {}), name: json.dumps({k: v for k, v in own.items() if v})}
        return {_PLACE: _to_json(places), _STARTED: _to_json(started)}

    @classmethod
    def of(cls, extra: Mapping[str, str], name: str | None = None, *, path: str) -> IngestCheckpoint | None:
        """Return the checkpoint of a job from a commit's extra metadata; None if the commit has none of it.

        `path` names the commit in errors. Raises: CorruptFileError if the job has no name and the table's jobs have
        names, as no place is then its own.
        """
        text = extra.get(_PLACE)
        several = _json_object(text)
        if name is not None:
            if several is None or name not in several:
                return None
            started = _json_object((_json_object(extra.get(_STARTED)) or {}).get(name)) or {}
            version = 2 if started.get("version") == "2" else 1
            start, ignored = started.get("start"), started.get("ignored")
            return cls(place=several[name] or None, start=start, ignored=ignored, version=version)
        if several is not None:
            raise CorruptFileError(
                f"{_PLACE}: expected the place of one ingestion, found those of {', '.join(sorted(several))}: give the "
                "flow one of these names (name=; in a job file also is_named = true), or a name of its own",
                path=path,
            )
        place_v2, start_v2 = extra.get(_PLACE_V2), extra.get(_START_V2)
        if place_v2 or start_v2:
            return cls(place=place_v2 or None, start=start_v2, ignored=extra.get(_IGNORED), version=2)
        if text or extra.get(_START) or extra.get(_IGNORED):
            return cls(place=text or None, start=extra.get(_START), ignored=extra.get(_IGNORED))
        return None


def places_of(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the places in the entries of a commit, by the name of their job; the name of the only job is empty.

    >>> places_of({"deltastreamer.checkpoint.key": '{"trips":"5","fares":""}'})
    {'trips': '5'}
    """
    named = _json_object(extra.get(_PLACE))
    found = {"": extra.get(_PLACE_V2) or extra.get(_PLACE) or ""} if named is None else named
    return {name: place for name, place in found.items() if place}


def has_names(extra: Mapping[str, str]) -> bool:
    """Return whether the entries of a commit have the places of jobs with names."""
    return _json_object(extra.get(_PLACE)) is not None


def _json_object(text: str | None) -> dict[str, str] | None:
    """Return a JSON object of texts; None for any other text, as a place can have any form."""
    if not text or not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    is_object = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
    return found if is_object else None


def _to_json(texts: Mapping[str, str]) -> str:
    return json.dumps(texts, separators=(",", ":"))
