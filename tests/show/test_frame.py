"""A graph that a still picture cannot show whole, in a frame: what is packed into it, and what a real browser makes of it without a network."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.show import frame
from graphstore.show.pictures import LIMIT
from tests.conftest import Clock
from tests.support.browser import chromium

pytestmark = pytest.mark.in_process("draws without a server")

ROOT = Path(__file__).parents[2]
STORY = """
import graphstore
store = graphstore.open(":memory:", author="ana")
hostile = '</pre></script><script>parent.hit = top.hit = 1</script><img src=x onerror="top.hit = 1"> \\u202e '
with store.transaction():
    for number in range(200):
        at = f"2026-01-{1 + number // 24:02}T{number % 24:02}:00Z"
        store.add_node("step", {"says": f"step {number} " + hostile}, id=f"n{number}", valid_from=at)
        if number:
            store.link(f"n{number}", "caused_by", f"n{max(0, number - 1 - number % 2)}", reason=hostile, valid_from=at)
"""


def story() -> GraphStore:
    """A chain of 200 in hostile words."""
    names: dict[str, Any] = {}
    exec(STORY, names)
    store = names["store"]
    assert isinstance(store, GraphStore)
    return store


def documents(html: str) -> list[str]:
    """What the frames of a value's HTML hold."""
    return [unescape(each) for each in re.findall(r'<iframe [^>]*srcdoc="([^"]*)"', html)]


def unpacked(document: str) -> dict[str, Any]:
    packed = re.search(r"<pre hidden>([^<]*)</pre>", document)
    assert packed is not None
    found: dict[str, Any] = json.loads(zlib.decompress(b64decode(packed[1])))
    return found


def test_a_chain_of_200_has_all_of_itself_in_its_frame():
    with story() as store:
        html = store.effects("n0", depth=300)._repr_html_()
    [document] = documents(html)
    found = unpacked(document)["found"]

    assert {f"n{number}" for number in range(200)} == {each["id"] for each in found["things"]}
    assert {each["id"] for each in found["things"]} == {each["id"] for each in found["places"]}
    assert 199 == len(found["links"]) and 0 == found["left_out"] and "n0" == found["root"]
    assert len(html.encode()) <= LIMIT


def test_what_a_picture_shows_whole_has_no_frame(store: GraphStore):
    store.record_event("deploy", "v1", id="deploy", occurred_at="2026-03-02")
    store.record_event("error", "down", id="down", occurred_at="2026-03-03")
    store.link("down", "caused_by", "deploy", valid_from="2026-03-03")

    assert [] == documents(store.effects("deploy")._repr_html_())
    assert [] == documents(store.query("MATCH (a)-[l]->(b) RETURN a, l, b")._repr_html_())


def test_more_arrows_than_a_picture_shows_are_in_the_frame(store: GraphStore, clock: Clock):
    clock.set("2026-04-01")
    with store.transaction():
        for number in range(20):
            store.record_event("error", str(number), id=f"e{number}", occurred_at=f"2026-03-{number + 1:02}")
        for later in range(20):
            for number in range(later):
                store.link(f"e{later}", "caused_by", f"e{number}", valid_from="2026-03-21")

    [document] = documents(store.effects("e0")._repr_html_())
    assert 190 == len(unpacked(document)["found"]["links"])


def test_links_of_a_thing_replacements_and_answers_have_frames_too(store: GraphStore, clock: Clock):
    clock.set("2026-03-01")
    store.add_node("fact", {"says": "hub"}, id="hub")
    with store.transaction():
        for number in range(40):
            store.add_node("fact", {"says": f"spoke {number}"}, id=f"s{number}")
            store.link(f"s{number}", "part_of", "hub")
    for number in range(1, 40):
        clock.set(f"2026-04-{1 + number // 2:02}T{number % 2:02}:00Z")
        store.add_node("fact", {}, id=f"v{number}", supersedes=f"v{number - 1}" if number > 1 else "s0")

    for value, things in (
        (store.inspect("hub"), 41),
        (store.what_superseded("s0"), 40),
        (store.query("MATCH (a:Node)-[l]->(b:Node) RETURN a, l, b"), 40),
    ):
        [document] = documents(value._repr_html_())
        assert things <= len(unpacked(document)["found"]["things"]), value


def test_a_thousand_things_are_the_most_and_the_rest_is_counted(store: GraphStore):
    with store.transaction():
        store.record_event("error", "first", id="first", occurred_at="2026-01-01")
        for number in range(1_200):
            store.record_event("error", f"{number}", id=f"e{number}", occurred_at="2026-01-02")
            store.link(f"e{number}", "caused_by", "first", valid_from="2026-01-02")

    html = store.effects("first")._repr_html_()
    [document] = documents(html)
    found = unpacked(document)["found"]
    assert 1_201 == len(found["things"]) + found["left_out"]
    assert 100 <= len(found["things"]) <= frame.MOST
    assert len(html.encode()) <= LIMIT


def test_the_policy_of_a_frame_names_its_two_scripts_and_nothing_else():
    with story() as store:
        [document] = documents(store.effects("n0", depth=300)._repr_html_())
    policy = re.search(r'content="(default-src [^"]*)"', document)
    loader = re.findall(r"<script>(.*?)</script>", document, re.DOTALL)
    assert policy is not None and 1 == len(loader)
    scripts = [*loader, unpacked(document)["code"]]
    digests = " ".join(f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in scripts)
    assert f"default-src 'none'; script-src {digests}" == policy[1]


# ---------------------------------------------------------------- in a browser, from a notebook that was run


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook run by a kernel, and its output as a page: as exports have it, in the body that says the theme."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    place = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(STORY), nbformat.v4.new_code_cell("store.effects('n0', depth=300)")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(place / "ipython")}
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(place)}}).execute(
        env=environment
    )
    [output] = notebook.cells[-1].outputs
    page = place / "exported.html"
    page.write_text(
        f'<!doctype html><meta charset=utf-8><body data-jp-theme-light="true">{output.data["text/html"]}',
        encoding="utf-8",
    )
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.rest
def test_an_exported_notebook_shows_all_200_without_a_network(browser: Any, exported: Path):
    page = browser.new_context(offline=True).new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text))
    page.goto(exported.as_uri())
    page.wait_for_selector(".graphstore.live")
    inside = page.frames[1]
    inside.wait_for_selector(".graph .box")

    assert {f"n{number}" for number in range(200)} == set(
        inside.evaluate("[...document.querySelectorAll('.graph .box')].map((each) => each.dataset.id)")
    )
    assert 199 == inside.locator(".graph .arrow").count()
    assert not page.locator(".graphstore > svg").is_visible()
    assert [None, None] == page.evaluate("[window.hit ?? null, frames[0].hit ?? null]")
    seen = "document.querySelector('.graph').viewBox.baseVal.width"
    near = inside.evaluate(seen)
    inside.click(".zoom button:last-child")
    assert inside.evaluate(seen) > 10 * near  # all of it
    assert "step 7 </pre></script>" in inside.locator(".graph .box[data-id=n7] title").text_content()
    inside.locator(".graph .box[data-id=n3]").dispatch_event("click")
    inside.click("button[name=fold]")
    inside.wait_for_selector(".graph .box.folded")
    assert inside.locator(".graph .box").count() < 200
    inside.locator("details summary").click()
    inside.locator("details a[data-id=n1]").first.click()
    inside.wait_for_selector(".graph .root[data-id=n1]")
    assert [exported.as_uri()] == [each for each in asked if not each.startswith("about:")]
    assert [] == wrong
    page.context.close()


@pytest.mark.rest
def test_a_frame_has_the_theme_of_the_notebook_else_of_the_viewer(browser: Any, exported: Path):
    paper = "getComputedStyle(document.body).backgroundColor"
    page = browser.new_context(offline=True, color_scheme="dark").new_page()
    page.goto(exported.as_uri())
    page.wait_for_selector(".graphstore.live")
    inside = page.frames[1]
    light = inside.evaluate(paper)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    inside.wait_for_function(f"{paper} !== {light!r}")
    dark = inside.evaluate(paper)
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    inside.wait_for_function(f"{paper} === {light!r}")
    page.evaluate("delete document.body.dataset.jpThemeLight")
    inside.wait_for_function(f"{paper} === {dark!r}")
    page.emulate_media(color_scheme="light")
    inside.wait_for_function(f"{paper} === {light!r}")
    page.context.close()


@pytest.mark.rest
def test_without_scripts_the_still_picture_stays(browser: Any, exported: Path):
    page = browser.new_context(offline=True, java_script_enabled=False).new_page()
    page.goto(exported.as_uri())
    assert page.locator(".graphstore > svg").is_visible()
    assert not page.locator("iframe").is_visible()
    assert page.get_by_text("more not shown in the picture").is_visible()
    page.context.close()
