"""Rewrite calls of Python in messages as commands and options of the command line, with the table of this call."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C: 128 plus the number of the signal, as in shells."""
_QUOTED: Final = r"""['"]?(\w*)['"]?"""
_T: Final = r"(?<![^\s(`])t\."
"""The table in a call of a message. In quotes, or behind a slash, it is a part of a value."""
_WORDS: Final = tuple(
    (re.compile(call), said)
    for call, said in (
        (r"add it with Arrow data, schema='add_columns' or ", "add it with a Parquet file or --option "),
        (r"add it with Arrow data", "add it with a Parquet file"),
        (
            r", or upsert with partial=True, which keeps the stored values\. (hoodie\.write\.set\S+=true) in the "
            r"properties of the call, or of the table \(t\.alter\.set_property\), sets",
            r". --option \1 sets",
        ),
        (r"(?<=or pass )exist_ok=True", "--exist-ok"),
        (r"storage_options=\{'durable': 'true'\}", "--storage-option durable=true"),
        # Partition paths, such as until=2026, have no quotes, and conditions of the user are not in front of a message.
        (r"""(\A|(?<=; pass a time, or ))as_of=(?=['"])""", "--as-of "),
        (r"""(?:\A|(?<= is later than )|(?<=; pass a time, or ))(since|until)=(?=['"])""", r"--\1 "),
        (rf"{_T}changes_since does so with fallback='snapshot'", "--fallback snapshot does so"),
        (r" \(t\.repair\(dry_run=False[^)]*\)\)", ""),
        (rf"{_T}repair\(dry_run=False\)", "`hoodie repair TABLE --execute`"),
        (rf"{_T}(upgrade|downgrade)\(to=(\d+)\)", r"`hoodie \1 TABLE --to \2`"),
        (rf"{_T}(upgrade|downgrade)\(to=(\d+), dry_run=False\)", r"`hoodie \1 TABLE --to \2 --execute`"),
        (rf"{_T}drop_old_timeline\(\)", "`hoodie drop-old-timeline TABLE --execute`"),
        (rf"{_T}schedule_compaction\(\)", "`hoodie compact TABLE --plan`"),
        (rf"{_T}pending_compactions\(\)", "`hoodie compact TABLE --pending`"),
        (rf"{_T}pending_clusterings\(\)", "`hoodie cluster TABLE --pending`"),
        (rf"{_T}verify\(\) or (?=`hoodie verify )", ""),
        (rf"{_T}(compact|clean|cluster|repair|verify)\(\)", r"`hoodie \1 TABLE`"),
        (rf"{_T}(compact|cluster)\(instant={_QUOTED}\)", r"`hoodie \1 TABLE --instant \2`"),
        (rf"{_T}schedule_compaction\(strategy={_QUOTED}\)", r"`hoodie compact TABLE --plan --strategy \1`"),
        (rf"{_T}(rollback|restore)\(\)", r"`hoodie \1 TABLE`"),
        (rf"{_T}rollback\({_QUOTED}, chain=True\)", r"`hoodie rollback TABLE \1 --chain`"),
        (rf"{_T}(rollback|restore)\({_QUOTED}\)", r"`hoodie \1 TABLE \2`"),
        (r"(?<=call )t\.rollback(?= again)|(?<=write back \()t\.rollback(?=\))", "`hoodie rollback TABLE`"),
        (rf"{_T}savepoint\({_QUOTED}\)", r"`hoodie savepoint create TABLE \1`"),
        (rf"{_T}delete_savepoint\({_QUOTED}\)", r"`hoodie savepoint delete TABLE \1`"),
        (rf"{_T}savepoints\(\)", "`hoodie savepoint list TABLE`"),
        (rf"{_T}timeline(\.(completed|pending)\(\)|(?= (shows|returns) ))", "`hoodie timeline TABLE`"),
        (rf"{_T}index\.rebuild\(\)", "`hoodie index rebuild TABLE`"),
        (rf"""{_T}index\.(build|drop)\((['"]record['"])?\)""", r"`hoodie index \1 TABLE`"),
        (rf"""{_T}index\.(build|drop)\(['"](\w+)['"]\)""", r"`hoodie index \1 TABLE \2`"),
        (rf"{_T}repair\(accept_loss=\[FILE\]\)", "`hoodie repair TABLE --accept-loss FILE`"),
        (r"min_age_seconds=, --min-age", "--min-age"),
        (r"tables=\{…\}", "--table NAME=PATH"),
        (r"(?<=\()properties=, --option\b", "--option"),
        (r"(?<![^\s(])properties=(?= of the write| of t\.index\.build |, found )", "--option"),
    )
)
"""Calls in messages, with the same call of the command line. The first that matches wins.

A pattern matches a whole call or phrase of a message, because the message also contains paths and values of the table.
"""
_MESSAGES: Final = frozenset(
    {"notes", "remedy", "expected", "found", "steps", "lost", "in_the_way", "error", "last_error", "problem"}
)
"""Fields of results with sentences of this library."""


def in_words(text: str, table: str | None) -> str:
    """Return a message in the words of the command line; `table` is the path or URI in the arguments, if there is one.

    >>> in_words("roll it back with t.rollback('2024')", "/data/my trips")
    "roll it back with `hoodie rollback '/data/my trips' 2024`"
    >>> in_words("give the name (properties=, --option name=TEXT)", None)
    'give the name (--option name=TEXT)'
    """
    named = "TABLE" if table is None else shlex.quote(table)
    for call, said in _WORDS:
        text = call.sub(said.replace("TABLE", named.replace("\\", r"\\")), text)
    return text


def result_in_words(found: Any, table: str | None, *, is_message: bool = False) -> Any:
    """Return a result with the texts of its message fields (`_MESSAGES`) in the words of the command line.

    All other fields, such as names, keys and paths, are unchanged. Results inside the result are rewritten alike.
    `table` as for `in_words`. `is_message`: whether `found` is the value of a message field.
    """
    if isinstance(found, str):
        return in_words(found, table) if is_message else found
    if isinstance(found, tuple):
        return tuple(result_in_words(one, table, is_message=is_message) for one in found)
    if not is_dataclass(found) or isinstance(found, type):
        return found
    given = ((one.name, getattr(found, one.name)) for one in fields(found) if one.init)
    return replace(found, **{name: result_in_words(one, table, is_message=name in _MESSAGES) for name, one in given})
