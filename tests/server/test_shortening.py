"""Answers with less in them: some fields, and shorter texts."""

from __future__ import annotations

import pytest

from graphstore import GraphStore
from tests.support.served import TOKENS, Wire, fact, serve_in_thread

pytestmark = pytest.mark.in_process("has a server of its own")


def test_fields_and_brief_answer_with_less(disk_store: GraphStore) -> None:
    disk_store.add_node(**fact("n1", text="x" * 200))
    with serve_in_thread(disk_store) as url:
        wire = Wire(url, TOKENS.read)
        assert {"id": "n1", "text": "x" * 100 + "…"} == wire.ask(
            "GET", "/node?id=n1&fields=id,text&brief=100"
        )[1]
        assert [{"id": "n1", "content": {"name": "n1"}}] == wire.ask("POST", "/nodes?fields=id,content", {})[
            1
        ]
        page = wire.ask("POST", "/timeline/messages?fields=id", {})[1]
        assert "cursor" in page
        for number in range(2, 6):
            disk_store.add_node(**fact(f"n{number}"))
        assert [{"id": "n1"}, {"id": "n2"}] == wire.ask("POST", "/nodes?part=2&fields=id", {})[1]
        assert [{"id": "n5"}] == wire.ask("POST", "/nodes?part=-1&fields=id", {})[1]
        for wrong in ("part=0", "part=all", "brief=0", "brief=99", "brief=few", "fields=,"):
            assert 422 == wire.ask("GET", f"/node?id=n1&{wrong}")[0]
        assert 422 == Wire(url, TOKENS.write).ask("POST", "/add_node?brief=300", fact("n2"))[0]
