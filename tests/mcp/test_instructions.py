"""The instructions of a server for agents name the tools that it offers, and no other, whatever is offered."""

from __future__ import annotations

import re
from itertools import combinations, product

import pytest

from graphstore import GraphStore

pytest.importorskip("mcp")

from graphstore import mcp
from graphstore.mcp.protocol import TOOL_SETS
from tests.support.agent import agent

pytestmark = pytest.mark.in_process("its tools ask the store in process")

SETS = [chosen for many in range(1, len(TOOL_SETS) + 1) for chosen in combinations(TOOL_SETS, many)]
EVERY = {*TOOL_SETS["all"]}


@pytest.mark.parametrize(("read_only", "allow_erase"), product((False, True), repeat=2))
def test_instructions_name_the_tools_that_are_offered_and_no_other(
    store: GraphStore, read_only: bool, allow_erase: bool
) -> None:
    for chosen in SETS:
        server = mcp.server(store, tools=chosen, read_only=read_only, allow_erase=allow_erase)
        words = set(re.findall(r"\w+", server.instructions or ""))
        offered = set(server._tools)

        assert set() == words & (EVERY - offered), chosen
        if not {"schema", "cypher"}.isdisjoint(offered) or "memory" in chosen:
            assert offered <= words, chosen


def test_a_client_reads_them(store: GraphStore) -> None:
    with agent(mcp.server(store, tools=["events"], read_only=True)) as one:
        assert (
            "- What happened lately and what keeps coming back: events. A conversation"
            in one.client.instructions
        )
        assert "{" not in one.client.instructions and "|" not in one.client.instructions
        assert ["events", "timeline"] == sorted(one.tools())
        assert "record_event" not in one.client.instructions
