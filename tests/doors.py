"""The stores of the fixtures behind a real server, when GRAPHSTORE_DOOR=http: one server for the whole run, each store behind a token of its own.

What cannot hold through a server is named below, with the reason. It must fail there: what begins to hold is to be taken off the list.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.server_requests import Heads

THROUGH_A_SERVER = os.environ.get("GRAPHSTORE_DOOR") == "http"

FILES = (
    "test_api",
    "test_asking",
    "test_bad_input",
    "test_branches",
    "test_cloud_events",
    "test_conflicts",
    "test_connecting",
    "test_consolidation",
    "test_decay",
    "test_event_log",
    "test_folding",
    "test_gasoline",
    "test_hops",
    "test_imports",
    "test_lifecycle",
    "test_memobrain",
    "test_memory",
    "test_otlp",
    "test_pi_brain",
    "test_proposals",
    "test_recall",
    "test_recorder",
    "test_resting",
    "test_retention",
    "test_session_nodes",
    "test_slots",
    "test_snapshots",
    "test_timeline",
    "test_topics",
    "test_traces",
    "test_view_query",
    "test_walks",
    "test_working",
)
"""The tests that speak the public methods, and run through a server too (`make test-http`)."""

LEFT_OUT = {
    "test_accesses": "counts what waits in the store's memory",
    "test_cascade": "is long, and reads as test_resting does",
    "test_context": "its conversations are compressed by functions of the test",
    "test_embedders": "its embedders are objects of the test",
    "test_events": "looks at what is laid aside in the store",
    "test_following": "follows files in the process of the store",
    "test_forgetting": "looks at the files of the store while it is open",
    "test_indexers": "its sources are objects of the test",
    "test_ingesting": "its analysers are functions of the test",
    "test_kept_settings": "writes settings underneath the public verbs",
    "test_observer": "its compressors are functions of the test",
    "test_occurrences": "looks into the index",
    "test_pictures": "draws without a server",
    "test_projection": "looks into the graph tables",
    "test_search": "asks the parts of the store that search",
    "test_vectors": "its embedders are objects of the test",
}
"""Files that use the store's fixtures and stay in process, each with the reason."""

FUNCTION = "gives a function of its own, which cannot be sent"
INSIDE = "looks into the store"
CANNOT: dict[str, str] = {
    "test_connecting::test_what_is_analysed_again_keeps_its_connections": FUNCTION,
    "test_consolidation::test_another_summary_can_be_plugged_in": FUNCTION,
    "test_consolidation::test_summary_is_drafted_with_no_lock_held_and_the_earliest_first": FUNCTION,
    "test_consolidation::test_bad_input_is_refused[wrong6]": "a function goes by its name there",
    "test_imports::test_progress_is_told": "progress is told at the end",
    "test_proposals::test_a_sweep_writes_what_is_admitted_as_inferred_links_of_the_extractor": FUNCTION,
    "test_proposals::test_the_extractor_is_asked_about_what_was_told_since_the_last_sweep": FUNCTION,
    "test_proposals::test_since_asks_again": FUNCTION,
    "test_proposals::test_an_extractor_that_raises_leaves_nothing_and_is_asked_again": FUNCTION,
    "test_proposals::test_what_the_store_will_not_have_is_refused_with_its_words": FUNCTION,
    "test_proposals::test_a_sweep_is_remembered_across_openings": FUNCTION,
    "test_proposals::test_what_is_told_while_the_extractor_thinks_is_asked_about_next_time": FUNCTION,
    "test_proposals::test_without_an_extractor_only_the_upkeep_is_done": FUNCTION,
    "test_proposals::test_an_extractor_must_be_a_function": "no extractor is sent, whatever it is",
}


def mark(items: list[pytest.Item]) -> None:
    """Expect of each test that is named that it fails through a server."""
    for item in items:
        file = item.path.stem
        name = item.name.partition("[")[0]
        reason = CANNOT.get(f"{file}::{name}") or CANNOT.get(f"{file}::{item.name}")
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@contextlib.contextmanager
def reached(store: GraphStore) -> Iterator[GraphStore]:
    """The store itself; or, when the tests go through a server, one that asks it over HTTP."""
    if not THROUGH_A_SERVER:
        yield store
        return
    from graphstore import remote

    server = _server()
    with contextlib.ExitStack() as stack:
        token = stack.enter_context(server.behind(store))
        there = remote.connect(server.url, token)
        stack.callback(type(there).close, there)

        def close() -> None:
            """Here a server ends with its only client, so that a test may open the store again."""
            type(there).close(there)
            stack.close()
            store.close()

        there.close = close  # type: ignore[method-assign]
        yield there


@cache
def _server() -> _Server:
    return _Server()


class _Server:
    """One server in a thread, which asks the app of the store whose token it is shown."""

    def __init__(self) -> None:
        import uvicorn

        from graphstore import server_run

        self._doors: dict[bytes, Any] = {}
        listening = server_run._listen(server_run.Listening(port=0))
        made = _App(self)
        self._server = uvicorn.Server(server_run.config(made))
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._server.run, args=([listening],), daemon=True).start()
        while self._loop is None or not self._server.started:
            time.sleep(0.002)
        self.url = server_run._url("127.0.0.1", listening.getsockname()[1])

    @contextlib.contextmanager
    def behind(self, store: GraphStore) -> Iterator[str]:
        """The token for a store while it is served."""
        from graphstore.server import Door, Limits, Patience
        from graphstore.server_requests import Gate
        from graphstore.tokens import Tokens

        tokens = Tokens(write=secrets.token_hex(16), read=secrets.token_hex(16))
        assert self._loop is not None

        async def opened() -> Any:
            door = Door(
                _nothing, store, tokens, limits=Limits(), patience=Patience(), gate=Gate(), read_only=store.read_only
            )  # type: ignore[arg-type]  # fmt: skip
            life = door.open()
            await life.__aenter__()
            return door, life

        door, life = asyncio.run_coroutine_threadsafe(opened(), self._loop).result(30)
        self._doors[tokens.write.encode()] = door
        try:
            yield tokens.write
        finally:
            door.end()
            del self._doors[tokens.write.encode()]
            asyncio.run_coroutine_threadsafe(life.__aexit__(None, None, None), self._loop).result(30)

    def gone(self, client: Any) -> None:
        for door in list(self._doors.values()):
            door.gone(client)


class _App:
    def __init__(self, server: _Server) -> None:
        self._of = server
        self.gone = server.gone
        self.heads = Heads(60.0, 1 << 16)
        self.state = SimpleNamespace(door=server)

    def come(self, client: Any) -> bool:
        return True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            self._of._loop = asyncio.get_running_loop()
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": f"{message['type']}.complete"})
            return
        token = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
        await self._of._doors[token](scope, receive, send)


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})
