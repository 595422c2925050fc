"""One table as one file of HTML: the pages, and the answers that they show, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import hoodie
from hoodie.display import counted
from hoodie.errors import InvalidConfigError
from hoodie.format.json_values import to_json
from hoodie.web.api import answer_of, error_of
from hoodie.web.checks import Checks
from hoodie.web.pages import whole_page
from hoodie.web.places import Tables, places_of

_INSTANTS: Final = 1_000
_CONTENTS: Final = 50
_CONTENT_CHARS_MAX: Final = 200_000
"""Contents of instants that are longer are left out."""
_ROWS: Final = 200
_LISTED: Final = 1_000

_LIST: Final = {"limit": str(_LISTED)}
_PARTS: Final[tuple[tuple[str, Mapping[str, str]], ...]] = (
    *((name, {}) for name in ("summary", "sizes", "waits", "growth", "index", "schemas", "flows", "locks")),
    *(("timeline", {"limit": str(_INSTANTS), **more}) for more in ({}, {"archived": "1"}, {"metadata": "1"})),
    *((name, _LIST) for name in ("writers", "backlog")),
    *(("partitions", {**_LIST, "offset": "0", "sort": sort}) for sort in ("bytes", "name")),
)


@dataclass(slots=True)
class _Exported:
    """The answers of one table by their addresses, and notes on what is missing."""

    table: hoodie.Table
    prefix: str
    answers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, report: str, given: Mapping[str, str]) -> dict[str, Any] | None:
        """Add a report. If it cannot be made, a note has the reason, and the pages show that it is missing."""
        try:
            answer = answer_of(self.table, report, given)
        except Exception as error:
            self.notes.append(f"{report} is not in this report: {error_of(error)[1]['error']}")
            return None
        self.answers[self.address(report, given)] = answer
        return answer

    def address(self, report: str, given: Mapping[str, str]) -> str:
        """Return the address of a report below `/api/`."""
        return f"{self.prefix}/{report}" + (f"?{urlencode(sorted(given.items()))}" if given else "")

    def add_contents(self, instants: list[tuple[str, str]]) -> None:
        """Add instants, with and without the action in the address; of a long one all but its content."""
        for instant, action in instants:
            answer = self.add("instant", {"action": action, "time": instant})
            if answer is None:
                continue
            self.answers.setdefault(self.address("instant", {"time": instant}), answer)
            if answer["content"] is not None and len(to_json(answer["content"])) > _CONTENT_CHARS_MAX:
                answer["content"] = None
                self.notes.append(
                    f"the content of {instant} has more than {_CONTENT_CHARS_MAX:,} characters and is left out; "
                    f"`hoodie show TABLE {instant}` prints it"
                )


def export(tables: Tables, *, shows_data: bool) -> tuple[str, list[str]]:
    """Return the HTML of the one table below the places, and notes on what is missing in it.

    It has the newest 1,000 instants, the contents of the newest 50, the first 1,000 rows of lists, and a quick check.
    `shows_data`: the first 200 rows of the table too. Memory: the answers.

    Raises: InvalidConfigError if there is no table, or more than one; as `hoodie.open`.
    """
    places = places_of(tables, shows_data=shows_data, is_export=True)
    found = places["tables"]
    if len(found) != 1:
        paths = ", ".join(table["path"] for table in found[:20])
        named = f"{counted(len(found), 'tables')}: {paths}" if found else "no table"
        raise InvalidConfigError(
            f"--export writes one table: expected one below {', '.join(tables.places)}, found {named}"
        )
    table_id = found[0]["id"]
    exported = _Exported(tables.open(table_id), f"tables/{table_id}")
    instants: set[tuple[str, str]] = set()
    for part, given in _PARTS + ((("rows", {"limit": str(_ROWS)}),) if shows_data else ()):
        answer = exported.add(part, given)
        if answer is not None and part == "timeline" and "metadata" not in given:
            instants |= {(row["instant"], row["action"]) for row in answer["rows"]}
    exported.add_contents(sorted(instants, reverse=True)[:_CONTENTS])
    checks = Checks(tables.open)
    if thread := checks.start(table_id, full=False):
        thread.join()
    exported.answers[exported.address("verify", {})] = checks.state(table_id)
    places["notes"] += exported.notes
    return whole_page({"table": table_id, "answers": {"places": places, **exported.answers}}), exported.notes
