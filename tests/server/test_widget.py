"""The page in a notebook: what Python sees of it and sets, and the module that a notebook loads in a real browser, both ends joined by the widgets' own messages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm

import graphstore
from graphstore import GraphStore, InvalidError
from tests.conftest import Clock
from tests.support.browser import chromium

pytest.importorskip("anywidget")
traitlets = pytest.importorskip("traitlets")

from graphstore.server.widget import Page  # noqa: E402

pytestmark = pytest.mark.in_process("asks the store it is given")

ROOT = Path(__file__).parents[2]
# The end of a notebook that widgets speak to: a model with the methods of the contract, joined to the kernel by `kernel`.
NOTEBOOK = """
const heard = {}, state = JSON.parse(document.getElementById("state").textContent);
let dirty = {};
const tell = (event, value) => (heard[event] ?? []).slice().forEach((each) => each(value));
const set = (name, value) => { if (state[name] !== value) { state[name] = value; tell(`change:${name}`, value); } };
globalThis.receive = (messages) => { for (const each of messages) each.method === "custom" ? tell("msg:custom", each.content) : Object.entries(each.state).forEach(([name, value]) => set(name, value)); };
const model = {
  get: (name) => state[name],
  set(name, value) { dirty[name] = value; set(name, value); },
  save_changes() { const state = dirty; dirty = {}; if (Object.keys(state).length) kernel({ method: "update", state }).then(receive); },
  send: (content) => kernel({ method: "custom", content }).then(receive),
  on: (event, each) => (heard[event] ??= []).push(each),
  off: (event, each) => (heard[event] = (heard[event] ?? []).filter((other) => other !== each)),
};
const { default: widget } = await import("./widget.mjs");
globalThis.leave = widget.render({ model, el: document.getElementById("here") });
"""


class Line(BaseComm):
    """A line to the browser: what the widget sends is kept until it is fetched."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        super().__init__(*args, **more)

    def publish_msg(self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any) -> None:  # fmt: skip
        if msg_type == "comm_msg":
            self.sent.append(json.loads(json.dumps(data)))

    def fetched(self) -> list[dict[str, Any]]:
        found, self.sent = self.sent, []
        return [each for each in found if each["method"] in ("custom", "update")]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm, "create_comm", Line)


@pytest.fixture
def limits(store: GraphStore, clock: Clock, lines: None) -> GraphStore:
    """A limit that was raised, and an outage behind it, said later than it was."""
    clock.set("2026-02-01")
    store.add_node("fact", {"says": "100 requests"}, id="limit", valid_from="2026-01-01")
    clock.set("2026-03-01")
    with store.transaction():
        store.record_event("outage", "the login was down", id="outage", occurred_at="2026-02-10")
        store.revise("limit", {"says": "400 requests"}, valid_from="2026-02-15")
        store.link("limit", "caused_by", "outage", reason="too few", valid_from="2026-02-15")
    clock.set("2026-04-01")
    return store


# ---------------------------------------------------------------- Python


def test_python_sets_both_cursors_and_sees_them_move(limits: GraphStore):
    page = Page(limits, "limit")
    seen: list[tuple[str, Any]] = []
    page.observe(lambda change: seen.append((change["name"], change["new"])), ["valid", "tx", "id", "tab"])

    assert (None, None) == (page.valid, page.tx)
    assert "400 requests" == page.view.node("limit").content["says"]
    page.valid = "2026-01-10"
    assert "100 requests" == page.view.node("limit").content["says"]
    page.valid, page.tx = None, datetime(2026, 2, 2, tzinfo=UTC)
    assert "100 requests" == page.view.node("limit").content["says"]
    page.tx, page.tab, page.id = "", "causes", "outage"
    assert [
        ("valid", "2026-01-10T23:59:59.999999Z"), ("valid", None), ("tx", "2026-02-02T00:00:00Z"),
        ("tx", None), ("tab", "causes"), ("id", "outage"),
    ] == seen  # fmt: skip


def test_what_is_no_instant_and_no_tab_is_refused_and_nothing_moves(limits: GraphStore):
    page = Page(limits, tx="2026-02-02")
    with pytest.raises(InvalidError, match="soon"):
        page.valid = "soon"
    with pytest.raises(InvalidError, match="zone"):
        page.tx = datetime(2026, 2, 2)
    with pytest.raises(traitlets.TraitError):
        page.tab = "review"
    assert (None, "2026-02-02T23:59:59.999999Z", "thing") == (page.valid, page.tx, page.tab)


@pytest.mark.parametrize("name", ["add_node", "erase", "open", "_core", "export", "tables.history_to", ""])
def test_a_page_is_not_given_what_writes_or_is_unknown(limits: GraphStore, name: str):
    page = Page(limits)
    before = limits.stats()["operations"]
    page._handle_custom_msg({"id": "1", "name": name, "args": {}, "query": ""}, [])

    [answer] = [each["content"] for each in page.comm.fetched()]
    assert 422 == answer["status"] and "does not ask" in json.loads(answer["body"])["message"]
    assert before == limits.stats()["operations"]


def test_answers_are_those_of_the_coordinate_and_errors_keep_their_status(limits: GraphStore):
    page = Page(limits)

    def asked(query: str) -> tuple[int, Any]:
        page._handle_custom_msg({"id": "1", "name": "page.glimpse", "args": {"id": "limit"}, "query": query}, [])  # fmt: skip
        [answer] = [each["content"] for each in page.comm.fetched()]
        return answer["status"], json.loads(answer["body"])

    assert "400 requests" == asked("")[1]["thing"]["content"]["says"]
    assert "100 requests" == asked("tx=2026-02-02")[1]["thing"]["content"]["says"]
    assert 404 == asked("tx=2020-01-01")[0]
    assert 422 == asked("tx=soon")[0]
    assert {"thing"} == set(asked("fields=thing")[1])


def test_a_kernel_keeps_what_a_notebook_shows_of_it(tmp_path: Path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import graphstore\nfrom graphstore.server.widget import Page\nstore = graphstore.open(':memory:')\nstore.add_node('fact', {}, id='a')\npage = Page(store, 'a')\npage",
        "page.valid = '2026-02-17'",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path / "ipython")}
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute(
        env=environment
    )

    [output] = notebook.cells[0].outputs
    view = output.data["application/vnd.jupyter.widget-view+json"]
    kept = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"].state
    state = kept[view["model_id"]].state
    assert ("2026-02-17T23:59:59.999999Z", None, "a") == (state["valid"], state["tx"], state["id"])
    assert "export default" in state["_esm"]


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Callable[[Page], Any]]:
    """What opens a widget in a browser of its own, without a network."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened(widget: Page, **more: Any) -> Any:
        state = {name: getattr(widget, name) for name in ("valid", "tx", "id", "tab")}
        (tmp_path / "widget.mjs").write_text(widget._esm, encoding="utf-8")
        (tmp_path / "index.html").write_text(
            f'<!doctype html><meta charset=utf-8><body data-jp-theme-light="true"><h1>A notebook</h1>'
            f'<script type="application/json" id="state">{json.dumps(state)}</script><div id="here"></div>'
            f'<script type="module">{NOTEBOOK}</script>',
            encoding="utf-8",
        )
        contexts.append(browser.new_context(viewport={"width": 1000, "height": 900}, **more))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.route("**/*", lambda route: route.fulfill(path=tmp_path / (route.request.url.rpartition("/")[2] or "index.html")))  # fmt: skip

        def kernel(message: dict[str, Any]) -> list[dict[str, Any]]:
            widget._handle_msg({"content": {"data": {"buffer_paths": [], **message}}, "buffers": []})
            found: list[dict[str, Any]] = widget.comm.fetched()
            return found

        page.expose_function("kernel", kernel)
        page.goto("http://notebook.invalid/")
        page.wait_for_selector(".view .thing-head, .view .rows, .view .graph")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [] == wrong


@pytest.mark.rest
def test_a_cursor_moved_in_the_notebook_is_seen_in_python_and_the_other_way_round(
    limits: GraphStore, shown: Callable[..., Any]
):
    widget = Page(limits, "limit")
    seen: list[Any] = []
    widget.observe(lambda change: seen.append(change["new"]), "tx")
    page = shown(widget)
    page.wait_for_selector(".thing-head h2:has-text('400 requests')")
    page.wait_for_selector(".cursor.tx .strip .bars rect")
    page.click(".cursor.tx .back")
    page.wait_for_selector(".cursor.tx .badge:visible")
    page.click(".cursor.tx .back")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")
    assert "2026-02-01T00:00:00Z" == widget.tx == seen[-1]
    assert "100 requests" == widget.view.node("limit").content["says"]

    widget.tx, widget.valid = None, "2026-02-20"
    page.evaluate("receive", widget.comm.fetched())
    page.wait_for_selector(".thing-head h2:has-text('400 requests')")
    assert page.locator(".cursor.valid .instant").input_value().startswith("2026-02-20 23:59")
    page.fill(".cursor.valid .instant", "2026-01-05")
    page.keyboard.press("Enter")
    page.wait_for_selector(".thing-head h2:has-text('100 requests')")
    assert "2026-01-05T23:59:59.999999Z" == widget.valid


@pytest.mark.rest
def test_causes_of_the_same_thing_are_a_tab_away_and_what_is_written_is_drawn_anew(
    limits: GraphStore, shown: Callable[..., Any]
):
    widget = Page(limits, "limit")
    page = shown(widget)
    page.click("[name=tab-causes]")
    page.wait_for_selector(".graph .box[data-id=outage]")
    assert "causes" == widget.tab and "limit" == widget.id
    assert "too few" in page.locator(".graph .arrow").first.text_content()
    limits.record_event("deploy", "v7", id="deploy", occurred_at="2026-02-09")
    limits.link("outage", "caused_by", "deploy", valid_from="2026-02-10")
    widget.refresh()
    page.evaluate("receive", widget.comm.fetched())
    page.wait_for_selector(".graph .box[data-id=deploy]")
    page.locator(".graph .box[data-id=deploy]").dispatch_event("click")
    page.click(".about a.thing")
    page.wait_for_selector(".thing-head h2:has-text('v7')")
    assert ("deploy", "thing") == (widget.id, widget.tab)
    page.evaluate("leave()")


@pytest.mark.rest
def test_hostile_words_run_nothing_and_leave_the_notebook_as_it_is(
    limits: GraphStore, shown: Callable[..., Any]
):
    hostile = "</script><img src=x onerror='window.hit = 1'><style>h1{display:none}</style> \u202e" * 40
    limits.add_node("fact", {"says": hostile}, id="hostile")
    limits.link("hostile", "caused_by", "limit", reason=hostile)
    page = shown(Page(limits, "hostile"), color_scheme="dark")
    page.wait_for_selector(".thing-head h2")
    page.click("[name=tab-causes]")
    page.wait_for_selector(".graph .box[data-id=limit]")
    assert page.evaluate("window.hit ?? null") is None
    assert page.locator("body > h1").is_visible()
    paper = "getComputedStyle(document.querySelector('#here > div').shadowRoot.querySelector('.page')).backgroundColor"
    light = page.evaluate(paper)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function(f"{paper} !== {light!r}")


@pytest.mark.rest
def test_a_store_on_a_server_is_asked_there(tmp_path: Path, lines: None, shown: Callable[..., Any]):
    from tests.support.served import serve_in_thread

    with graphstore.open(tmp_path / "s.gs", author="ana") as store:
        store.add_node("fact", {"says": "as served"}, id="fact")
        with serve_in_thread(store) as url, graphstore.open(url, token=_token()) as remote:
            page = shown(Page(remote, "fact"))
            page.wait_for_selector(".thing-head h2:has-text('as served')")


def _token() -> str:
    from tests.support.served import TOKENS

    return TOKENS.read
