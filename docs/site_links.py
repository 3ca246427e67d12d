"""Points links of the pages that leave docs/ to the repository, so that the site builds without warnings."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"\]\((\.\./[^)#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Replace relative links to files outside docs/ by links to the repository."""
    folder = posixpath.dirname("docs/" + page.file.src_uri)

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        if path.startswith("docs/"):
            return match[0]
        return f"]({config.repo_url}/blob/main/{path}{match[2] or ''})"

    return LINK.sub(target, markdown)
