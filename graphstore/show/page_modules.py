"""The page's modules as one script, for where no server hands them out: a frame in a notebook, a widget.

They are the files of `server/page/`, read as they are, so that a notebook draws with what the page draws with.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[1] / "server" / "page"
_IMPORT = re.compile(r'^import \{ (.+) \} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)


@cache
def styles() -> str:
    """The page's styles."""
    return (PAGE / "page.css").read_text(encoding="utf-8")


@cache
def script(*modules: Path) -> str:
    """Modules as one script, each after those it imports: `NAME_js` is the object of what a module exports."""
    parts = []
    for path in modules:
        text = path.read_text(encoding="utf-8")
        names = ", ".join(_EXPORT.findall(text))
        text = _IMPORT.sub(
            lambda found: f"const {{ {found[1].replace(' as ', ': ')} }} = {found[2]}_js;", text
        )
        parts.append(
            f"const {path.stem}_js = (() => {{\n{_EXPORT.sub('', text)}return {{ {names} }};\n}})();\n"
        )
    return "".join(parts)
