"""What verbs in a block return: it is made when somebody looks at it, and says what was so when its verb was done."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from graphstore import GraphStore
from graphstore.errors import ConflictError
from graphstore.values import models
from graphstore.values.findings import Recorded
from graphstore.values.models import Link, Node, Value
from tests.support.steps import steps

pytestmark = pytest.mark.in_process("looks at what the verbs of one block return, and counts their steps")


def told(store: GraphStore) -> list[Value]:
    """What verbs of one block return, each looked at after all of them."""
    with store.transaction():
        return [
            store.add_node("fact", {"n": 1}, id="one"),
            store.add_node("fact", {"n": 2}, id="two", derived_from="one"),
            *store.supersede("one", by="two", reason="newer"),
            store.revise("two", {"n": 3}),
            store.record_event("error", "boom", id="event", related_to="two"),
            store.link("two", "related_to", "event", reason="seen"),
            store.amend("two", {"m": 4}),
        ]


def test_an_answer_says_what_was_so_when_its_verb_was_done(store: GraphStore) -> None:
    first, second, link, revised, recorded, seen, amended = told(store)

    assert isinstance(first, Node) and (first.standing, first.valid_to) == ("stands", None)
    assert isinstance(second, Node) and (second.number, second.content) == (1, {"n": 2})
    assert isinstance(link, Link) and (link.source_standing, link.target_standing) == ("stands", "superseded")
    assert isinstance(revised, Node) and revised.content == {"n": 3}
    assert isinstance(recorded, Recorded) and [each.target for each in recorded.event.links or ()] == ["two"]
    assert isinstance(seen, Link) and seen.reason == "seen"
    assert isinstance(amended, Node) and amended.content == {"n": 3, "m": 4}


def test_a_control_c_at_any_call_of_the_first_block_is_a_control_c(store: GraphStore) -> None:
    """The class of what nobody looked at is made in the block: an interrupt there must not become an error of pydantic."""
    models._unmade.cache_clear()
    passed = []

    def building(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "pydantic" in frame.f_code.co_filename:
            passed.append(frame.f_code.co_name)

    sys.setprofile(building)
    try:
        with store.transaction():
            answer = store.add_node("fact", {"n": 1}, id="one")
    finally:
        sys.setprofile(None)
    assert "complete_model_class" not in passed
    assert isinstance(answer, Node) and answer == store.node("one")


def test_an_answer_outlives_a_block_that_fails(store: GraphStore) -> None:
    kept = []
    with pytest.raises(ZeroDivisionError), store.transaction():
        kept.append(store.add_node("fact", {"n": 1}, id="one"))
        with pytest.raises(ConflictError):
            store.add_node("fact", {"n": 1}, id="one")
        kept.append(store.add_node("fact", {"n": 2}, id="two"))
        raise ZeroDivisionError
    assert [("one", "stands"), ("two", "stands")] == [(node.id, node.standing) for node in kept]


@pytest.mark.parametrize(
    "use",
    [
        copy.copy,
        copy.deepcopy,
        lambda answer: pickle.loads(pickle.dumps(answer)),
        lambda answer: Recorded.model_validate(answer.model_dump()),
        lambda answer: Recorded.model_validate_json(answer.model_dump_json()),
        lambda answer: answer.model_copy(),
    ],
    ids=["copy", "deepcopy", "pickle", "model_dump", "model_dump_json", "model_copy"],
)
def test_an_answer_that_nobody_looked_at_is_used_like_any_other(
    store: GraphStore, use: Callable[[Any], Any]
) -> None:
    with store.transaction():
        answer = store.record_event("error", "boom", id="event")
        used = use(answer)
        seen = answer.event
    assert (Recorded, Recorded, answer) == (type(used), type(answer), used)
    assert store.event("event").description == seen.description


def test_an_answer_that_nobody_looks_at_is_not_made(store: GraphStore) -> None:
    def add(*names: str) -> list[Node]:
        with store.transaction():
            return [store.add_node("fact", {}, id=name) for name in names]

    def add_and_drop(*names: str) -> None:
        with store.transaction():
            for name in names:
                store.add_node("fact", {}, id=name)

    held = steps(lambda: add(*(f"held{n:03}" for n in range(100))))
    dropped = steps(lambda: add_and_drop(*(f"drop{n:03}" for n in range(100))))
    assert dropped < held * 0.9


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Node, lambda store: store.add_node("fact", {"n": 1}, id="one")),
        (Node, lambda store: store.revise("old", {"n": 2})),
        (Link, lambda store: store.supersede("old", by="new")[0]),
    ],
    ids=["add_node", "revise", "supersede"],
)
def test_of_an_answer_whose_id_alone_is_asked_nothing_else_is_made(
    store: GraphStore, kind: Any, said: Callable[[GraphStore], Any]
) -> None:
    for id in ("old", "new"):
        store.add_node("fact", {}, id=id)
    with store.transaction():
        answer = said(store)
        id = answer.id
        assert kind is not type(answer)
        assert answer.valid_from is not None
        assert kind is type(answer)
    assert id == answer.id == answer.__dict__["id"]
