"""What the tests of interchange export: a small history with every kind of text, number and time that a format could spoil."""

from __future__ import annotations

from datetime import datetime

import graphstore
from graphstore import GraphStore
from tests.conftest import Clock, day

HOSTILE = 'it\'s "said" `so`; a,b|c: {d} \\u0041\\ \\\\ _x0041_ _x005F_ ; ]]> & </data>\n\r\n\t\x00\x01\x08\x0c\x1b\x1f\x7f\x85\u2028\ufffe\uffff😀ÿ'
CONTENT = {
    "says": HOSTILE,
    "none": None,
    "empty": "",
    "blank": " \n\t ",
    "largest": 2**63 - 1,
    "least": -(2**63),
    "unsigned": 2**64 - 1,
    "tenth": 0.1,
    "huge": 1e300,
    "yes": True,
    "one": 1,
    "nested": {"list": [1, {"deep": None}, HOSTILE], "": {}},
    "tags": ["its own"],
    "type": "its own too",
    HOSTILE: "a hostile name",
}
BEFORE = day("2026-02-02")
"""A tx before the story's last day: half of it is told."""


def told(clock: Clock) -> GraphStore:
    """The story on a store in memory, told on days of February 2026."""
    store = graphstore.open(":memory:", clock=clock, author=HOSTILE)
    store.add_node(
        "fact", CONTENT, id="it's:a;b", text=HOSTILE, tags=["x;y", HOSTILE], valid_from="0001-01-01",
        valid_to="9999-12-31T23:59:59.999998Z", source=HOSTILE, reason=HOSTILE,
    )  # fmt: skip
    store.add_node("fact", {"one": 1.5, "yes": "of another type"}, id="plain", key="deploy day", scope="a;b")
    store.record_event(
        "error", "boom", id="boom", occurred_at="1960-02-03T04:05:06.789Z", metadata={"n": [1, None]}
    )
    store.record_event("error", "boom", occurred_at="1961-01-01")
    store.record_event(
        "TEXT", HOSTILE, id="mail", occurred_at="2026-01-01", sender="ana", authorized=False, agent="a b"
    )
    store.link("plain", "caused_by", "boom", reason=HOSTILE, strength=4, metadata={"m": HOSTILE})
    store.link("plain", "relates_to", "it's:a;b", id="lost", valid_from="2026-01-01", valid_to="2026-03-01")
    clock.set("2026-02-03")
    store.add_node("fact", {"says": "new"}, id="new", supersedes=["it's:a;b"], reason="it moved on")
    store.revise("plain", {"one": 2}, valid_from="2026-01-15", valid_to="2026-01-20", reason="better")
    store.link("new", "part_of", "plain")
    store.unlink("lost", valid_from="2026-02-01", reason="no longer")
    store.record_event("error", "boom", occurred_at="2026-02-03")
    store.add_node("fact", {"says": "wrong"}, id="wrong")
    store.retract("wrong", reason="it never was")
    store.add_node("secret", {"says": "secret"}, id="secret-thing")
    store.link("new", "derived_from", "secret-thing")
    clock.move(hours=1)
    store.erase("secret-thing", reason="must not be kept")
    store.retract("mail", reason="not sent")
    clock.move(days=1)
    return store


def known(tx: datetime, until: datetime | None) -> datetime | None:
    """The end of a belief as it was known at a tx."""
    return None if until is None or until > tx else until
