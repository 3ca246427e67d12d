"""The page in a real browser: every tab, both cursors, the keyboard, media, what is written meanwhile, hostile content, a lost server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

import graphstore
from graphstore import GraphStore, sessions
from graphstore.cli import made_up_team
from graphstore.context import glimpses
from graphstore.events import timeline
from graphstore.ledger import tokens as access_tokens
from graphstore.memory import Memory
from graphstore.server.page_files import NAMES
from tests.support.browser import chromium
from tests.support.served import TOKENS, Wire, serve_in_process, serve_in_thread
from tests.support.session_files import header, said, write

pytestmark = [pytest.mark.in_process("has a server of its own"), pytest.mark.rest]

TABS = ("thing", "causes", "timeline", "memory", "ask", "review", "live")
SEEN = 30_000  # milliseconds within which something has to show, also where much else runs


LARGEST = "Math.max(0, ...performance.getEntriesByType('resource').map((each) => each.decodedBodySize))"


class Window:
    """A page signed in, and what went wrong on it."""

    def __init__(self, browser: Any, url: str, *, token: str = TOKENS.write, **more: Any) -> None:
        self.url, self.wrong, self.largest = url, [], 0
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **more})
        self.page.set_default_timeout(SEEN)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('CSP ' + event.violatedDirective + ' ' + event.blockedURI))"
        )
        self.page.on(
            "console", lambda line: self.wrong.append(line.text) if line.text.startswith("CSP") else None
        )
        self.page.goto(f"{url}/#token={token}")
        self.page.wait_for_selector(".view")

    def at(self, **state: str) -> Any:
        """Turn to a state by its address; the page once it is drawn."""
        self.page.goto(f"{self.url}/?{urlencode(state)}")
        self.page.wait_for_selector(f"main:not([aria-busy]) .view.{state.get('tab', 'thing')}")
        self.largest = max(self.largest, self.page.evaluate(LARGEST))
        return self.page

    def state(self) -> dict[str, str]:
        """What the address says."""
        return {name: value[0] for name, value in parse_qs(urlsplit(self.page.url).query).items()}

    def until(self, condition: str) -> None:
        """Wait until a condition of the page holds."""
        for _ in range(SEEN // 50):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(condition)


def page_instant(at: datetime) -> str:
    """An instant as the server writes it."""
    return at.isoformat().replace("+00:00", "Z")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def team_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_up_team.make(tmp_path_factory.mktemp("team"))


@pytest.fixture(scope="module")
def team(team_folder: Path) -> Iterator[tuple[GraphStore, str]]:
    with graphstore.open(team_folder) as store, serve_in_thread(store) as url:
        yield store, url


@pytest.fixture
def window(browser: Any, team: tuple[GraphStore, str]) -> Iterator[Window]:
    made = Window(browser, team[1])
    yield made
    made.page.close()
    assert [] == made.wrong


def test_the_modules_are_few_and_short_and_load_nothing_from_elsewhere():
    folder = Path(graphstore.__file__).parent / "server" / "page"
    modules = [name for name in NAMES if name.endswith(".js")]
    assert len(modules) <= 10
    for name in modules:
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count("\n") <= 250, name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://(?!www\.w3\.org)", text
        ), name


def test_the_token_leaves_the_address_at_once_and_stays_for_the_session(window: Window):
    assert "token" not in window.page.url
    window.page.reload()
    window.page.wait_for_selector(".view .rows")


def test_without_a_token_it_is_asked_for(browser: Any, team: tuple[GraphStore, str]):
    page = browser.new_page()
    page.goto(team[1])
    page.fill("dialog.token input", TOKENS.read)
    page.click("dialog.token button")
    page.wait_for_selector(".view .rows")
    assert "read" == page.evaluate("document.body.dataset.rights")
    page.close()


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("width", [1280, 390])
def test_every_tab_shows_something_and_fits(window: Window, tab: str, width: int):
    window.page.set_viewport_size({"width": width, "height": 900})
    page = window.at(tab=tab)
    assert page.locator(".view").inner_text().strip()
    assert 0 == page.locator(".refused").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert 2 == page.locator("#cursors .strip").count()


def test_both_cursors_move_what_is_shown_and_say_that_they_are_not_now(
    window: Window, team: tuple[GraphStore, str]
):
    store, _ = team
    first = store.history("limit")[0]
    page = window.at(tab="thing", id="limit")
    assert "400 requests" in page.locator(".thing-head h2").inner_text()
    assert 0 == page.locator(".badge:visible").count()
    page.fill(".cursor.valid .instant", (first.valid_from + timedelta(days=1)).strftime("%Y-%m-%d %H:%M"))
    page.keyboard.press("Enter")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")
    assert 1 == page.locator(".badge:visible").count()
    page.click(".cursor.valid .now")
    page.wait_for_selector(".thing-head h2:has-text('400 requests')")
    page.click(".cursor.tx .back")
    window.until("new URLSearchParams(location.search).has('tx')")
    before = window.state()["tx"]
    page.click(".cursor.tx .back")
    window.until(f"new URLSearchParams(location.search).get('tx') < {before!r}")
    page.click(".cursor.tx .next")
    window.until(f"new URLSearchParams(location.search).get('tx') === {before!r}")


def test_a_cursor_is_put_where_words_mean_and_says_what_has_two_readings(window: Window):
    page = window.at(tab="thing", id="limit")
    written = ".cursor.valid .instant"
    page.fill(written, "yesterday")
    page.keyboard.press("Enter")
    window.until("new URLSearchParams(location.search).has('valid')")
    assert window.state()["valid"].endswith("T23:59:59.999999Z")
    page.fill(written, "03/04/2026")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{written}.wrong")
    assert "(day first) or 2026-03-04 (month first)" in page.get_attribute(written, "title")
    page.fill(written, "today")
    page.keyboard.press("Enter")
    window.until("!new URLSearchParams(location.search).has('valid')")
    page = window.at(tab="thing", id="limit", valid="last week")
    window.until("(new URLSearchParams(location.search).get('valid') ?? '').includes('T23:59:59')")


def test_a_cursor_is_dragged_played_and_moved_by_keys(window: Window):
    page = window.at(tab="thing")
    box = page.locator(".cursor.tx .strip").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 10, steps=5)
    page.mouse.up()
    window.until("new URLSearchParams(location.search).has('tx')")
    at = window.state()["tx"]
    page.locator(".cursor.tx .strip").focus()
    page.keyboard.press("ArrowRight")
    window.until(f"new URLSearchParams(location.search).get('tx') > {at!r}")
    page.click(".cursor.tx button[aria-pressed]")
    at = window.state()["tx"]
    window.until(f"new URLSearchParams(location.search).get('tx') > {at!r}")
    page.click(".cursor.tx button[aria-pressed]")
    page.keyboard.press("n")
    window.until("!location.search.includes('tx=')")


def test_a_click_on_the_plane_puts_both_cursors_there(window: Window):
    page = window.at(tab="thing", id="limit")
    assert page.locator(".plane .row").count() >= 4
    box = page.locator(".plane .back").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.9)
    window.until("location.search.includes('valid=') && location.search.includes('tx=')")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")


def test_the_plane_is_walked_by_keyboard_and_each_row_of_it_says_what_it_is(
    window: Window, team: tuple[GraphStore, str]
):
    rows = team[0].versions("limit")
    page = window.at(tab="thing", id="limit")
    labels = page.locator(".plane .row").evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert len(rows) == len(labels) and all("believed" in label and "by ana" in label for label in labels)
    assert 1 == page.locator(".plane [tabindex='0']").count()  # one stop of Tab, whatever the number of rows
    page.locator(".plane [tabindex='0']").focus()
    on_it = "document.activeElement.getAttribute('name')"
    by_tx = sorted(rows, key=lambda row: (row.tx_from, row.valid_from))
    by_valid = sorted(rows, key=lambda row: (row.valid_from, row.tx_from))

    def name(row: Any) -> str:
        return f"plane-{page_instant(row.tx_from)}-{page_instant(row.valid_from)}"

    page.keyboard.press("Home")
    assert name(by_tx[0]) == page.evaluate(on_it)
    for row in by_tx[1:]:
        page.keyboard.press("ArrowUp")
        assert name(row) == page.evaluate(on_it)
    page.keyboard.press("ArrowUp")
    assert name(by_tx[-1]) == page.evaluate(on_it)  # there is nothing beyond
    page.keyboard.press("ArrowLeft")
    beside = by_valid[by_valid.index(by_tx[-1]) - 1]
    assert name(beside) == page.evaluate(on_it)
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")
    state = window.state()
    assert [page_instant(by_tx[0].valid_from), page_instant(by_tx[0].tx_from)] == [
        state["valid"],
        state["tx"],
    ]
    assert name(by_tx[0]) == page.evaluate(
        on_it
    )  # the keyboard is where it was, and the row is the one of the cursors


def test_the_history_says_who_wrote_each_row_and_why_and_leads_there_by_keyboard(
    window: Window, team: tuple[GraphStore, str]
):
    rows = team[0].versions("limit")
    page = window.at(tab="thing", id="limit")
    table = page.locator(".history tr")
    assert len(rows) + 1 == table.count()
    assert "raised for the pilot" in table.filter(has_text="200 requests").first.inner_text()
    assert "ana" in table.nth(1).inner_text()
    table.nth(len(rows)).locator("button").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")
    assert page_instant(rows[0].tx_from) == window.state()["tx"]


def test_what_a_thing_rests_on_and_what_rests_on_it(window: Window):
    page = window.at(tab="thing", id="sessions")
    rests = page.locator("section:has(h2:text-is('Rests'))").inner_text()
    below, _, above = rests.partition("On it rests")
    assert "we run in one region" in below and "nobody could log in" in above


def test_hundreds_of_rows_on_the_plane_stay_legible(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "r.gs") as store, serve_in_thread(store) as url:
        store.add_node("fact", {"number": 0}, id="many", valid_from="2026-01-01")
        for number in range(1, 300):
            day = timedelta(days=number * 7 % 280)
            store.amend("many", {"number": number}, valid_from=store.node("many").valid_from + day)
        window = Window(browser, url)
        page = window.at(tab="thing", id="many")
        assert page.locator(".plane .row").count() >= 300
        boxes = page.locator(".plane text").evaluate_all(
            "all => all.map((each) => { const box = each.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })"
        )
        wide = page.locator(".plane").bounding_box()
        for number, (left, top, right, bottom) in enumerate(boxes):
            assert wide["x"] - 1 <= left and right <= wide["x"] + wide["width"] + 1
            for a, b, c, d in boxes[number + 1 :]:
                assert min(right, c) - max(left, a) <= 2 or min(bottom, d) - max(top, b) <= 4
        page.close()
        assert [] == window.wrong and window.largest < 500_000


def test_a_deep_link_shows_the_same(window: Window, browser: Any, team: tuple[GraphStore, str]):
    window.at(tab="causes", id="tokens", way="causes", depth="3")
    shown = window.page.locator(".graph .box").count()
    other = Window(browser, team[1], token=TOKENS.read)
    other.page.goto(window.page.url)
    other.page.wait_for_selector(".graph .box")
    assert shown == other.page.locator(".graph .box").count() > 3
    other.page.close()


def test_causes_expand_fold_and_lead_back(window: Window):
    page = window.at(tab="causes", id="tokens")
    page.locator(".graph .box[data-id=outage]").focus()
    page.keyboard.press("Enter")
    page.click(".about button[name=here]")
    page.wait_for_selector(".crumbs a")
    page.click(".crumbs a")
    window.until("new URLSearchParams(location.search).get('id') === 'tokens'")
    page.click("[name=way-walk]")
    page.wait_for_selector("main:not([aria-busy]) [name=way-walk][aria-pressed=true]")
    many = page.locator(".graph .box").count()
    page.locator(".graph .box[data-id=outage]").dispatch_event("click")
    page.click(".about button[name=fold]")
    window.until(f"document.querySelectorAll('.graph .box').length <= {many}")
    assert page.locator(".graph .shaky").count()


def test_the_keyboard_alone_reaches_every_tab(window: Window):
    page = window.at(tab="thing")
    page.evaluate("document.activeElement.blur()")
    for number, tab in enumerate(TABS, 1):
        page.keyboard.press(str(number))
        page.wait_for_selector(f"main:not([aria-busy]) .view.{tab}")
    page.keyboard.press("1")
    page.wait_for_selector(".view.thing")
    page.keyboard.press("/")
    page.keyboard.type("limit")
    page.keyboard.press("Enter")
    window.until("new URLSearchParams(location.search).get('id') === 'limit'")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("dialog .keys")
    page.keyboard.press("Escape")
    page.keyboard.press("[")
    window.until("location.search.includes('valid=')")


def test_light_and_dark_by_choice_and_by_the_system(browser: Any, team: tuple[GraphStore, str]):
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = Window(browser, team[1], color_scheme="dark")
    light = Window(browser, team[1], color_scheme="light")
    assert dark.page.evaluate(paper) != light.page.evaluate(paper)
    dark.page.click("#theme")
    assert dark.page.evaluate(paper) == light.page.evaluate(paper)
    dark.page.close()
    light.page.close()


def test_people_are_right_and_agents_left_and_focus_makes_the_others_pale(window: Window):
    page = window.at(tab="timeline")
    assert page.locator(".card.left[data-sender=aide]").count()
    assert page.locator(".card.right[data-sender=ana]").count()
    page.click("[name=focus-ana]")
    page.wait_for_selector(".card.pale[data-sender=aide]")
    assert 0 == page.locator(".card.pale[data-sender=ana]").count()
    page.keyboard.press("Escape")
    window.until("!document.querySelector('.card.pale')")


def test_older_messages_come_by_scrolling_to_the_first(window: Window):
    page = window.at(tab="timeline")
    for _ in range(12):
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(50)
    page.wait_for_selector("text=That is the first one.")
    assert len(page.locator(".card").all()) > 200
    page.screenshot(full_page=True)  # draws anew what was out of sight
    sizes = page.locator(".card").evaluate_all(
        "all => all.map((each) => { const box = each.getBoundingClientRect(); return [box.width, box.height]; })"
    )
    assert min(width for width, _ in sizes) > 150 and max(height for _, height in sizes) < 500


def test_messages_are_filtered_by_what_they_say_and_by_whom(window: Window):
    page = window.at(tab="timeline", text="export", sender="chiara")
    senders = {card.get_attribute("data-sender") for card in page.locator(".card").all()}
    assert {"chiara"} == senders
    page = window.at(tab="timeline", authorized="no")
    assert page.locator(".card").count() == page.locator(".card :text('not authorized')").count() > 0


def test_a_voice_note_plays_and_seeks_and_an_image_opens(window: Window):
    page = window.at(tab="timeline", type="AUDIO")
    page.locator(".medium button").first.click()
    page.wait_for_selector("audio")
    window.until("document.querySelector('audio').readyState >= 2")
    seeked = "async () => { const audio = document.querySelector('audio'); audio.pause(); await new Promise((done) => { audio.onseeked = done; audio.currentTime = 2; }); return audio.currentTime; }"
    assert 2 == pytest.approx(page.evaluate(seeked), abs=0.2)
    page = window.at(tab="timeline", type="IMAGE")
    page.wait_for_selector(".medium img")
    window.until("document.querySelector('.medium img').naturalWidth === 320")
    page.locator(".medium button").first.click()
    page.wait_for_selector("dialog.image[open] img")
    page.keyboard.press("Escape")


def test_what_is_added_to_a_message_later_shows_with_it(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "a.gs") as store, serve_in_thread(store) as url:
        note = timeline.record_message(
            store, "AUDIO", sender="ana", media_hash="0" * 64, classification="raw"
        )
        window = Window(browser, url)
        page = window.at(tab="timeline")
        page.wait_for_selector(".card")
        timeline.annotate(store, note.event.id, transcript="buy two regions", classification="idea")
        page.wait_for_selector(".card .transcript:has-text('buy two regions')", timeout=5_000)
        assert "idea" in page.locator(".card header").inner_text()
        page.reload()
        page.wait_for_selector(".card .transcript:has-text('buy two regions')")
        assert 1 == page.locator(".card").count()
        window.page.close()


def test_who_is_an_agent_is_kept_in_the_store_for_everybody(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "k.gs") as store, serve_in_thread(store) as url:
        timeline.record_message(store, "TEXT", "hello", sender="aide")
        mine, theirs = Window(browser, url), Window(browser, url, token=TOKENS.read)
        page = mine.at(tab="timeline")
        assert 1 == page.locator(".card.right[data-sender=aide]").count()
        page.click("summary:text('Which senders are agents')")
        page.fill("[name=agents]", "aide, bot")
        page.keyboard.press("Enter")
        page.wait_for_selector(".card.left[data-sender=aide]")
        assert ("aide", "bot") == glimpses.settings(store).agents
        page = theirs.at(tab="timeline")
        assert 1 == page.locator(".card.left[data-sender=aide]").count()
        assert 0 == page.locator("[name=agents]").count()
        mine.page.close()
        theirs.page.close()


def test_the_layers_of_memory_are_as_of_the_cursors(window: Window, team: tuple[GraphStore, str]):
    store, _ = team
    middle = store.versions("limit")[1].tx_from
    page = window.at(tab="memory")
    now = page.locator("[name=layer-tool] .big").inner_text()
    page = window.at(tab="memory", tx=middle.isoformat().replace("+00:00", "Z"))
    then = page.locator("[name=layer-tool] .big").inner_text()
    found = {each.layer: each.chunks for each in Memory(store).stats(store.as_of(tx=middle)).layers}
    assert str(found["tool"]) == then != now
    page = window.at(tab="memory")
    page.locator(".row summary").first.click()
    page.wait_for_selector(".row details .thing")


def test_missing_and_altered_media_are_named(browser: Any, tmp_path: Path):
    for name in ("lost.png", "other.png"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + name.encode())
    with graphstore.open(tmp_path / "m.gs") as store, serve_in_thread(store) as url:
        for name in ("lost", "other"):
            timeline.record_message(store, "IMAGE", name, sender="ana", media_path=tmp_path / f"{name}.png")
        (tmp_path / "lost.png").unlink()
        (tmp_path / "other.png").write_bytes(b"\x89PNG\r\n\x1a\nsomething else")
        window = Window(browser, url)
        page = window.at(tab="timeline")
        page.wait_for_selector(".medium :text('is missing')")
        page.wait_for_selector(".medium :text('was altered')")
        page.close()


def test_a_trace_is_a_waterfall_with_what_each_span_says(window: Window):
    page = window.at(tab="timeline")
    page.locator(".card footer a:text('trace')").first.click()
    page.wait_for_selector(".waterfall .span")
    assert page.locator(".waterfall .span").count() >= 7
    page.locator(".waterfall .span").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".event")
    page.click("[name=back]")
    page.wait_for_selector(".card")


def test_what_another_process_writes_shows_within_five_seconds(
    browser: Any, team_folder: Path, tmp_path: Path
):
    place = made_up_team.make(tmp_path / "again")
    with serve_in_process(place) as (_, url):
        token = (place / "token").read_text().strip()
        window = Window(browser, url, token=token)
        page = window.at(tab="timeline")
        page.wait_for_selector(".card")
        with graphstore.open(url, token=token) as elsewhere:
            timeline.record_message(elsewhere, "TEXT", "a word from elsewhere", sender="zoe", role="user")
        page.wait_for_selector(".card.fresh:has-text('a word from elsewhere')", timeout=5_000)
        page.close()


def test_what_is_written_shows_in_live_unless_it_is_paused(window: Window, team: tuple[GraphStore, str]):
    store, _ = team
    page = window.at(tab="live")
    store.add_node("fact", {"name": "seen"}, id="seen_live")
    page.wait_for_selector(".feed .fresh[data-subject=seen_live] a:text('seen')")
    page.click("[name=pause]")
    store.add_node("fact", {"name": "held"}, id="held_back")
    page.wait_for_selector("text=1 waiting")
    assert 0 == page.locator(".feed [data-subject=held_back]").count()
    page.click("[name=pause]")
    page.wait_for_selector(".feed [data-subject=held_back]")


def test_live_says_who_follows_and_through_which_door_each_write_came(browser: Any, tmp_path: Path):
    place = tmp_path / "d.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "before the server"}, id="before")
    with serve_in_process(place) as (_, url):
        token = (place / "token").read_text().strip()
        with graphstore.open(url, token=token) as elsewhere:
            elsewhere.add_node("fact", {"says": "from Python"}, id="by_python")
            with elsewhere.transaction():
                elsewhere.add_node("fact", {"says": "in a transaction"}, id="held")
        command = [
            sys.executable,
            "-m",
            "graphstore",
            "add-node",
            str(place),
            "fact",
            '{"says": "by hand"}',
            "--id",
            "by_hand",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        Wire(url, token).post("/add_node", {"kind": "fact", "content": {"says": "raw"}, "id": "by_http"})
        window = Window(browser, url, token=token)
        page = window.at(tab="live")

        def door(id: str) -> str:
            return page.locator(f".feed .row[data-subject={id}] .door").first.inner_text()

        found = {id: door(id) for id in ("by_python", "held", "by_hand", "by_http", "before")}
        assert {
            "by_python": "Python",
            "held": "Python",
            "by_hand": "",  # a command opens the folder itself: the server knows what it wrote, and not how
            "by_http": "HTTP",
            "before": "",
        } == found
        page.wait_for_selector("h2:text('Followers (1)')")
        assert "may write, from 127.0.0.1" in page.locator("section:has(h2:text('Followers'))").inner_text()
        window.page.close()


def test_numbers_with_their_periods_are_drawn_over_time(window: Window, team: tuple[GraphStore, str]):
    text = "FOR VALID_TIME ALL MATCH (n:Node {id: 'limit'}) RETURN n.id, n.valid_from, n.valid_to, n.number ORDER BY n.valid_from"
    rows = team[0].query(text).tuples()
    assert [begin for _, begin, *_ in rows[1:]] == [end for _, _, end, _ in rows[:-1]] and len(rows) > 1
    page = window.at(tab="ask", run="1", cypher=text)
    drawn = page.locator(".steps-over-time path:not(.rule)")
    assert 1 == drawn.count()
    path = drawn.get_attribute("d")
    assert (1, len(rows) - 1, len(rows)) == tuple(path.count(each) for each in "MVH")
    assert "limit: " + ", ".join(str(row[-1]) for row in rows) == drawn.locator("title").text_content()
    page = window.at(tab="ask", run="1", cypher="MATCH (n:Node) RETURN n.id, n.number LIMIT 3")
    assert 0 == page.locator(".steps-over-time").count() and 1 == page.locator("table").count()


def test_a_recipe_and_a_text_of_ones_own_lead_to_a_thing(window: Window, team: tuple[GraphStore, str]):
    page = window.at(tab="ask", recipe="most_revised")
    page.click("form.ask button[type=submit]")
    page.wait_for_selector("table a.thing")
    page = window.at(tab="ask")
    page.fill("textarea", "MATCH (n:Node) WHERE n.id = 'limit' RETURN n")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".graph .box[data-id=limit]")
    page = window.at(tab="ask", run="1", cypher="MATCH (a:Node)<-[l]-(b:Node) RETURN l, a, b LIMIT 20")
    page.wait_for_selector(".graph .arrow .head")
    drawn = page.locator(".graph .arrow").first
    pair = (drawn.get_attribute("data-source"), drawn.get_attribute("data-target"))
    assert pair in {
        (link.source, link.target) for thing in team[0].nodes() for link in team[0].links_from(thing.id)
    }
    page = window.at(tab="ask", run="1", cypher="MATCH (n:Node) WHERE n.id = 'limit' RETURN n")
    page.wait_for_selector(".graph .box[data-id=limit]")
    page.click("table a.thing")
    page.wait_for_selector(".thing-head")
    page = window.at(tab="ask")
    page.fill("textarea", "")
    page.locator("textarea").press_sequentially("MATCH (n) RETURN n.obser")
    page.keyboard.press("Tab")
    assert page.input_value("textarea").endswith("n.observed")  # a field of this store's own
    page.fill("textarea", "")
    page.locator("textarea").press_sequentially("MAT")
    page.keyboard.press("Tab")
    assert "MATCH" == page.input_value("textarea")


@pytest.mark.parametrize("how", ["the button", "Esc"])
def test_a_question_that_takes_long_is_stopped(window: Window, team: tuple[GraphStore, str], how: str):
    wire = Wire(team[1])

    def under_way() -> int:
        told = wire.get("/metrics").decode()
        return int(re.findall(r"^graphstore_reads_under_way (\d+)", told, re.MULTILINE)[0])

    page = window.at(tab="ask")
    page.fill("textarea", "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN sum(a * b) AS x")
    page.keyboard.press("Control+Enter")
    stop = page.wait_for_selector(".running button")
    assert under_way() >= 1
    if how == "Esc":
        page.keyboard.press("Escape")
    else:
        stop.click()
    page.wait_for_selector(".ask ~ .refused:has-text('Stopped after')")
    assert 0 == page.locator(".running").count()
    for _ in range(200):  # the server's limit is 30 s
        if under_way() == 0:
            break
        page.wait_for_timeout(50)
    assert 0 == under_way()
    page.fill("textarea", "RETURN 2 AS x")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("table .prose:text-is('2')")
    assert 0 == page.locator(".running").count()


def test_the_graph_of_an_answer_folds_and_leads_to_causes(window: Window):
    text = "MATCH (a:Node {id: 'sessions'})-[l]->(b) RETURN a, l, b UNION ALL MATCH (a:Node {id: 'tokens'})-[l]->(b) RETURN a, l, b"
    page = window.at(tab="ask", run="1", cypher=text)
    boxes = "document.querySelectorAll('.graph .box').length"
    many = page.evaluate(boxes)
    assert many >= 4
    page.locator(".graph .box[data-id=tokens]").dispatch_event("click")
    page.click(".about [name=fold]")
    page.wait_for_selector("main:not([aria-busy]) .graph .box.folded[data-id=tokens]")
    assert page.evaluate(boxes) < many
    page.locator(".graph .box[data-id=sessions]").dispatch_event("click")
    page.click(".about [name=here]")
    page.wait_for_selector("main:not([aria-busy]) .view.causes .graph .box.root[data-id=sessions]")


def test_with_the_token_for_reading_nothing_that_writes_is_there(browser: Any, team: tuple[GraphStore, str]):
    may, may_not = Window(browser, team[1]), Window(browser, team[1], token=TOKENS.read)
    assert may.at(tab="review").locator(".act").count()
    assert 0 == may_not.at(tab="review").locator(".act").count()
    assert 0 == may_not.at(tab="memory").locator("[name^=now-]").count()
    may.page.close()
    may_not.page.close()


def test_a_token_with_scopes_sees_its_part_on_every_tab(browser: Any, tmp_path: Path):
    place = tmp_path / "p.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "theirs"}, id="theirs", text="theirs", scope="b")
        store.add_node("fact", {"says": "ours"}, id="ours", text="ours", scope="a")
    token = access_tokens.add(place, "guest", scopes=("a",), rights="read", days=None)
    with serve_in_process(place) as (_, url):
        window = Window(browser, url, token=token)
        for tab in TABS:
            page = window.at(tab=tab)
            assert 0 == page.locator(".refused").count(), tab
            assert "theirs" not in page.locator("body").inner_text(), tab
        assert "ours" in window.at(tab="thing").locator(".view").inner_text()
        window.page.close()


def test_what_is_shaky_is_confirmed_with_a_reason_and_undone(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "s.gs") as store, serve_in_thread(store) as url:
        store.add_node("fact", {"says": "ground"}, id="ground")
        store.add_node("fact", {"says": "house"}, id="house")
        store.link("house", "derived_from", "ground")
        store.retract("ground", reason="it was sand")
        window = Window(browser, url)
        page = window.at(tab="review")
        page.click(".act[name=confirm]")
        page.fill("dialog input", "looked at it")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=All that stands rests on what stands.")
        assert "stands" == store.node("house").standing
        assert "house" in page.locator("section:has(h2:text('Written last')) .subject").first.inner_text()
        page.click(".act[name=undo]")
        page.fill("dialog input", "a mistake")
        page.keyboard.press("Enter")
        page.wait_for_selector(".standing.shaky")
        page.close()


class Unsure:
    """An analyser that is in doubt of one of two decisions."""

    version = "unsure"

    def __call__(self, work: sessions.Work) -> Any:
        found = sessions.builtin(work).json_object()
        sure = {
            "timestamp": found["metadata"]["analyzedAt"],
            "decision": "Kept",
            "reasoning": "it was said",
        }
        guess = {**sure, "decision": "A guess", "reasoning": "no ground", "needsReview": True}
        return {**found, "daemonMeta": {**found["daemonMeta"], "decisions": [sure, guess]}}


def test_a_doubt_of_an_analyser_says_its_decision_and_is_settled_with_a_reason(browser: Any, tmp_path: Path):
    file = write(tmp_path / "one.jsonl", header("one"), said("a", None, 1), said("b", "a", 2, "assistant"))
    with graphstore.open(tmp_path / "d.gs") as store, serve_in_thread(store) as url:
        sessions.ingest(store, file, analyze=Unsure())
        (doubt,) = sessions.doubts(store)
        window = Window(browser, url)
        page = window.at(tab="review")
        page.wait_for_selector("section:has(h2:text('Doubts of analysers (1)')) :text('no ground')")
        page.click(".act[name='it holds']")
        page.fill("dialog input", "asked them")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=No analyser is in doubt.")
        decisions = store.node(doubt.id).content["daemonMeta"]["decisions"]
        assert [("Kept", None), ("A guess", False)] == [
            (each["decision"], each.get("needsReview")) for each in decisions
        ]
        assert ("revise", "asked them") == (store.changes()[-1].verb, store.changes()[-1].reason)
        window.page.close()


def test_a_lost_server_is_named_and_its_return_noticed(browser: Any, tmp_path: Path):
    place = tmp_path / "l.gs"
    with graphstore.open(place) as store:
        store.add_node("fact", {"says": "still here"}, id="here")
    with serve_in_process(place) as (process, url):
        window = Window(browser, url, token=(place / "token").read_text().strip())
        process.kill()
        window.page.wait_for_selector("body.lost")
        assert "does not answer" in window.page.inner_text("#state")
    with serve_in_process(place, "--port", url.rpartition(":")[2]):
        window.page.wait_for_selector("body:not(.lost) .view.thing .rows :text('still here')")
    window.page.close()


def test_an_empty_store_says_so_on_every_tab(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "e.gs") as store, serve_in_thread(store) as url:
        window = Window(browser, url)
        for tab in TABS:
            assert 0 == window.at(tab=tab).locator(".refused").count(), tab
        assert [] == window.wrong
        window.page.close()


HOSTILE = (
    "<script>window.hurt = 1</script>",
    '"><img src=x onerror="window.hurt=1">',
    "<svg onload=window.hurt=1>",
    "javascript:window.hurt=1",
    "\u202eoh no\u2066\u0000\u001b[31m",
    "${window.hurt=1}{{7*7}}</textarea></style><style>*{display:none}",
)


def test_hostile_content_in_every_field_runs_nothing_and_breaks_nothing(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "h.gs", author=HOSTILE[0]) as store, serve_in_thread(store) as url:
        ids = []
        with store.transaction(reason=HOSTILE[1]):
            for number, text in enumerate(HOSTILE):
                clean = text.replace("\0", "")
                node = store.add_node(
                    clean[:60],
                    {clean: clean, "long": "x" * 1_000_000},
                    id=f"h{number}<b>",
                    text=clean,
                    tags=(clean,),
                    source=clean,
                    key=clean,
                )
                ids.append(node.id)
                timeline.record_message(
                    store,
                    "TEXT",
                    clean + " " + "y" * 1_000_000,
                    sender=clean,
                    sender_name=clean,
                    thread=clean,
                    trace_id=f"{number}" * 32,
                    span_id=f"s{number}",
                    classification=clean,
                    role=clean,
                    metadata={clean: clean},
                )
            for one, other in pairwise(ids):
                store.link(one, "caused_by", other, reason=HOSTILE[0])
                store.link(one, "derived_from", other, reason=HOSTILE[1])
        store.retract(ids[-1], reason=HOSTILE[2])
        store.branch("b<script>", reason=HOSTILE[0])
        window = Window(browser, url)
        for tab in TABS:
            for more in ({}, {"id": ids[0]}, {"id": ids[-1]}):
                if not more or tab in ("thing", "causes"):
                    page = window.at(tab=tab, **more)
                    page.wait_for_timeout(100)
                    assert page.evaluate("window.hurt") is None, tab
                    assert 0 == page.locator("main script, main img[src=x]").count()
        window.at(tab="timeline", trace="0" * 32)
        window.at(tab="timeline", sender=HOSTILE[0], focus=HOSTILE[1])
        window.at(tab="ask", run="1", cypher="MATCH (n:Node) RETURN n LIMIT 5")
        assert window.page.evaluate("window.hurt") is None
        assert [] == window.wrong
        assert window.largest < 500_000
        window.page.close()


def test_ten_thousand_links_on_one_node_stay_small(browser: Any, tmp_path: Path):
    with graphstore.open(tmp_path / "t.gs") as store, serve_in_thread(store) as url:
        names = [f"n{number}" for number in range(10_000)]
        store.bulk_load(
            nodes=[{"id": each, "kind": "fact"} for each in ["hub", *names]],
            versions=[{"node_id": each, "content": {"name": each}} for each in ["hub", *names]],
            links=[{"source": each, "kind": "caused_by", "target": "hub"} for each in names],
        )
        window = Window(browser, url)
        page = window.at(tab="thing", id="hub")
        assert "10,000" in page.locator(".view").inner_text()
        page = window.at(tab="causes", id="hub", way="effects")
        assert 200 == page.locator(".graph .box").count()
        assert window.largest < 500_000
        page.close()


def test_a_branch_is_named_on_every_tab_and_left_by_a_click(window: Window):
    page = window.at(tab="thing", id="limit", branch="what-if")
    assert "800 requests" in page.locator(".thing-head h2").inner_text()
    page.keyboard.press("3")
    page.wait_for_selector("main:not([aria-busy]) .view.timeline")
    assert "on branch what-if" in page.locator("#branch").inner_text()
    page = window.at(tab="thing", id="limit", branch="what-if")
    page.click("#branch")
    page.wait_for_selector(".thing-head h2:has-text('400 requests')")
    assert page.locator("#branch").is_hidden()


def test_the_first_page_says_what_it_may_load(team: tuple[GraphStore, str], window: Window):
    policy = window.page.request.get(team[1]).headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
