"""How long the page takes, in a real browser, beside 10,000 nodes in 100,000 versions and 50,000 messages: the first page, each tab, a cursor moved on it, and scrolling; and the largest answer of all.

`make page-times` makes the store once, in `.page-times/`, and prints medians in milliseconds, with the slowest requests of each. Where something else runs
beside it, the first page is to be read beside the icon alone, which is loaded in the same run.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import graphstore  # noqa: E402
from benchmarks.timeline import talk  # noqa: E402
from tests.support.browser import chromium  # noqa: E402
from tests.support.served import serve_in_process  # noqa: E402

NODES, VERSIONS, MESSAGES, TURNS = 10_000, 10, 50_000, 9
STATES = {
    "things": "tab=thing",
    "thing": "tab=thing&id=n42",
    "causes": "tab=causes&id=n42&way=effects",
    "timeline": "tab=timeline",
    "filtered": "tab=timeline&text=number&sender=user-4",
    "memory": "tab=memory",
    "ask": "tab=ask",
    "review": "tab=review",
    "live": "tab=live",
}
# Milliseconds from when the page was asked for until what it shows is whole.
WATCH = """
new MutationObserver(() => { if (window.drawn === undefined && document.querySelector('main:not([aria-busy]) .view')) window.drawn = performance.now(); })
  .observe(document, {subtree: true, childList: true, attributes: true});
"""
TURNED = """([selector, event]) => new Promise((done) => {
  const main = document.getElementById('main');
  performance.clearResourceTimings();
  const began = performance.now();
  let busy = false;
  const watch = new MutationObserver(() => {
    if (main.hasAttribute('aria-busy')) busy = true;
    else if (busy) { watch.disconnect(); setTimeout(() => done(performance.now() - began)); }
  });
  watch.observe(main, {attributes: true});
  const at = document.querySelector(selector);
  if (event) at.dispatchEvent(new KeyboardEvent('keydown', {key: event, bubbles: true})); else at.click();
})"""
SLOWEST = """() => performance.getEntriesByType('resource').map((each) => [Math.round(each.duration), new URL(each.name).pathname])
  .sort((a, b) => b[0] - a[0]).slice(0, 3).map((each) => each.join(' ms ')).join(', ')"""


LARGEST = """() => performance.getEntriesByType('resource').map((each) => [each.decodedBodySize, new URL(each.name).pathname])
  .sort((a, b) => b[0] - a[0])[0] ?? [0, '']"""
# As fast as they come: cards that passed, and the seconds it took.
SCROLLED = """(wanted) => new Promise((done) => {
  const began = performance.now();
  const cards = () => document.querySelectorAll('.card').length;
  const first = cards();
  const step = () => {
    scrollBy(0, 600);
    if (cards() - first >= wanted || performance.now() - began > 60000) done([cards() - first, (performance.now() - began) / 1000]);
    else requestAnimationFrame(step);
  };
  step();
})"""


def made(place: Path) -> Path:
    """A store of that size; the one of an earlier run, where there is one."""
    if place.exists():
        return place
    chance, first = random.Random(3), datetime(2025, 1, 1, tzinfo=UTC)
    ids = [f"n{number}" for number in range(NODES)]
    hour = timedelta(hours=1)
    versions = [
        {
            "node_id": id, "content": {"says": f"{id} as it was told the time {number}"}, "text": f"{id} is told the time {number}",
            "valid_from": first + 700 * number * hour + place_of * timedelta(minutes=4),
        }
        for number in range(VERSIONS) for place_of, id in enumerate(ids)
    ]  # fmt: skip
    links = [
        {"source": id, "kind": chance.choice(("derived_from", "caused_by")), "target": ids[chance.randrange(number)]}
        for number, id in enumerate(ids) if number and number % 2
    ]  # fmt: skip
    with graphstore.open(place, author="ana") as store:
        nodes = [{"id": id, "kind": "fact"} for id in ids]
        print(store.bulk_load(nodes=nodes, versions=versions, links=links), file=sys.stderr)
        print(store.bulk_load(events=talk(MESSAGES)), file=sys.stderr)
        for number in range(20):
            store.retract(ids[number * 50], reason="it was not so")
    return place


def rows(browser: Any, url: str, token: str) -> Iterator[str]:
    """What each thing takes."""
    firsts, floors = [], []
    for _ in range(9):
        with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
            page = context.new_page()
            page.goto(f"{url}/page/icon.svg")
            floors.append(page.evaluate("performance.now()"))
        with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
            page = context.new_page()
            page.add_init_script(WATCH)
            page.goto(f"{url}/#token={token}")
            page.wait_for_selector("main:not([aria-busy]) .view")
            firsts.append(page.evaluate("window.drawn"))
    yield f"first page: {firsts[0]:.0f} the first time, {median(firsts):.0f} ({min(firsts):.0f} to {max(firsts):.0f}); the icon alone {median(floors):.0f}"
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    answers = []
    page.goto(f"{url}/#token={token}")
    for name, state in STATES.items():
        page.goto(f"{url}/?{state}")
        page.wait_for_selector("main:not([aria-busy]) .view")
        page.wait_for_timeout(700)
        for axis in ("valid", "tx"):
            took = []
            for _ in range(TURNS):
                took.append(page.evaluate(TURNED, [f".cursor.{axis} .strip", "ArrowLeft"]))
                slow = page.evaluate(SLOWEST)
                answers.append(page.evaluate(LARGEST))
                page.wait_for_timeout(150)
            yield f"{name}, {axis} cursor moved: {median(took):.0f} ({min(took):.0f} to {max(took):.0f})  {slow}"
    page.goto(f"{url}/?tab=timeline")
    page.wait_for_selector("main:not([aria-busy]) .card")
    cards, seconds = page.evaluate(SCROLLED, 600)
    yield f"scrolling: {cards / seconds:.0f} cards a second ({cards} in {seconds:.1f} s)"
    largest, path = max([*answers, page.evaluate(LARGEST)])
    yield f"the largest answer: {largest / 1000:.0f} kB before it is packed, {path}"
    page.close()


def main(place: Path) -> int:
    made(place)
    with serve_in_process(place) as (_, url), chromium() as browser:
        for row in rows(browser, url, (place / "token").read_text().strip()):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(ROOT / ".page-times" / "large.gs"))
