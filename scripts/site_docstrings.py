"""Docstrings on the site: an extension of griffe, which reads them.

An example of a docstring becomes a block of code, and the name of a page a link to it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md")
# A section has its heading on a line of its own; text behind the colon becomes a paragraph.
_HEADED = re.compile(r"^(Raises): (.+)\n(?=    [\w, ]+Error: )", re.MULTILINE)
_PARAGRAPH = re.compile(r"^(Raises|Warns|Returns): (?=\S)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Rewrite each docstring before mkdocstrings parses it."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object. mkdocs checks the links; the reference is in the folder reference/."""
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            text = _HEADED.sub(r"**\1:** \2\n\n\1:\n", text)
            text = _PARAGRAPH.sub(r"**\1:** ", text)
            obj.docstring.value = _PAGE.sub(r"[\1](../\1.md)", text)
