"""The calls by name: each answers as the method does, and what it gives arrives as it was sent."""

from __future__ import annotations

import inspect
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from uuid import UUID

import networkx
import orjson
import pytest
from pydantic import ValidationError

import graphstore
from graphstore import Branch, GraphStore, InvalidError, Result, View, errors
from graphstore.remote import arguments, codec, received
from graphstore.remote import calls as contract
from graphstore.remote.calls import CALLS, EXCEPTIONS
from graphstore.store import registry
from tests.conftest import Clock
from tests.support.world import QUESTIONS, fill

pytestmark = pytest.mark.in_process("compares what a connection carries with what is here")


@pytest.fixture(scope="module")
def world():
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        fill(store, clock)
        yield store


def as_told(value):
    """A value so that two of a kind compare: tables and graphs have no equality of their own."""
    if isinstance(value, Result):
        return value.columns, repr(value.tuples()), value._types, value.warnings, value.to_arrow().to_pydict()
    if isinstance(value, networkx.MultiDiGraph):
        return list(value.nodes(data=True)), list(value.edges(keys=True, data=True))
    if hasattr(value, "kinds"):
        return value.kinds, value._inverse
    return value


# ---------------------------------------------------------------- every call


@pytest.mark.parametrize(
    "name, args", QUESTIONS, ids=[f"{name}-{n}" for n, (name, _) in enumerate(QUESTIONS)]
)
def test_what_is_answered_arrives_exactly(world, name, args):
    call = CALLS[name]
    given = contract.run(call, world, received.prepare(call, args))

    arrived = contract.decode(call, contract.encode(given, exact=True))

    assert as_told(given) == as_told(arrived)
    assert type(given) is type(arrived)
    assert repr(given) == repr(arrived) or " at 0x" in repr(given)
    assert contract.encode(given)  # and for anyone


@pytest.mark.parametrize("name", sorted(set(CALLS) - set(contract._OF_FORM) - {"cloud_events.cloud_events"}))
def test_the_types_of_every_call_are_resolved(name):
    call = CALLS[name]

    assert set(call.hints) == set(call.parameters)
    assert call.reading is None or callable(call.reading)


def test_a_model_among_the_arguments_is_read_or_refused_with_its_field(world):
    found = orjson.loads(codec.plain(world.contradictions(settled=True)[0]))
    assert (
        world.contradictions(settled=True)[0]
        == received.prepare(CALLS["resolve"], {"contradiction": found, "keep": "both", "reason": "why"})[
            "contradiction"
        ]
    )

    del found["source"]["kind"]
    with pytest.raises(
        InvalidError, match=r"contradiction of resolve cannot be read: source.*kind: Field required"
    ):
        received.prepare(CALLS["resolve"], {"contradiction": found, "keep": "both", "reason": "why"})


def test_every_public_name_is_a_call_or_an_exception():
    names = {
        name for cls in (GraphStore, View, Branch) for name in dir(cls)
        if not name.startswith("_")
    }  # fmt: skip

    assert [] == sorted(names - set(CALLS) - set(EXCEPTIONS))
    assert [] == sorted(set(EXCEPTIONS) & set(CALLS))


def test_every_public_function_of_a_room_that_takes_a_view_or_a_store_is_a_call():
    rooms = [import_module(module) for modules in contract._ROOMS.values() for module in modules]
    taking = {
        f"{room.__name__.rpartition('.')[2]}.{name}": getattr(room, name)
        for room in rooms
        for name in getattr(room, "__all__", [])
        if inspect.isfunction(getattr(room, name))
        and next(iter(inspect.signature(getattr(room, name)).parameters), "") in ("view", "store")
    }
    named = {registered.function for registered in registry.registered().values()}

    assert ["memory.lend"] == sorted(  # which gives the process that answers an embedder
        name for name, function in taking.items() if inspect.unwrap(function) not in named
    )


def test_every_call_says_what_it_does():
    assert [] == [name for name, call in CALLS.items() if not call.doc]


def test_every_read_is_asked_once():
    reads = {name for name, call in CALLS.items() if call.scope == "read" and not call.files}
    written = {
        "info": "of a branch", "knowledge_at": "as as_of", "otlp.traces_data": "in its own test", "cloud_events.cloud_events": "runs where it is asked",
        "sessions.find_by_entry": "wants a session", "sessions.lineage": "wants a session",
    }  # fmt: skip

    assert sorted(written) == sorted(reads - {name for name, _ in QUESTIONS})


def test_a_verb_answers_as_the_method_does(store):
    call = CALLS["add_node"]
    told = received.prepare(call, {"kind": "fact", "content": {"a": 1}, "id": "one"})
    node = contract.run(call, store, told)

    assert store.node("one") == contract.decode(call, contract.encode(node, exact=True))


def test_several_are_superseded_in_one_call(store):
    for name in ("a", "b", "c"):
        store.add_node("fact", {}, id=name, valid_from="2026-01-01")
    call = CALLS["supersede"]

    links = contract.run(call, store, received.prepare(call, {"old": "a", "more": ["b"], "by": "c"}))

    assert ["a", "b"] == [link.target for link in links]


def test_a_verb_of_a_branch_is_refused_as_the_branch_refuses_it(store):
    branch = store.branch("plan")
    with pytest.raises(InvalidError, match="call it on the store itself"):
        contract.run(CALLS["merge"], branch, received.prepare(CALLS["merge"], {"name": "plan"}))


# ---------------------------------------------------------------- arguments


def test_an_unknown_argument_is_named_with_those_allowed():
    with pytest.raises(InvalidError, match=r"unknown argument of node 'ident'\. Valid: id"):
        received.prepare(CALLS["node"], {"ident": "x"})


def test_a_missing_argument_is_named():
    with pytest.raises(InvalidError, match="node misses id"):
        received.prepare(CALLS["node"], {})


def test_an_unknown_field_of_an_event_is_the_stores_to_refuse(store):
    call = CALLS["record_event"]
    with pytest.raises(InvalidError, match="unknown field 'severity' of an event"):
        contract.run(
            call, store, received.prepare(call, {"type": "error", "description": "x", "severity": 3})
        )


@pytest.mark.parametrize(
    "name, pairs, expected",
    [
        ("causes", [("id", "boom"), ("depth", "3")], {"id": "boom", "depth": 3}),
        ("walk", [("ids", "a"), ("ids", "b"), ("hops", "1")], {"ids": ["a", "b"], "hops": 1}),
        ("contradictions", [("settled", "true")], {"settled": True}),
        ("links_from", [("id", "7"), ("kinds", "uses")], {"id": "7", "kinds": "uses"}),
        ("query", [("cypher", "RETURN $n"), ("n", "1")], {"cypher": "RETURN $n", "params": {"n": 1}}),
        ("topics.latest_on", [("topic", "auth"), ("limit", "5")], {"topic": "auth", "limit": 5}),
        ("events", [("since", "2026-01-01")], {"since": "2026-01-01"}),
    ],
)
def test_a_query_string_is_read_by_the_annotation(name, pairs, expected):
    assert expected == received.from_query(CALLS[name], pairs)


@pytest.mark.parametrize(
    "name, args, kwargs, expected",
    [
        ("node", ("x",), {}, {"id": "x"}),
        ("diff", ("x", 1), {"new": 2}, {"id": "x", "old": 1, "new": 2}),
        ("supersede", ("a", "b"), {"by": "c"}, {"old": "a", "more": ["b"], "by": "c"}),
        ("query", ("RETURN $n",), {"n": 1}, {"cypher": "RETURN $n", "params": {"n": 1}}),
        ("as_of", (), {"valid": datetime(2026, 1, 1, tzinfo=UTC)}, {"valid": "2026-01-01T00:00:00Z"}),
    ],
)
def test_what_was_given_to_a_method_is_bound_by_its_signature(name, args, kwargs, expected):
    assert expected == arguments.arguments(CALLS[name], args, kwargs)


@pytest.mark.parametrize(
    "name, args", [("node", ()), ("node", ("a", "b")), ("diff", ("a",)), ("retract", ("a",))]
)
def test_a_wrong_number_of_arguments_is_a_type_error(name, args):
    with pytest.raises(TypeError):
        arguments.arguments(CALLS[name], args, {})


def test_a_naive_datetime_is_refused_where_it_is_given():
    with pytest.raises(InvalidError, match=r"valid datetime\.datetime.* has no time zone"):
        arguments.arguments(CALLS["as_of"], (), {"valid": datetime(2026, 1, 1)})


def test_a_function_of_the_callers_cannot_be_sent():
    with pytest.raises(InvalidError, match="a function of yours"):
        arguments.arguments(CALLS["topics.latest_on"], ("auth",), {"strategy": lambda *_: None})


def test_a_node_stands_for_its_id(world):
    call = CALLS["fold"]
    told = arguments.body(
        call, arguments.arguments(call, ([world.node("jwt")],), {"into": world.node("tea")})
    )

    assert {"members": ["jwt"], "into": "tea"} == orjson.loads(told)


@pytest.mark.parametrize(
    "name, argument, value",
    [
        ("walk", "ids", [1] * 1_000),
        ("context.context", "conversation", [1] * 1_000),
        ("imports.import_jsonl", "path", {"name": "x", "files": dict.fromkeys(map(str, range(1_000)), 1)}),
    ],
)
def test_many_wrong_items_are_refused_at_the_first(name, argument, value):
    with pytest.raises(ValidationError) as raised:
        CALLS[name].arguments[argument].validate_python(value)

    assert raised.value.error_count() < 10  # an error for each would take gigabytes


# ---------------------------------------------------------------- anything


@pytest.mark.parametrize(
    "value",
    [
        {"at": datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC), "day": date(2026, 1, 1), "clock": time(1, 2)},
        [timedelta(days=1, microseconds=3), Decimal("1.10"), UUID(int=7), b"\x00\xff", (1, (2,)), 1 << 80],
        {"plain": [1, "x", None, True, 0.1]},
        {"tag": "mine", "value": [1]},
        {1: {(2,): "keys"}},
    ],
)
def test_anything_arrives_as_it_was(value):
    assert value == codec.untagged(orjson.loads(codec.tagged(value)))


def test_what_is_no_number_arrives():
    arrived = codec.untagged(orjson.loads(codec.tagged([float("nan"), float("-inf")])))

    assert arrived[0] != arrived[0]
    assert float("-inf") == arrived[1]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("name", [name for name in dir(errors) if name.endswith("Error")])
def test_an_error_arrives_as_it_was(name):
    cls = getattr(errors, name)
    status, told = contract.error_out(cls("no such thing."))

    assert (cls, "no such thing.") == (
        type(contract.error_in(status, told)),
        str(contract.error_in(status, told)),
    )


def test_what_nobody_foresaw_tells_nothing_of_itself():
    status, told = contract.error_out(RuntimeError("a secret"))

    assert 500 == status
    assert "secret" not in told["message"]
