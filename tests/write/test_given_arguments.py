"""The arguments that a caller gave are in the chain, as far as effects do not show them: ids and instants in the head, texts and contents in bodies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore import OPEN, GraphStore
from graphstore.errors import ConflictError
from graphstore.ledger.chain import dumps
from graphstore.store.store import Branch
from graphstore.write import describing, recording, verbs
from tests.conftest import Clock, day, home
from tests.support.chain import heads

pytestmark = pytest.mark.in_process("looks at the heads of the chain")

Args = dict[str, Any]
JAN, FEB, MAR = "2026-01-01T00:00:00Z", "2026-01-15T00:00:00Z", "2026-03-01T00:00:00Z"
EARLY, LATE, SPRING = JAN[:10], day(FEB[:10]), MAR  # as a date, a datetime and a text


def last(store: GraphStore) -> Args:
    """The arguments that the last transaction recorded, by operation."""
    found: Args = heads(store)[-1].get("args", {})
    return found


def held(store: GraphStore, op: int = -1) -> Any:
    """What the body of an operation has of its arguments."""
    rows = store._core.rows.database.rows(
        "SELECT b.data FROM operation o LEFT JOIN body b ON b.number = o.body ORDER BY o.number"
    )
    return orjson.loads(rows[op][0] or b"{}").get("args")


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[GraphStore]:
    """A store with two nodes, a value of a slot, an event and a link."""
    path = tmp_path / "memory.gs" if request.param == "folder" else home(request) or ":memory:"
    with graphstore.open(path, clock=clock) as opened:
        opened.add_node("fact", {"n": 1}, id="one", tags=["t"], source="crawler")
        opened.add_node("fact", {"n": 2}, id="two", valid_from=EARLY)
        opened.add_node("fact", {"colour": "red"}, key="colour", id="red", source="crawler", valid_from=EARLY)
        opened.record_event("error", "boom", id="boom")
        opened.link("one", "related_to", "two", id="lnk")
        clock.move(days=1)
        yield opened


Do = Callable[[GraphStore], object]
CASES: dict[str, tuple[Do, Args]] = {
    "add_node": (lambda s: s.add_node("fact", {"n": 3}, id="x", reason="r", text="t"), {}),
    "add_node, from": (lambda s: s.add_node("fact", {}, valid_from=EARLY), {"valid_from": JAN}),
    "add_node, until": (
        lambda s: s.add_node("fact", {}, valid_from=LATE, valid_to=SPRING),
        {"valid_from": FEB, "valid_to": MAR},
    ),
    "add_node, open": (lambda s: s.add_node("fact", {}, valid_to=OPEN), {"valid_to": None}),
    "add_node, links": (
        lambda s: s.add_node("fact", {}, supersedes="one", derived_from=iter(["two", "boom"])),
        {"supersedes": ["one"], "derived_from": ["two", "boom"]},
    ),
    "add_node, corrects": (
        lambda s: s.add_node("fact", {}, corrects=["one-v1"]),
        {"corrects": ["one"], "ops": 2},
    ),
    "add_node, slot": (lambda s: s.add_node("fact", {"colour": "blue"}, key="Colour"), {}),
    "add_node, slot and id": (
        lambda s: s.add_node("fact", {"colour": "blue"}, key="colour", id="blue", valid_to=OPEN),
        {"id": True, "valid_to": None},
    ),
    "add_node, said again": (
        lambda s: s.add_node("fact", {"colour": "red"}, key="colour"),
        {"verb": "add_node"},
    ),
    "add_node, said again by another": (
        lambda s: s.add_node("fact", {"colour": "RED"}, key="colour", source="ben", valid_from=LATE),
        {"verb": "add_node", "valid_from": FEB, "ops": 2},
    ),
    "revise": (lambda s: s.revise("one", {"n": 4}, reason="r", text="t"), {}),
    "revise, all": (
        lambda s: s.revise(
            "two", {"n": 4}, valid_from=LATE, valid_to=OPEN, tags=[], source="ben", minor=True, if_number=1
        ),
        {"valid_from": FEB, "valid_to": None, "tags": True, "source": True, "minor": True, "if_number": 1},
    ),
    "amend": (
        lambda s: s.amend("two", {"m": 1}, valid_from=EARLY, valid_to=SPRING, source="ben", if_number=1),
        {"valid_from": JAN, "valid_to": MAR, "source": True, "if_number": 1},
    ),
    "end": (lambda s: s.end("one"), {}),
    "end, at": (lambda s: s.end("two", at=LATE, if_number=1), {"at": FEB, "if_number": 1}),
    "retract": (lambda s: s.retract("one", reason="r"), {}),
    "retract, part": (
        lambda s: s.retract("two", valid_from=LATE, valid_to=OPEN, reason="r", if_number=1),
        {"valid_from": FEB, "valid_to": None, "if_number": 1},
    ),
    "confirm": (lambda s: s.confirm("one", reason="r"), {}),
    "confirm, source": (
        lambda s: s.confirm("one", reason="r", source="ben", if_number=1),
        {"source": True, "if_number": 1, "ops": 2},
    ),
    "confirm, its own source": (
        lambda s: s.confirm("one", reason="r", source="crawler"),
        {"source": True},
    ),
    "supersede": (lambda s: s.supersede("one", by="two"), {}),
    "supersede, many": (lambda s: s.supersede("one", "boom", by="two", valid_from=SPRING), {"valid_from": MAR, "ops": 2}),
    "supersede, if_number": (lambda s: s.supersede("one", by="two", if_number=1), {"if_number": 1}),
    "link": (lambda s: s.link("two", "related_to", "boom", reason="r", strength=2), {}),
    "link, period": (
        lambda s: s.link("two", "related_to", "boom", valid_from=LATE, valid_to=SPRING),
        {"valid_from": FEB, "valid_to": MAR},
    ),
    "link, supersedes": (
        lambda s: s.link("two", "supersedes", "one", valid_from=SPRING),
        {"valid_from": MAR},
    ),
    "unlink": (lambda s: s.unlink("lnk", valid_from=SPRING), {"valid_from": MAR}),
    "unlink, sentence": (
        lambda s: s.unlink(source="one", kind="relates", target="two-v1", valid_to=OPEN),
        {"source": "one", "kind": "related_to", "target": "two", "valid_to": None},
    ),
    "record_event": (lambda s: s.record_event("note", "seen", occurred_at=EARLY), {}),
    "record_event, all": (
        lambda s: s.record_event("fix", "mended", id="fix", related_to=["boom", "no such thing"]),
        {"id": True, "related_to": ["boom"]},
    ),
    "record_event, again": (lambda s: s.record_event("error", "boom", related_to="one"), {"related_to": ["one"]}),
    "undo": (lambda s: s.undo(s.last_write, reason="r"), {}),
    "evict": (lambda s: s.evict(ids=["boom"]), {}),
    "set_trust": (lambda s: s.set_trust({"ben": 2}), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_arguments_recorded_are_those_given(store, case):
    do, expected = CASES[case]
    before = len(heads(store))

    do(store)

    assert before + 1 == len(heads(store))
    assert ({"0": expected} if expected else {}) == last(store)


SHOWN = {
    "kind", "content", "text", "trigger", "key", "scope", "reason", "created_by", "strength", "confidence", "history", "metadata", "old", "more",
    "link_id", "into", "type", "description", "occurred_at", "origin", "agent", "fingerprint", "trace_id", "span_id", "parent_span_id",
    "ended_at", "sender", "sender_name", "thread", "classification", "authorized", "media_path", "media_hash", "unknown", "patch",
}  # fmt: skip
"""What effects show, or the body of an operation holds."""

ALSO_SHOWN = {
    "add_node": {"tags", "source", "warn"},  # warn: of the answer alone
    "revise": {"id"},
    "amend": {"id"},
    "end": {"id"},
    "retract": {"id"},
    "confirm": {"id"},
    "link": {"id", "source", "target", "also"},  # also: further links, each as an operation
    "unlink": {"target"},  # recorded with the source
    "record_event": {"source"},
}


RECORDED = {
    verb.name: verb.recorded
    for verb in (
        verbs.AddNode, describing.Revise, describing.Amend, verbs.EndNode, verbs.Retract, verbs.Fold, verbs.Confirm, verbs.Supersede,
        verbs.AddLink, verbs.Unlink, recording.RecordEvent,
    )
}  # fmt: skip


@pytest.mark.parametrize("verb", RECORDED)
def test_every_argument_of_a_verb_is_recorded_or_shown(verb):
    names = set(inspect.signature(getattr(GraphStore, verb)).parameters) - {"self"}

    assert names - SHOWN - ALSO_SHOWN.get(verb, set()) == set(RECORDED[verb])
    assert getattr(Branch, verb) is getattr(GraphStore, verb)


def test_what_supersedes_is_recorded_where_a_link_said_so_already(store):
    store.add_node("fact", {"n": 1}, id="plan", valid_from=LATE)
    store.add_node("fact", {"n": 2}, id="other", valid_from=LATE, supersedes=["plan"])
    store.revise("plan", {"n": 3}, valid_from=SPRING)
    store.supersede("plan", by="other")

    assert {"0": {"by": "other"}} == last(store)


def test_links_that_came_and_went_are_with_the_operation_that_said_them(store):
    with store.transaction():
        link = store.link("two", "supports", "one", strength=3, created_by="zoe", history=True)
        store.unlink(link.id)

    assert {"0": {"links": [[link.id, "two", "supports", "one", 3, 2, "zoe"]]}} == last(store)


def test_a_patch_is_in_the_body_of_its_operation(store):
    store.amend("one", {"m": {"deep": [1]}, "gone": None})

    assert {"patch": {"m": {"deep": [1]}, "gone": None}} == held(store)


def test_a_value_said_again_leaves_what_the_one_that_stands_does_not_have(store):
    store.add_node("fact", {"colour": "red"}, key="colour", source="crawler", reason="seen")
    assert held(store) is None

    store.add_node("fact", {"colour": "Red"}, key="colour", tags=["x"])
    assert {"content": {"colour": "Red"}, "tags": ["x"], "source": None} == held(store)

    store.confirm("red", reason="asked", source="ben")
    assert {"source": "ben"} == held(store, -2)
    assert ["asked"] == [
        each.reason for each in store.changes() if each.verb == "confirm" and each.reason == "asked"
    ]


def test_operations_of_a_block_have_their_own(store):
    with store.transaction():
        store.add_node("fact", {}, id="x", valid_from=EARLY)
        store.retract("two", reason="r")
        with pytest.raises(ConflictError):
            store.revise("one", {"n": 9}, valid_from=EARLY, if_number=7)
        with pytest.raises(ConflictError):  # after its operation
            store.add_node("fact", {}, key="colour", supersedes=["x"], valid_from=LATE, id="x")
        store.fold(["one", "boom"], into={"text": "both"})
        store.end("x", at=SPRING)

    ops = [op[:2] for op in heads(store)[-1]["ops"]]
    assert ["add_node", "retract", "add_node", "fold", "end"] == [verb for verb, _ in ops]
    assert {
        "0": {"valid_from": JAN},
        "3": {"members": ["one", "boom"]},
        "4": {"at": MAR},
    } == last(store)


def test_what_writes_nothing_records_nothing(store):
    before = len(heads(store))

    store.revise("one", {"n": 1}, valid_to=OPEN, minor=True)
    store.fold(["one"], into="two")
    store.fold(["one"], into="two")

    assert before + 1 == len(heads(store))


def test_large_transactions_number_operations_by_line(store):
    with store.transaction():
        for number in range(1_200):
            store.add_node("fact", {"n": number}, valid_from=EARLY if number in (3, 1_100) else None)

    found = [(len(head["ops"]), head.get("args")) for head in heads(store) if len(head.get("ops", ())) > 100]
    assert [(1_000, {"3": {"valid_from": JAN}}), (200, {"100": {"valid_from": JAN}})] == found


def test_a_bulk_load_records_the_bounds_that_rows_give(store):
    rows: list[dict[str, Any]] = [
        {"node_id": "x", "content": {"n": 1}, "valid_from": EARLY},
        {"node_id": "x", "content": {"n": 2}, "valid_from": FEB, "valid_to": SPRING},
        {"node_id": "y", "content": {"n": 1}, "valid_from": SPRING},
        {"node_id": "y", "content": {"n": 2}, "valid_from": FEB},  # nothing is left of the row before
        {"node_id": "z", "content": {"n": 1}},
    ]
    links = [
        {"source": "x", "kind": "related_to", "target": "y", "valid_from": FEB},
        {"source": "x", "kind": "related_to", "target": "z"},
        {"source": "x", "kind": "corrects", "target": "two", "valid_from": FEB, "valid_to": MAR},
    ]
    events = [
        {"type": "error", "description": "boom", "related_to": ["one"]},
        {"type": "note", "description": "n", "id": "n"},
    ]

    store.bulk_load(versions=rows, links=links, events=events)

    assert [
        "record_event", "record_event", "add_node", "revise", "add_node", "revise", "add_node", "link", "link", "link", "correct",
    ] == [op[0] for op in heads(store)[-1]["ops"]]  # fmt: skip
    assert {
        "*": {"verb": "bulk_load"},
        "0": {"related_to": ["one"]},
        "1": {"id": True},
        "3": {"valid_to": MAR},
        "4": {"valid_from": MAR},
        "7": {"valid_from": FEB},
        "9": {"valid_from": FEB, "valid_to": MAR, "ops": 2},
    } == last(store)


def test_a_row_that_is_taken_back_has_its_period(store):
    store.bulk_load(
        versions=[{"node_id": "x", "content": {}, "valid_from": EARLY, "tx_from": "2026-02-01T12:00:00Z", "tx_to": "2026-02-01T13:00:00Z"}]
    )  # fmt: skip

    assert {"*": {"verb": "bulk_load"}, "0": {"valid_from": JAN, "valid_to": None}} == last(store)


# ---------------------------------------------------------------- other lines of belief


def test_a_merge_carries_the_arguments(store, clock):
    branch = store.branch("idea")
    branch.add_node("fact", {}, id="x", valid_from=EARLY, corrects=["one"])
    branch.amend("two", {"m": 1}, valid_from=LATE)
    clock.move(days=1)
    store.add_node("fact", {}, id="y", valid_from=EARLY)

    store.merge("idea")

    assert ["merge", "add_node", "correct", "amend"] == [op[0] for op in heads(store)[-1]["ops"]]
    assert {
        "1": {"valid_from": JAN, "corrects": ["one"], "ops": 2},
        "3": {"valid_from": FEB},
    } == last(store)
    assert {"patch": {"m": 1}} == held(store)


def test_a_pull_carries_the_arguments(store, clock):
    branch = store.branch("idea")
    branch.add_node("fact", {}, id="x")
    clock.move(days=1)
    with store.transaction():
        store.revise("one", {"n": 5}, minor=True)
        store.end("two", at=LATE)

    branch.pull()

    assert ["pull", "revise", "end"] == [op[0] for op in heads(store)[-1]["ops"]]
    assert {"1": {"minor": True}, "2": {"at": FEB}} == last(store)


def test_a_merge_that_decides_keeps_the_arguments_of_what_it_repeats(store, clock):
    branch = store.branch("idea")
    branch.revise("two", {"n": 8}, valid_from=LATE, minor=True)
    clock.move(days=1)
    store.revise("two", {"n": 9}, valid_from=SPRING)

    store.merge("idea", decide="branch")

    revised = [str(at) for at, op in enumerate(heads(store)[-1]["ops"]) if op[0] == "revise"]
    assert revised
    assert {at: {"valid_from": FEB, "minor": True} for at in revised} == last(store)


# ---------------------------------------------------------------- forgetting, dumps


def having(folder: Path, text: str) -> list[str]:
    """The files of a closed store that have some bytes."""
    return [
        file.name
        for file in sorted(folder.rglob("*"))
        if file.is_file() and text.encode() in file.read_bytes()
    ]


@pytest.mark.parametrize("how", ["erase", "evict"])
def test_what_was_given_is_erased_with_the_thing(tmp_path, clock, how):
    path = tmp_path / "memory.gs"
    with graphstore.open(path, clock=clock) as store:
        store.add_node("fact", {"says": "open"}, id="value", key="door", valid_from=EARLY)
        store.add_node("fact", {"says": "SECRET NUMBER"}, id="number", key="safe")
        store.add_node("fact", {"says": "SECRET  number"}, key="safe", reason="SECRETreason")
        assert {"content": {"says": "SECRET  number"}} == held(store)
        store.add_node("fact", {"says": "Open"}, key="door", tags=["SECRETtag"], source="SECRETsource")
        store.amend("value", {"SECRETname": "SECRETtext"})
        assert {"patch": {"SECRETname": "SECRETtext"}} == held(store)
        store.branch("idea").amend("value", {"n": "SECRETbranch"})
    assert having(path, "SECRET")

    with graphstore.open(path, clock=clock) as store:
        for id in [thing.id for thing in (*store.nodes(), *store.events())]:
            if how == "erase":
                store.erase(id, reason="asked")
            else:
                store.evict(ids=[id])
        assert [] == store.nodes()
        assert store.verify().ok
    assert [] == having(path, "SECRET")


def test_an_eviction_without_a_trace_leaves_no_id_in_the_arguments(store):
    store.add_node("fact", {}, id="x", supersedes=["one"], derived_from=["two", "one"])
    with store.transaction():
        store.retract("one", valid_from=EARLY, reason="r")
        store.add_node("fact", {}, id="y", corrects=["one"], valid_from=LATE)
        store.end("two", at=SPRING)
    store.unlink(source="one", kind="related_to", target="two")
    with store.transaction():
        store.add_node("fact", {}, id="z", derived_from=["one", "red"])
        for link in store.links_from("z"):
            store.unlink(link.id)

    store.evict(ids=["one"], keep_audit=False)

    found = {
        op[1]: head["args"].get(str(at))
        for head in heads(store)
        if "args" in head
        for at, op in enumerate(head["ops"])
    }
    assert {"derived_from": ["two"]} == found["x"]
    assert {"valid_from": FEB} == found["y"]
    assert {"at": MAR} == found["two"]
    assert ["red"] == [link[3] for link in found["z"]["links"]]
    assert b'"one"' not in b"".join(map(dumps, heads(store)))
    assert all([] == head["requires"] for head in heads(store))
    assert store.verify().ok


def test_a_dump_has_them_and_is_itself_when_it_is_restored_and_exported(store, tmp_path):
    for do, _ in (
        CASES[case] for case in ("add_node, until", "amend", "unlink, sentence", "confirm, source")
    ):
        do(store)
    before = heads(store)
    store.export(tmp_path / "dump")

    with graphstore.restore(tmp_path / "dump", tmp_path / "new.gs") as other:
        assert other.verify().ok
        assert before == heads(other)
        other.export(tmp_path / "again")

    assert (tmp_path / "dump").read_bytes() == (tmp_path / "again").read_bytes()
