"""The time of one call: `current_date`, `current_timestamp` and `now` become literals before a call plans anything.

So all files, partitions and attempts of a call see the same instant, and conditions prune as with a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.errors import TokenError

from hoodie.errors import InvalidConfigError
from hoodie.records.sql.parse import tokens_of

_DATES: Final = ("current_date", "curdate")
_TIMES: Final = ("current_timestamp", "now")
_WITHOUT_PARENTHESES: Final = ("current_date", "current_timestamp")


def _in_utc() -> tuple[datetime, date]:
    now = datetime.now(UTC)
    return now, now.date()


@dataclass(frozen=True)
class Clock:
    """The instant of one call, and its date in the session's time zone; `read` is called at most once.

    `check` raises an error for a text that the session would not evaluate as this library does.
    """

    read: Callable[[], tuple[datetime, date]] = field(default=_in_utc)
    check: Callable[[str], None] | None = None

    @cached_property
    def _time(self) -> tuple[datetime, date]:
        return self.read()

    @property
    def instant(self) -> str:
        """The literal of `current_timestamp()`."""
        return f"TIMESTAMP '{self._time[0].astimezone(UTC).replace(tzinfo=None).isoformat(' ')}Z'"

    @property
    def today(self) -> str:
        """The literal of `current_date()`."""
        return f"DATE '{self._time[1].isoformat()}'"

    def set_in(self, text: str, columns: Callable[[], Collection[str]]) -> str:
        """Return SQL text with literals in place of the functions that read the clock; other text is not changed.

        `columns` returns the names that the text can mean; it is called if the text has a function without parentheses.

        Raises: InvalidConfigError for a function without parentheses that is also the name of a column; as `check`.
        """
        if self.check is not None:
            self.check(text)
        if not any(name in text.lower() for name in (*_DATES, *_TIMES)):
            return text
        parts, end = [], 0
        for first, behind in _calls(text):
            name = text[first.start : first.end + 1].lower()
            if behind == first.end + 1 and name in {column.lower() for column in columns()}:
                raise InvalidConfigError(
                    f"{name} is a function, and the name of a column: write {name}() for the function, or `{name}` in "
                    "backquotes for the column"
                )
            parts += [text[end : first.start], self.today if name in _DATES else self.instant]
            end = behind
        return "".join((*parts, text[end:]))


def names_today(text: str) -> bool:
    """Return whether SQL text has the date of the call, which depends on the session's time zone."""
    return any(text[first.start : first.end + 1].lower() in _DATES for first, _ in _calls(text))


def _calls(text: str) -> list[tuple[Token, int]]:
    """Return the first token of each call, and the place behind the call."""
    try:
        tokens = tokens_of(text)
    except TokenError:
        return []  # The parser refuses the text.
    found = []
    for number, token in enumerate(tokens):
        name = text[token.start : token.end + 1].lower()
        before = tokens[number - 1].token_type if number else None
        if name not in (*_DATES, *_TIMES) or before is TokenType.DOT:
            continue
        after = [one.token_type for one in tokens[number + 1 : number + 3]]
        if after == [TokenType.L_PAREN, TokenType.R_PAREN]:
            found.append((token, tokens[number + 2].end + 1))
        elif name in _WITHOUT_PARENTHESES and after[:1] not in ([TokenType.L_PAREN], [TokenType.DOT]):
            found.append((token, token.end + 1))
    return found
