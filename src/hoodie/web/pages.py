"""The static files of the pages, and all of them joined into one page.

The modules are written to be joined: imports of one line at the top, no default exports, and no name twice.
"""

from __future__ import annotations

import base64
import graphlib
import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from hoodie.format.json_values import to_json

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
"""The content types of static files, by the ends of their names; other files are not served."""
_IMPORT: Final = re.compile(r'^import \{[^}\n]*\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
_STYLE: Final = '<link rel="stylesheet" href="/static/app.css">'
_SCRIPT: Final = '<script type="module" src="/static/main.js"></script>'
_ANSWERS: Final = '<script type="application/json" id="exported">null</script>'
_HEAD: Final = '<meta charset="utf-8">'


def static_files() -> Mapping[str, Any]:
    """Return the static files of the package by name."""
    folder = resources.files("hoodie.web") / "static"
    return {each.name: each for each in folder.iterdir() if each.name.rpartition(".")[2] in TYPES}


def whole_page(exported: Mapping[str, Any]) -> str:
    """Return the page with these answers, its styles and its script, which load nothing from elsewhere."""
    files = {name: each.read_text(encoding="utf-8") for name, each in static_files().items()}
    style = files["app.css"]
    script = joined_modules({name: text for name, text in files.items() if name.endswith(".js")})
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # A text in HTML cannot end its element: `<` is escaped in JSON.
    answers = to_json(exported, wide_as_text=True).replace("<", "\\u003c")
    html: str = files["index.html"]
    for mark, text in (
        (_HEAD, f'{_HEAD}\n<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        (_STYLE, f"<style>{style}</style>"),
        (_SCRIPT, f'<script type="module">{script}</script>'),
        (_ANSWERS, _ANSWERS.replace(">null<", f">{answers}<")),
    ):
        before, found, after = html.partition(mark)
        if not found:
            raise ValueError(f"index.html: expected {mark}, found none")
        html = before + text + after
    return html


def joined_modules(modules: Mapping[str, str]) -> str:
    """Return one script of all modules, each after those that it imports.

    >>> print(joined_modules({"main.js": 'import { a } from "./a.js";\\na();', "a.js": "export function a() {}"}))
    <BLANKLINE>
    function a() {}
    <BLANKLINE>
    a();
    """
    order = graphlib.TopologicalSorter({name: _IMPORT.findall(text) for name, text in modules.items()}).static_order()
    parts = [_EXPORT.sub("", _IMPORT.sub("", modules[name])) for name in order]
    joined: str = re.sub(r"</(?=script)", r"<\\/", "\n" + "\n".join(parts), flags=re.IGNORECASE)
    return joined


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
