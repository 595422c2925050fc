"""Rewrite calls of Python in messages as commands and options of the command line, with the table of this call."""

from __future__ import annotations

import re
import shlex
from typing import Final

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C: 128 plus the number of the signal, as in shells."""
_QUOTED: Final = r"""['"]?(\w*)['"]?"""
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
        (r"exist_ok=True", "--exist-ok"),
        (r"storage_options", "--storage-option"),
        (r"as_of=", "--as-of "),
        (r"until=", "--until "),
        (r"(?<![\w.])t\.changes_since does so with fallback='snapshot'", "--fallback snapshot does so"),
        (r" \(t\.repair\(dry_run=False[^)]*\)\)", ""),
        (r"(?<![\w.])t\.repair\(dry_run=False\)", "`hoodie repair TABLE --execute`"),
        (r"(?<![\w.])t\.(upgrade|downgrade)\(to=(\d+)\)", r"`hoodie \1 TABLE --to \2`"),
        (r"(?<![\w.])t\.(upgrade|downgrade)\(to=(\d+), dry_run=False\)", r"`hoodie \1 TABLE --to \2 --execute`"),
        (r"(?<![\w.])t\.drop_old_timeline\(\)", "`hoodie drop-old-timeline TABLE --execute`"),
        (r"(?<![\w.])t\.schedule_compaction\(\)", "`hoodie compact TABLE --plan`"),
        (r"(?<![\w.])t\.pending_compactions\(\)", "`hoodie compact TABLE --pending`"),
        (r"(?<![\w.])t\.pending_clusterings\(\)", "`hoodie cluster TABLE --pending`"),
        (r"(?<![\w.])t\.(compact|clean|cluster|repair|verify)\(\)", r"`hoodie \1 TABLE`"),
        (rf"(?<![\w.])t\.(compact|cluster)\(instant={_QUOTED}\)", r"`hoodie \1 TABLE --instant \2`"),
        (rf"(?<![\w.])t\.schedule_compaction\(strategy={_QUOTED}\)", r"`hoodie compact TABLE --plan --strategy \1`"),
        (r"(?<![\w.])t\.(rollback|restore)\(\)", r"`hoodie \1 TABLE`"),
        (rf"(?<![\w.])t\.rollback\({_QUOTED}, chain=True\)", r"`hoodie rollback TABLE \1 --chain`"),
        (rf"(?<![\w.])t\.(rollback|restore)\({_QUOTED}\)", r"`hoodie \1 TABLE \2`"),
        (r"(?<![\w.])t\.(rollback|restore)\b", r"`hoodie \1 TABLE`"),
        (rf"(?<![\w.])t\.savepoint\({_QUOTED}\)", r"`hoodie savepoint create TABLE \1`"),
        (rf"(?<![\w.])t\.delete_savepoint\({_QUOTED}\)", r"`hoodie savepoint delete TABLE \1`"),
        (r"(?<![\w.])t\.savepoints\(\)", "`hoodie savepoint list TABLE`"),
        (r"(?<![\w.])t\.timeline(\.(completed|pending)\(\))?", "`hoodie timeline TABLE`"),
        (r"(?<![\w.])t\.index\.rebuild\(\)", "`hoodie index rebuild TABLE`"),
        (r"""(?<![\w.])t\.index\.(build|drop)\((['"]record['"])?\)""", r"`hoodie index \1 TABLE`"),
        (r"""(?<![\w.])t\.index\.(build|drop)\(['"](\w+)['"]\)""", r"`hoodie index \1 TABLE \2`"),
        (r"(?<![\w.])t\.repair\(accept_loss=\[FILE\]\)", "`hoodie repair TABLE --accept-loss FILE`"),
        (r"min_age_seconds=, --min-age", "--min-age"),
        (r"tables=\{…\}", "--table NAME=PATH"),
        (r"properties=(, --option\b)?", "--option"),
    )
)
"""Calls in messages, with the same call of the command line. The first that matches wins."""


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
