"""A page of another origin in a real browser: the one that was named reads and writes, any other is told nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphstore import GraphStore
from tests.support.browser import chromium
from tests.support.served import TOKENS, fact, serve_in_thread

pytestmark = [pytest.mark.in_process("has a server of its own"), pytest.mark.rest]

ASK = """async ([url, token, path, body, more]) => {
    const headers = {authorization: `Bearer ${token}`, "content-type": "application/json", ...more};
    try {
        const answer = await fetch(url + path, body ? {method: "POST", headers, body: JSON.stringify(body)} : {headers});
        return [answer.status, answer.headers.get("etag"), await answer.json()];
    } catch (error) {
        return [error.name, null, null];
    }
}"""
STREAM = """async ([url, token]) => {
    const answer = await fetch(url + "/changes?since=2020-01-01", {headers: {authorization: `Bearer ${token}`, accept: "text/event-stream"}});
    const reader = answer.body.getReader();
    const {value} = await reader.read();
    await reader.cancel();
    return new TextDecoder().decode(value);
}"""


class Page(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>notes</title>")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_page_that_was_named_reads_and_writes_and_no_other(
    disk_store: GraphStore, elsewhere: str
) -> None:
    other = elsewhere.replace("127.0.0.1", "localhost")
    with serve_in_thread(disk_store, origins=[elsewhere]) as url, chromium() as browser:
        page = browser.new_page()
        page.goto(elsewhere)

        def ask(path: str, body: Any = None, **more: str) -> Any:
            return page.evaluate(ASK, [url, TOKENS.write, path, body, more])

        status, _, made = ask("/add_node", fact("n1"), **{"graphstore-request": "one"})
        assert (200, "n1") == (status, made["id"])
        disk_store.snapshot("before")
        status, tag, found = ask("/node?id=n1&as_of=before")
        assert (200, {"name": "n1"}) == (status, found["content"])
        assert tag
        assert 404 == ask("/node?id=nothing")[0]
        assert [422, None] == ask("/revise", {"id": "n1", "content": {}}, **{"if-match": "seven"})[:2]
        assert "add_node" in page.evaluate(STREAM, [url, TOKENS.read])
        page.goto(other)
        assert "TypeError" == ask("/node?id=n1")[0]
        assert "TypeError" == ask("/add_node", fact("n2"))[0]
    assert ["n1"] == [node.id for node in disk_store.nodes()]
