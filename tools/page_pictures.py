"""Pictures of every tab of the page, at 1280 and at 390 pixels, light and dark, to be looked at: `make page-pictures`.

They show the made-up team. Each page that is wider than its window, or says that something went wrong, is named and fails the run.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import graphstore  # noqa: E402
from graphstore.cli import made_up_team  # noqa: E402
from tests.support.browser import chromium  # noqa: E402
from tests.support.served import TOKENS, serve_in_thread  # noqa: E402

STATES = {
    "things": "tab=thing",
    "thing": "tab=thing&id=limit",
    "shaky": "tab=thing&id=sessions",
    "causes": "tab=causes&id=tokens",
    "around": "tab=causes&id=tokens&way=walk&depth=3",
    "timeline": "tab=timeline",
    "focus": "tab=timeline&focus=ana",
    "trace": "tab=timeline&trace=" + "0500" * 8,
    "memory": "tab=memory&user=ana&thread=ana-release&question=release&probe=login+times&layer=tool",
    "ask": "tab=ask&run=1",
    "recipe": "tab=ask&recipe=most_revised&run=1",
    "review": "tab=review",
    "live": "tab=live",
}


def main(into: Path) -> int:
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    wrong: list[str] = []
    with (
        tempfile.TemporaryDirectory() as made,
        graphstore.open(made_up_team.make(Path(made))) as store,
        serve_in_thread(store) as url,
        chromium() as browser,
    ):
        for width in (1280, 390):
            for colours in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
                page.goto(f"{url}/#token={TOKENS.write}")
                page.wait_for_selector(".view")
                for name, state in STATES.items():
                    wrong += pictured(page, f"{url}/?{state}", into / f"{name}-{width}-{colours}.png")
                page.close()
    print("\n".join([*wrong, f"{len(list(into.iterdir()))} pictures in {into}"]))
    return bool(wrong)


def pictured(page: Any, url: str, file: Path) -> list[str]:
    """Picture one state. Gives what is wrong with it."""
    page.goto(url)
    page.wait_for_selector("main:not([aria-busy]) .view")
    page.wait_for_timeout(400)
    page.screenshot(path=str(file), full_page=True)
    too_wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    refused = page.locator(".refused").all_inner_texts()
    return [f"{file.name}: wider than its window"] * too_wide + [f"{file.name}: {each}" for each in refused]


if __name__ == "__main__":
    sys.exit(main(ROOT / ".pictures"))
