"""Tokens with scopes: what is outside a scope is in no answer, error or count of any call, and a store without it answers alike."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import graphstore
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.ledger import tokens as access_tokens
from graphstore.remote import calls as contract
from graphstore.remote.json_schemas import schema_of
from graphstore.server.http_app import path_of
from tests.conftest import Clock
from tests.support.served import TOKENS, serve_in_thread
from tests.support.wire import WRITE, Wire

pytestmark = pytest.mark.in_process("has servers of its own")

MARK = "zebra"
GIVEN = (
    {"team": "a", "id": "a1", "text": "budget of the kitchen"},
    {"team": "b", "id": f"{MARK}-1", "text": f"{MARK} budget"},
)
WORDS = (
    "a1",
    f"{MARK}-1",
    f"{MARK}",
    f"{MARK}-event",
    "a-event",
    "team/b",
    "team/a",
    "budget",
    "2026-02-01",
    f"{MARK}_kind",
    "incident",
)
_RANDOM = re.compile(rb"lnk_[0-9a-f]{16}|[0-9a-f]{32}|graphstore-copy-[^/\"]+|\"(?:at|generated_at|checked_at)\":\"[^\"]*\"|\"[a-z_]*(?:bytes|memory|seconds)[a-z_]*\":[0-9.]+")  # fmt: skip

_BY_ITSELF = {"content-length", "date", "etag"}
TIMES = (
    "2026-02-01T00:01:00Z",
    "2026-02-01T00:15:00Z",
)  # when the first of what is outside was written, and amid all
CYPHER = "MATCH (n:Node) RETURN n.id AS id ORDER BY id"


def _fill(store: graphstore.GraphStore, clock: Clock, *, others: bool) -> None:
    """What team a says; with `others` also what team b says between, all of it marked."""

    def theirs(work: Any) -> None:
        clock.move(minutes=1)
        if others:
            work()
        clock.move(minutes=1)

    theirs(lambda: store.add_node("fact", {"name": MARK}, id=f"{MARK}-1", key=f"{MARK}_key", scope="team/b", tags=[MARK], text=f"{MARK} budget"))  # fmt: skip
    store.add_node("fact", {"name": "kitchen"}, id="a1", key="budget", scope="team/a", tags=["money"], text="budget of the kitchen")  # fmt: skip
    theirs(lambda: store.link("a1", "related_to", f"{MARK}-1", reason=MARK))
    store.add_node("fact", {"name": "garden"}, id="a2", scope="team/a/garden", text="the garden")
    theirs(lambda: store.record_event("incident", f"{MARK} is down", id=f"{MARK}-event", metadata={"scope": "team/b"}))  # fmt: skip
    store.record_event("incident", "the oven is down", id="a-event", metadata={"scope": "team/a"})
    theirs(
        lambda: store.record_event("message", f"{MARK} says", id=f"{MARK}-message", sender=MARK, thread=MARK)
    )
    store.link("a2", "related_to", "a1", reason="near")
    theirs(lambda: store.define_point(f"{MARK}_point"))
    theirs(lambda: store.define_kind(f"{MARK}_kind"))
    theirs(lambda: store.snapshot(f"{MARK}-snapshot"))
    theirs(lambda: store.branch(f"{MARK}-branch"))
    theirs(lambda: store.on(f"{MARK}-branch").add_node("fact", {"n": MARK}, id=f"{MARK}-2", scope="team/a"))
    store.revise("a1", {"name": "kitchen", "size": 2})
    theirs(lambda: store.erase(f"{MARK}-message", reason=MARK))
    theirs(lambda: store.confirm(f"{MARK}-1", reason=MARK))
    store.retract("a2", reason="no garden")
    theirs(lambda: store.add_node("team", {}, id="team-b", scope="team"))
    theirs(lambda: store.add_node("fact", {"name": MARK}, id=f"{MARK}-3", key="budget", scope="team/ab"))


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Wire, Wire]]:
    """What a token of team a is answered: where there is more, and where there is not."""
    both_at, alone_at = tmp_path_factory.mktemp("both"), tmp_path_factory.mktemp("alone")
    with _served(both_at, others=True) as both, _served(alone_at, others=False) as alone:
        yield both, alone


class _served:
    def __init__(self, folder: Path, *, others: bool) -> None:
        clock = _clock()
        self.store = graphstore.open(folder / "memory.gs", clock=clock)
        _fill(self.store, clock, others=others)
        clock.move(hours=1)
        place = folder / "memory.gs"
        self.token = access_tokens.add(place, "a", scopes=("team/a",))
        self._server = serve_in_thread(
            self.store, tokens=access_tokens.StoreTokens(TOKENS.write, TOKENS.read, folder=place)
        )

    def __enter__(self) -> Wire:
        self.url = self._server.__enter__()
        return Wire(self.url, self.token)

    def __exit__(self, *_: object) -> None:
        self._server.__exit__(None, None, None)
        self.store.close()


def _clock() -> Clock:
    return Clock()


def _asked(name: str) -> list[dict[str, Any]]:
    call = contract.CALLS[name]
    every = [dict.fromkeys(call.required, word) for word in WORDS]
    return every + [
        {**args, each: [word]} for word in WORDS[:4] for args in every[:1] for each in call.required
    ]


@pytest.mark.parametrize("name", sorted(contract.CALLS))
def test_no_call_shows_what_is_outside_the_scope(name, teams):
    both, alone = teams
    for args in _asked(name):
        status, body, heads = _plain(both, name, args)
        without, other, theirs = _plain(alone, name, args)
        given = b"".join(sorted(word.encode() for word in map(str, args.values()) if MARK in word))
        assert status == without, (args, body, other)
        assert _RANDOM.sub(b"", body) == _RANDOM.sub(b"", other), args
        assert given or MARK.encode() not in body, (args, body)
        assert _heads(heads) == _heads(theirs), args


def _optional(name: str, *, every: bool = False) -> Iterator[dict[str, Any]]:
    """Each optional argument of a call in turn, beside required ones that fit; with `every` with each of its values."""
    call = contract.CALLS[name]
    fits = {each: _fitting(call, each, 0) for each in call.required}
    for number, each in enumerate(sorted(call.parameters.keys() - call.required)):
        values = _values(call, each)
        for at in range(len(values)) if every else (number,):
            yield {**fits, each: values[at % len(values)]}


def _schema(call: contract.Call, name: str) -> dict[str, Any]:
    return schema_of(call.arguments[name]) if name in call.arguments else {}


def _values(call: contract.Call, name: str) -> list[Any]:
    """What an argument may be: ids and words of inside and outside, instants, numbers."""
    schema = str(_schema(call, name))
    words = [f"{MARK}-1", MARK, TIMES[1], "team/b", "a1", "budget", f"{MARK}_kind", TIMES[0], "team"]
    found: list[Any] = []
    if "'string'" in schema or schema == "{}":
        found += words if "'array'" not in schema else [[word] for word in words]
    if "'integer'" in schema or "'number'" in schema:
        found += [1, 3, 0]
    if "'boolean'" in schema:
        found += [True, False]
    if "'object'" in schema:
        found += [{"scope": "team/b"}, {MARK: MARK}]
    return found + list(_schema(call, name).get("enum", ())) or [MARK]


def _fitting(call: contract.Call, name: str, number: int) -> Any:
    """What an argument is where it is not looked at: of inside."""
    given = {
        "kind": "fact",
        "content": {"n": 1},
        "type": "incident",
        "patch": {"n": 2},
        "target": "a2",
        "cypher": CYPHER,
    }
    schema = str(_schema(call, name))
    if name in given:
        return given[name]
    if any(word in name for word in ("since", "until", "before", "after", "tx")):
        return TIMES[number]
    if "'string'" in schema and "'array'" in schema:
        return ["a1"]
    return "a1" if "'string'" in schema or schema == "{}" else _values(call, name)[0]


READS = sorted(name for name, call in contract.CALLS.items() if call.scope == "read")


def _heads(headers: dict[str, str]) -> dict[str, str]:
    """The headers of an answer without what differs by itself: how long it is, when it was sent, and generated ids."""
    return {
        name: re.sub(r"\b([0-9a-f]{16}|evt_\w+)\b", "?", value)
        for name, value in headers.items()
        if name not in _BY_ITSELF
    }


def _alike(teams: Iterable[Wire], name: str, args: dict[str, Any], plain: Any) -> None:
    """Both answer alike: status, headers, and the body but for what is random."""
    (status, body, heads), (without, other, theirs) = [_plain(wire, name, args) for wire in teams]
    assert (status, plain(body)) == (without, plain(other)), args
    assert _heads(heads) == _heads(theirs), args
    assert MARK in str(args) or MARK.encode() not in body + str(heads).encode(), (args, body, heads)


@pytest.mark.parametrize("name", READS)
def test_no_optional_argument_shows_what_is_outside_the_scope(name, teams):
    for args in _optional(name):
        _alike(teams, name, args, lambda body: _RANDOM.sub(b"", body))


@pytest.mark.rest
@pytest.mark.parametrize("name", READS)
def test_no_value_of_an_optional_argument_shows_what_is_outside_the_scope(name, teams):
    for args in _optional(name, every=True):
        _alike(teams, name, args, lambda body: _RANDOM.sub(b"", body))


def _plain(wire: Wire, name: str, args: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
    status, body, headers = wire.ask("POST", path_of(contract.CALLS[name]), args)
    return status, body if isinstance(body, bytes) else orjson.dumps(body), headers


def test_everyday_reads_answer_what_is_inside(teams):
    both, _ = teams
    assert "a1" == both.get("/node?id=a1")["id"]
    assert ["a1"] == [node["id"] for node in both.get("/nodes")]
    assert ["a-event"] == [event["id"] for event in both.get("/events")]
    assert 2 == len(both.get("/history?id=a1")) or both.get("/versions?id=a1")
    counted = both.post("/query", {"cypher": "MATCH (n:Node) RETURN count(n) AS n"})
    assert b"1" in orjson.dumps(counted["rows"])
    assert 404 == both.ask("GET", f"/node?id={MARK}-1")[0]
    assert (403, 403, 403) == (
        both.ask("POST", "/query_tables", {"cypher": "RETURN 1 AS x"})[0],
        both.ask("GET", "/metrics")[0],
        both.ask("POST", "/add_node", {"kind": "fact", "content": {}, "scope": "team/a"})[0],
    )
    status, dump, _ = both.ask("GET", "/export")
    assert 200 == status
    assert MARK.encode() not in dump


def test_what_is_written_is_seen_at_once_and_what_is_erased_is_gone(tmp_path):
    served = _served(tmp_path, others=True)
    with served as wire:
        owner = Wire(served.url, WRITE)
        assert 404 == wire.ask("GET", "/node?id=a9")[0]
        owner.post("/add_node", {"kind": "fact", "content": {"secret": "oak"}, "id": "a9", "scope": "team/a"})
        assert "a9" == wire.get("/node?id=a9")["id"]
        owner.post("/erase", {"id": "a9", "reason": "asked for"})
        assert b"oak" not in wire.ask("GET", "/export")[1]
        assert b"oak" not in orjson.dumps(wire.ask("GET", "/versions?id=a9")[1])


def test_a_token_is_kept_as_a_hash_and_ends_when_it_is_revoked_or_old(tmp_path, monkeypatch):
    served = _served(tmp_path, others=True)
    place = tmp_path / "memory.gs"
    with served as wire:
        whole = Wire(served.url, access_tokens.add(place, "boss", rights="admin"))
        brief = access_tokens.add(place, "brief", days=1)
        kept = (place / access_tokens.NAMED).read_bytes()
        assert brief.encode() not in kept
        assert 0o600 == (place / access_tokens.NAMED).stat().st_mode & 0o777 or os.name != "posix"
        assert f"{MARK}-1" == whole.get(f"/node?id={MARK}-1")["id"]
        whole.post("/add_node", {"kind": "fact", "content": {}, "id": "new"})
        assert 200 == Wire(served.url, brief).ask("GET", "/nodes")[0]
        now = access_tokens.time.time()
        monkeypatch.setattr(access_tokens.time, "time", lambda: now + 90_000)
        assert 401 == Wire(served.url, brief).ask("GET", "/nodes")[0]
        access_tokens.revoke(place, "a")
        assert 401 == wire.ask("GET", "/nodes")[0]


def test_wrong_tokens_are_refused(tmp_path):
    access_tokens.add(tmp_path, "a", scopes=("team/a",))
    with pytest.raises(ConflictError, match="Revoke it first"):
        access_tokens.add(tmp_path, "a")
    for wrong in (
        {"scopes": ("",)},
        {"scopes": ("/a",)},
        {"rights": "all"},
        {"scopes": ("a",), "rights": "admin"},
        {"days": 0},
    ):
        with pytest.raises(InvalidError):
            access_tokens.add(tmp_path, "b", **wrong)
    with pytest.raises(NotFoundError, match="no token 'A'"):
        access_tokens.revoke(tmp_path, "A")


def _resting(store: graphstore.GraphStore, clock: Clock) -> None:
    """Of team a: a plan that rests on a fact of team b, and a step that rests on the plan."""
    store.add_node("fact", {"n": MARK}, id=f"{MARK}-1", scope="team/b", text=f"{MARK} is so")
    store.add_node("fact", {"n": 1}, id="plan", scope="team/a", text="the plan")
    store.add_node("fact", {"n": 2}, id="step", scope="team/a", text="the step")
    store.add_node("fact", {"n": 3}, id="other", scope="team/a", text="what stands alone")
    store.link("plan", "derived_from", f"{MARK}-1", reason=MARK)
    store.link("step", "derived_from", "plan", reason="by the plan")
    clock.move(minutes=1)


def test_a_foundation_outside_that_fell_is_something_outside_and_no_more(tmp_path):
    clock = _clock()
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        _resting(store, clock)
        place = tmp_path / "memory.gs"
        token = access_tokens.add(place, "a", scopes=("team/a",))
        tokens = access_tokens.StoreTokens(TOKENS.write, TOKENS.read, folder=place)
        with serve_in_thread(store, tokens=tokens) as url, graphstore.open(url, token=token) as seen:
            count = "MATCH (n:Node) RETURN n.id AS id, n.standing AS standing ORDER BY id"
            before = store.as_of().at
            held = seen.as_of(valid=before.valid, tx=before.tx)
            assert seen.shaky() == []
            assert {row["standing"] for row in seen.as_of().query(count)} == {"stands"}

            clock.move(minutes=1)
            store.retract(f"{MARK}-1", reason=MARK)
            clock.move(minutes=1)
            found = seen.shaky()
            assert [each.node.id for each in found] == ["plan", "step"]
            assert [[link.target for link in each.links] for each in found] == [[], ["plan"]]
            assert {each.root.id for each in found} == {"something outside your scope"}
            assert [str(each) for each in found] == [
                f"plan (the plan) is shaky: something outside your scope has fallen, recorded {_second(found[0])}. It rests on that by a link to it.",
                f"step (the step) is shaky: something outside your scope has fallen, recorded {_second(found[1])}. It rests on that by "
                f"{found[1].links[0]}; and then by a link to it.",
            ]
            assert MARK not in repr(found)
            assert [node.standing for node in seen.as_of().nodes()] == ["shaky", "shaky", "stands"]
            assert [row["standing"] for row in seen.as_of().query(count)] == ["stands", "shaky", "shaky"]
            assert [each.node.id for each in seen.as_of().shaky(limit=1)] == ["plan"]
            assert {each.node.id for each in store.shaky()} == {"plan", "step"}

            # the past does not change by itself, neither by its coordinate nor in a view that was handed out
            assert held.shaky() == []
            assert {row["standing"] for row in held.query(count)} == {"stands"}
            assert {node.standing for node in seen.as_of(valid=before.valid, tx=before.tx).nodes()} == {
                "stands"
            }

            store.confirm("plan", reason="looked at again")
            clock.move(minutes=1)
            assert seen.shaky() == store.shaky() == []
            store.retract("plan", reason="given up")
            clock.move(minutes=1)
            assert [(each.node.id, each.root.id) for each in seen.shaky()] == [("step", "plan")]


def _second(shaky: Any) -> str:
    return f"{shaky.recorded_at:%Y-%m-%d %H:%MZ}"
