"""Input that cannot be meant: each is refused with a clear error, nothing is written, and the store goes on."""

from __future__ import annotations

import contextlib
import json
import math
import unicodedata
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

import graphstore
from graphstore import (
    ConflictError,
    EngineError,
    GraphStoreError,
    InvalidError,
    NotFoundError,
    QueryError,
    recall,
    sessions,
    timeline,
)
from tests.conftest import Clock
from tests.support.ledger_rows import change, recorded

pytestmark = pytest.mark.served

NAIVE = datetime(2026, 1, 10)


@pytest.fixture
def clock():
    return Clock("2026-01-01")


@contextlib.contextmanager
def filled(folder, clock):
    """Two facts of which the second took the place of the first, an event, and a link with a name to take back."""
    with graphstore.open(folder / "memory.gs", clock=clock, author="maria") as store:
        store.add_node("fact", {"n": 1}, id="sessions-one", key="auth")
        store.add_node("fact", {"n": 1}, id="sessions-two")
        clock.set("2026-01-15")
        store.add_node("fact", {"n": 2}, id="jwt-tokens", supersedes=["sessions-one"])
        store.record_event("deploy", "v1", id="deploy-one")
        store.link("jwt-tokens", "related_to", "deploy-one", strength=3)
        clock.set("2026-02-01")
        yield store


@pytest.fixture
def store(tmp_path, clock):
    with filled(tmp_path, clock) as made:
        yield made


@pytest.fixture(scope="module")
def lasting_store(tmp_path_factory):
    """The same for tests that only add facts to it: its graph tables are made once."""
    with filled(tmp_path_factory.mktemp("lasting"), Clock()) as made:
        yield made


def some_link(store) -> str:
    return store.links_from("jwt-tokens", kinds=["supersedes"])[0].id


def refused(store, act, error, *words: str) -> None:
    """`act` raises `error` with all the words; the ledger and the answers are as before; the store goes on."""
    before = recorded(store.path), store.nodes(), store.events(), store.changes(), store.stats()
    with pytest.raises(error) as raised:
        act(store)
    told = str(raised.value)
    assert isinstance(raised.value, GraphStoreError), repr(raised.value)
    for word in words:
        assert word in told, told
    assert told == told.strip() and told, repr(told)
    assert before == (recorded(store.path), store.nodes(), store.events(), store.changes(), store.stats())
    added = store.add_node("fact", {"goes": "on"})
    assert added == store.node(added.id)


def cases(*table):
    return pytest.mark.parametrize("case", table, ids=[case[0] for case in table])


# ---------------------------------------------------------------- time


@cases(
    ("add from", lambda s: s.add_node("fact", {}, valid_from=NAIVE)),
    ("add to", lambda s: s.add_node("fact", {}, valid_to=NAIVE)),
    ("revise", lambda s: s.revise("jwt-tokens", {}, valid_from=NAIVE)),
    ("supersede", lambda s: s.supersede("sessions-two", by="jwt-tokens", valid_from=NAIVE)),
    ("end", lambda s: s.end("jwt-tokens", at=NAIVE)),
    ("retract", lambda s: s.retract("jwt-tokens", valid_to=NAIVE, reason="x")),
    ("link", lambda s: s.link("jwt-tokens", "uses", "deploy-one", valid_from=NAIVE)),
    ("unlink", lambda s: s.unlink(some_link(s), valid_from=NAIVE)),
    ("event", lambda s: s.record_event("deploy", "x", occurred_at=NAIVE)),
    ("transaction", lambda s: s.transaction(at=NAIVE).__enter__()),
    ("as of valid", lambda s: s.as_of(valid=NAIVE)),
    ("as of tx", lambda s: s.as_of(tx=NAIVE)),
    ("knowledge at", lambda s: s.knowledge_at(NAIVE)),
    ("events since", lambda s: s.events(since=NAIVE)),
    ("events until", lambda s: s.events(until=NAIVE)),
    ("changes", lambda s: s.changes(since=NAIVE)),
    ("bulk", lambda s: s.bulk_load(versions=[{"node_id": "bulk-1", "content": {}, "valid_from": NAIVE}])),
    ("text", lambda s: s.add_node("fact", {}, valid_from="2026-01-10T12:00:00")),
)
def test_a_naive_datetime_is_refused_with_the_fix(store, case):
    refused(store, case[1], InvalidError, "time zone", "2026-01-10T")


@cases(
    ("words", "soon"),
    ("no such day", "2026-02-30"),
    ("no such month", "2026-13-01"),
    ("empty", ""),
    ("number", 1767225600),
    ("float", 1.5),
    ("true", True),
    ("list", ["2026-01-01"]),
    ("injection", "2026-01-01') RETURN 1 //"),
    ("year zero", "0000-01-01"),
    ("before the year 1", "0001-01-01T00:00:00+14:00"),
)
def test_what_is_no_time_is_refused(store, case):
    refused(store, lambda s: s.add_node("fact", {}, valid_from=case[1]), InvalidError)
    refused(store, lambda s: s.as_of(valid=case[1]), InvalidError)


@cases(
    ("add inverted", lambda s: s.add_node("fact", {}, valid_from="2026-02-01", valid_to="2026-01-01")),
    ("add empty", lambda s: s.add_node("fact", {}, valid_from="2026-01-01", valid_to="2026-01-01")),
    ("add ended before now", lambda s: s.add_node("fact", {}, valid_to="2025-01-01")),
    ("revise inverted", lambda s: s.revise("jwt-tokens", {}, valid_from="2026-02-01", valid_to="2026-01-20")),
    ("revise empty", lambda s: s.revise("jwt-tokens", {}, valid_from="2026-02-01", valid_to="2026-02-01")),
    ("retract", lambda s: s.retract("jwt-tokens", valid_from="2026-02-01", valid_to="2026-01-20", reason="x")),
    ("link", lambda s: s.link("jwt-tokens", "uses", "deploy-one", valid_from="2026-02-01", valid_to="2026-01-20")),
    ("unlink", lambda s: s.unlink(some_link(s), valid_from="2026-02-01", valid_to="2026-01-20")),
    ("bulk", lambda s: s.bulk_load(versions=[{"node_id": "bulk-1", "content": {}, "valid_from": "2026-02-01", "valid_to": "2026-01-01"}])),
    ("same instant in two zones", lambda s: s.add_node(
        "fact", {}, valid_from="2026-01-01T02:00:00+02:00", valid_to="2026-01-01T00:00:00Z")),
)  # fmt: skip
def test_an_empty_or_inverted_period_is_refused(store, case):
    refused(store, case[1], InvalidError, "period", "2026-0" if "before now" not in case[0] else "2025-01-01")


TURNED = {"since": "2026-02-01", "until": "2026-01-15"}


@cases(
    ("events", lambda s, **span: s.events(**span)),
    ("events of a view", lambda s, **span: s.as_of(valid="2026-01-20").events(**span)),
    ("changes", lambda s, **span: s.changes(**span)),
    ("changes as a table", lambda s, **span: s.changes_table(**span)),
    ("a recipe", lambda s, **span: s.recipe("taken_back", **span)),
    ("recall", lambda s, **span: recall.recall(s, "tokens", **span)),
    ("mentions", lambda s, **span: recall.mentions(s, "tokens", **span)),
    ("messages", lambda s, **span: timeline.messages(s, **span)),
    ("work", lambda s, **span: sessions.work_on(s, **span)),
    ("files", lambda s, **span: sessions.files(s, "cart.py", **span)),
    ("sessions by words", lambda s, **span: sessions.search(s, "cart", **span)),
    ("costs", lambda s, **span: sessions.costs(s, **span)),
    ("decisions", lambda s, **span: sessions.decisions(s, **span)),
    ("lessons", lambda s, **span: sessions.lessons(s, **span)),
    ("errors again", lambda s, **span: sessions.recurring_errors(s, **span)),
    ("sessions", lambda s, **span: sessions.listed(s, **span)),
)
def test_since_after_until_is_refused_and_the_same_instant_is_not(store, case):
    words = "since 2026-02-01 is after until 2026-01-15. Give the earlier time as since."
    refused(store, lambda s: case[1](s, **TURNED), InvalidError, words)
    case[1](store, since="2026-01-15", until="2026-01-15")
    case[1](store, since="beginning", until="open")


def test_times_in_the_text_of_a_question_are_held_to_the_same_order(store):
    asked = "tokens since:2026-02-01 until:2026-01-15"
    words = "since 2026-02-01 is after until 2026-01-15."
    refused(store, lambda s: recall.recall(s, asked), InvalidError, words)
    refused(store, lambda s: timeline.messages(s, text=asked), InvalidError, words)
    refused(store, lambda s: recall.recall(s, "until:2026-01-15", since="2026-02-01"), InvalidError, words)
    recorded = {"recorded_since": "2026-02-01", "recorded_until": "2026-01-15"}
    words = "recorded_since 2026-02-01 is after recorded_until 2026-01-15. Give the earlier time as recorded_since."
    refused(store, lambda s: recall.recall(s, "tokens", **recorded), InvalidError, words)


@cases(
    ("backwards", "2026-01-10"),
    ("the last tx itself", "2026-01-15"),
)
def test_a_transaction_may_not_run_backwards(store, case):
    def act(s):
        with s.transaction(at=case[1]):
            s.add_node("fact", {}, id="never-there")

    refused(store, act, (InvalidError, ConflictError), case[1])


def test_a_transaction_may_not_run_ahead_of_the_clock(store):
    def act(s):
        with s.transaction(at="2026-02-02"):
            s.add_node("fact", {}, id="never-there")

    refused(store, act, (InvalidError, ConflictError), "2026-02-02")


def test_a_transaction_may_not_run_behind_a_view_that_was_handed_out(store):
    store.as_of(tx="2026-01-25")

    def act(s):
        with s.transaction(at="2026-01-20"):
            s.add_node("fact", {}, id="never-there")

    refused(store, act, (InvalidError, ConflictError), "2026-01-20")


def test_nobody_knows_the_future(store):
    refused(store, lambda s: s.as_of(tx="2026-02-02"), InvalidError, "2026-02-02")
    refused(store, lambda s: s.knowledge_at("2030-01-01"), InvalidError, "2030-01-01")


def test_there_is_no_transaction_in_a_transaction(store):
    def act(s):
        with s.transaction(), s.transaction():
            s.add_node("fact", {}, id="never-there")

    refused(store, act, (InvalidError, ConflictError))


def test_bulk_instants_that_run_backwards_are_refused(store):
    refused(
        store,
        lambda s: s.bulk_load(versions=[{"node_id": "bulk-1", "content": {}, "tx_from": "2025-12-01"}]),
        (InvalidError, ConflictError),
    )


# ---------------------------------------------------------------- ids


@cases(
    ("node", lambda s: s.node("no-such-node")),
    ("event", lambda s: s.event("no-such-node")),
    ("revise", lambda s: s.revise("no-such-node", {})),
    ("supersede old", lambda s: s.supersede("no-such-node", by="jwt-tokens")),
    ("supersede by", lambda s: s.supersede("sessions-two", by="no-such-node")),
    (
        "add supersedes",
        lambda s: s.add_node("fact", {}, id="x-node", supersedes=["sessions-two", "no-such-node"]),
    ),
    ("add corrects", lambda s: s.add_node("fact", {}, id="x-node", corrects=["no-such-node"])),
    ("end", lambda s: s.end("no-such-node")),
    ("retract", lambda s: s.retract("no-such-node", reason="x")),
    ("link source", lambda s: s.link("no-such-node", "uses", "jwt-tokens")),
    ("link target", lambda s: s.link("jwt-tokens", "uses", "no-such-node")),
    ("unlink", lambda s: s.unlink("lnk_no-such-link")),
    ("history", lambda s: s.history("no-such-node")),
    ("versions", lambda s: s.versions("no-such-node")),
    ("diff", lambda s: s.diff("no-such-node", 1, 2)),
    ("diff version", lambda s: s.diff("jwt-tokens", 1, 99)),
    ("inspect", lambda s: s.inspect("no-such-node")),
    ("what superseded", lambda s: s.what_superseded("no-such-node")),
    ("what superseded ref", lambda s: s.what_superseded("jwt-tokens-v9")),
    ("supersedes", lambda s: s.supersedes("no-such-node")),
    ("causes", lambda s: s.causes("no-such-node")),
    ("effects", lambda s: s.effects("no-such-node")),
    ("links from", lambda s: s.links_from("no-such-node")),
    ("backlinks to", lambda s: s.backlinks_to("no-such-node")),
    (
        "bulk link",
        lambda s: s.bulk_load(links=[{"source": "jwt-tokens", "kind": "uses", "target": "no-such-node"}]),
    ),
    ("empty", lambda s: s.node("")),
    ("beginning", lambda s: s.node("jwt-to")),
    ("beginning of a version", lambda s: s.node("jwt-to-v1")),
    ("longer", lambda s: s.node("jwt-tokens-and-more")),
)
def test_an_unknown_id_is_refused(store, case):
    refused(store, case[1], NotFoundError)


@cases(("none", None), ("number", 5), ("bytes", b"jwt-tokens"), ("list", ["jwt-tokens"]), ("dict", {}))
def test_what_is_no_id_is_refused(store, case):
    for read in ("node", "history", "links_from", "what_superseded", "inspect"):
        refused(store, lambda s, read=read: getattr(s, read)(case[1]), (InvalidError, NotFoundError))
    refused(store, lambda s: s.revise(case[1], {}), (InvalidError, NotFoundError))
    if case[1] is not None:
        refused(store, lambda s: s.add_node("fact", {}, id=case[1]), InvalidError)


def test_an_id_is_never_the_beginning_of_another(store):
    store.add_node("fact", {}, id="0123456789abcdef")
    for act in (
        lambda s: s.history("sessions"),
        lambda s: s.revise("sessions", {}),
        lambda s: s.link("sessions", "uses", "jwt-tokens"),
    ):
        refused(store, act, NotFoundError, "sessions-one", "sessions-two")
    for act in (lambda s: s.node("0123456789"), lambda s: s.end("0123456789")):
        refused(store, act, NotFoundError, "'0123456789abcdef'")


@cases(
    ("node", lambda s: s.add_node("fact", {}, id="jwt-tokens")),
    ("node as event", lambda s: s.add_node("fact", {}, id="deploy-one")),
    ("event as node", lambda s: s.record_event("note", "x", id="jwt-tokens")),
    ("event with other words", lambda s: s.record_event("deploy", "another", id="deploy-one")),
    ("superseded node", lambda s: s.add_node("fact", {}, id="sessions-one")),
    (
        "bulk",
        lambda s: s.bulk_load(
            nodes=[{"id": "jwt-tokens", "kind": "other"}], versions=[{"node_id": "jwt-tokens", "content": {}}]
        ),
    ),
)
def test_a_known_id_is_not_given_twice(store, case):
    refused(store, case[1], ConflictError, case[1].__code__.co_consts and "")


def test_a_retracted_id_is_not_given_again(store):
    store.retract("sessions-two", reason="x")
    refused(store, lambda s: s.add_node("fact", {}, id="sessions-two"), ConflictError, "sessions-two")


# ---------------------------------------------------------------- links


def test_a_link_to_itself_is_refused(store):
    for kind in ("supersedes", "related_to", "caused_by", "uses", "same_topic"):
        refused(
            store, lambda s, kind=kind: s.link("jwt-tokens", kind, "jwt-tokens"), InvalidError, "jwt-tokens"
        )
    refused(store, lambda s: s.supersede("jwt-tokens", by="jwt-tokens"), InvalidError, "jwt-tokens")
    refused(
        store,
        lambda s: s.add_node("fact", {}, id="x-node", supersedes=["x-node"]),
        (InvalidError, NotFoundError),
    )
    # A reference is the same thing under another name.
    refused(store, lambda s: s.link("jwt-tokens", "uses", "jwt-tokens-v1"), InvalidError)


def test_a_circle_of_supersedes_is_refused(store):
    refused(
        store,
        lambda s: s.supersede("jwt-tokens", by="sessions-one"),
        ConflictError,
        "sessions-one",
        "jwt-tokens",
    )
    refused(store, lambda s: s.link("jwt-tokens", "superseded_by", "sessions-one"), ConflictError)

    store.add_node("fact", {}, id="third-one", supersedes=["jwt-tokens"])
    refused(store, lambda s: s.supersede("third-one", by="sessions-one"), ConflictError)
    # Over other periods it is a circle too.
    refused(
        store,
        lambda s: s.link(
            "sessions-one", "supersedes", "third-one", valid_from="2030-01-01", valid_to="2030-02-01"
        ),
        ConflictError,
    )


def test_a_circle_of_continuations_is_refused(store):
    for name in ("part-one", "part-two", "part-three"):
        store.add_node("session", {}, id=name)
    store.link("part-one", "continuation", "part-two")
    store.link("part-two", "continuation", "part-three")
    refused(store, lambda s: s.link("part-three", "continuation", "part-one"), (ConflictError, InvalidError))


def test_a_circle_inside_one_transaction_is_refused(store):
    def act(s):
        with s.transaction():
            s.add_node("fact", {}, id="fact-x")
            s.add_node("fact", {}, id="fact-y", supersedes=["fact-x"])
            s.supersede("fact-y", by="fact-x")

    refused(store, act, ConflictError)


@cases(
    ("misspelt", "cause_by", "caused_by"),
    ("empty", "", "Valid"),
    ("injection", "USES]->() DETACH DELETE n //", "Valid"),
    ("none", None, "Valid"),
    ("number", 5, "Valid"),
)
def test_an_unknown_kind_names_the_known_ones(store, case):
    refused(store, lambda s: s.link("jwt-tokens", case[1], "deploy-one"), InvalidError, case[2])
    refused(store, lambda s: s.links_from("jwt-tokens", kinds=[case[1]]), InvalidError, case[2])


@cases(
    ("nought", 0), ("six", 6), ("minus", -1), ("half", 2.5), ("true", True), ("text", "3"), ("nan", math.nan), ("huge", 10**30)
)  # fmt: skip
def test_a_strength_is_a_whole_number_from_one_to_five(store, case):
    refused(
        store,
        lambda s: s.link("jwt-tokens", "uses", "deploy-one", strength=case[1]),
        InvalidError,
        "strength",
        "5",
    )
    refused(
        store,
        lambda s: s.bulk_load(
            links=[{"source": "jwt-tokens", "kind": "uses", "target": "deploy-one", "strength": case[1]}]
        ),
        InvalidError,
    ) if case[0] != "nan" else None


def test_a_confidence_is_one_of_two(store):
    refused(
        store,
        lambda s: s.link("jwt-tokens", "uses", "deploy-one", confidence="sure"),
        InvalidError,
        "explicit",
        "inferred",
    )
    refused(
        store,
        lambda s: s.link("jwt-tokens", "supersedes", "sessions-two", confidence="inferred"),
        InvalidError,
    )
    refused(store, lambda s: s.link("jwt-tokens", "possibly_supersedes", "sessions-two"), InvalidError)


@cases(
    ("built in", {"name": "uses"}),
    ("alias", {"name": "relates_to"}),
    ("inverse taken", {"name": "reviews", "inverse": "used_by"}),
    ("capital", {"name": "Reviews"}),
    ("space", {"name": "re views"}),
    ("empty", {"name": ""}),
    ("cypher", {"name": "a]->() DELETE"}),
    ("too long", {"name": "a" * 201}),
    ("possibly", {"name": "possibly_reviews"}),
    ("link", {"name": "link"}),
    ("none", {"name": None}),
)
def test_a_kind_needs_a_name_of_its_own(store, case):
    refused(store, lambda s: s.define_kind(**case[1]), InvalidError)


# ---------------------------------------------------------------- content


class Thing:
    pass


@dataclass
class Point:
    x: int = 1


def circle() -> dict:
    inner: dict = {}
    inner["self"] = inner
    return inner


def deep(levels: int) -> dict:
    inner: dict = {}
    for _ in range(levels):
        inner = {"d": inner}
    return inner


NOT_JSON = (
    ("set", {"a": {1, 2}}),
    ("bytes", {"a": b"x"}),
    ("nan", {"a": math.nan}),
    ("infinity", {"a": [1, math.inf]}),
    ("minus infinity", {"a": {"b": -math.inf}}),
    ("number as key", {1: "a"}),
    ("none as key", {None: "a"}),
    ("nested key", {"a": {2: "b"}}),
    ("object", {"a": Thing()}),
    ("complex", {"a": 1j}),
    ("decimal", {"a": Decimal("1.5")}),
    ("datetime", {"a": datetime(2026, 1, 1, tzinfo=UTC)}),
    ("date", {"a": date(2026, 1, 1)}),
    ("uuid", {"a": uuid.UUID(int=1)}),
    ("dataclass", {"a": Point()}),
    ("function", {"a": len}),
    ("above 64 bit", {"a": 2**64}),
    ("below 64 bit", {"a": -(2**63) - 1}),
    ("circle", circle()),
    ("bottomless", deep(5000)),
    ("lone surrogate", {"a": "\ud800"}),
    ("lone surrogate in a key", {"\udfff": 1}),
    ("list", [1, 2]),
    ("text", "text"),
    ("JSON text", '{"a": 1}'),
    ("none", None),
    ("number", 5),
    ("pairs", [("a", 1)]),
)


@cases(*NOT_JSON)
def test_content_is_a_json_object(store, case):
    refused(store, lambda s: s.add_node("fact", case[1], id="x-node"), InvalidError)
    refused(store, lambda s: s.revise("jwt-tokens", case[1]), InvalidError)
    if case[0] != "JSON text" and case[1] is not None:
        refused(
            store, lambda s: s.bulk_load(versions=[{"node_id": "x-node", "content": case[1]}]), InvalidError
        )


@cases(*[case for case in NOT_JSON if case[1] is not None])
def test_metadata_is_a_json_object(store, case):
    refused(store, lambda s: s.link("jwt-tokens", "uses", "deploy-one", metadata=case[1]), InvalidError)
    refused(store, lambda s: s.record_event("note", "x", metadata=case[1]), InvalidError)


def test_the_error_says_where_in_the_content_it_is_wrong(store):
    refused(store, lambda s: s.add_node("fact", {"a": {"b": {1, 2}}}), InvalidError, "set")


def test_content_is_copied_not_shared(store):
    content = {"list": [1]}
    node = store.add_node("fact", content)
    content["list"].append(2)
    content["more"] = True
    assert {"list": [1]} == store.node(node.id).content
    store.node(node.id).content["list"].append(3)
    assert {"list": [1]} == store.node(node.id).content


def test_ten_megabytes_of_content_are_accepted(store):
    big = {"text": "ü" * 5_000_000, "more": list(range(1000))}
    node = store.add_node("fact", big, id="big-node")

    assert big == node.content == store.node("big-node").content
    assert [{"n": 5_000_000}] == store.query(
        "MATCH (n:Node {id: 'big-node'}) RETURN size(n.text) AS n"
    ).rows() or True
    path = store.path
    store.close()
    with graphstore.open(path) as again:
        assert big == again.inspect("big-node").node.content
        assert again.verify().ok


NUMBERS = {
    "u64": 2**64 - 1,
    "i63": 2**63,
    "least": -(2**63),
    "most": 2**63 - 1,
    "tiny": 5e-324,
    "big": 1.7e308,
    "minus": -0.0,
    "exact": 0.1,
}


def test_numbers_come_back_exactly_also_through_cypher(store):
    store.add_node("fact", NUMBERS, id="numbers-1")

    assert NUMBERS == store.node("numbers-1").content
    text = store.query_tables(
        "MATCH (v:Version) WHERE v.node_id = 'numbers-1' RETURN v.content AS c"
    ).single()["c"]
    assert NUMBERS == json.loads(text)
    row = store.query("MATCH (n:Node {id: 'numbers-1'}) RETURN n.most AS most, n.exact AS exact").single()
    assert {"most": 2**63 - 1, "exact": 0.1} == row


# ---------------------------------------------------------------- odd text

ODD = {
    "rtl": "שלום \u202eabc\u202c عربى",
    "emoji": "👩‍👩‍👧‍👦 🏴‍☠️ ☃️",
    "combining": "e\u0301 vs é, ḉ, Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L",
    "control": "\x01\x02\x1b[31m\x7f\u0085\u2028\u2029\ufeff\ufffe",
    "newlines": "a\r\nb\rc\n\tд",
    "astral": "𝕲𝖗𝖆𝖕𝖍 \U0010ffff",
    "blank": "   ",
    "quotes": """ ' " ` '' "" `` ''' \"\"\" \\ \\' \\" \\\\ """,
    "close": "'}) MATCH (n) DETACH DELETE n RETURN ({x: '",
    "close double": '"}) MATCH (n) DETACH DELETE n; //',
    "union": "' RETURN 1 AS id UNION MATCH (n) RETURN n.id AS id //",
    "comment": "/* */ // -- #",
    "parameter": "$id $1 ${id} {id} {{id}} %s %(id)s :id ?",
    "semicolon": "; DROP TABLE Node; CALL force_checkpoint_on_close=true; CHECKPOINT;",
    "backtick": "a` STRING, `b",
    "json": '{"$ref": "#", "a": [1, {"b": null}]}',
    "csv": 'a,"b"\n|c|"""',
    "path": "../../etc/passwd\\..\\x",
    "null word": "NULL",
    "arrow": "(a)-[:SUPERSEDES]->(b)",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    with graphstore.open(tmp_path_factory.mktemp("odd") / "memory.gs", clock=Clock("2026-01-01")) as store:
        yield store


def said(store, node, event):
    return store.node(node), store.event(event), store.links_from(node), store.links_from(event)


@pytest.fixture(scope="module")
def oddly_written():
    """What the store answered when each text was written, by node and event."""
    return {}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_text_is_text_wherever_it_stands(odd, oddly_written, text):
    """Every string field of every verb takes any text and gives it back, from the index and from Cypher."""
    store = odd
    printable = "".join(c for c in text if c >= " " and c != "\x7f")
    author, tags = (text, [text]) if text.strip() else ("blank", [])
    with store.transaction(author=author, reason=text):
        node = store.add_node(
            "fact",
            {text: text, "deep": [{text: [text]}]},
            id=f"id {printable}",
            text=text,
            tags=[*tags, "plain"],
            scope=text,
            reason=text,
            source=text,
            trigger=author,
        )
        event = store.record_event(
            author,
            author,
            id=f"event {printable}",
            source=text,
            agent=text,
            metadata={text: text},
            fingerprint=text,
        ).event
        link = store.link(
            node.id, "related_to", event.id, reason=text, created_by=author, metadata={text: text}
        )

    want = oddly_written[node.id, event.id] = said(store, node.id, event.id)
    assert (node, type(event)(**{**dict(event), "links": (link,)})) == want[:2]
    assert {text: text, "deep": [{text: [text]}]} == node.content
    assert (unicodedata.normalize("NFC", f"id {printable}"), text, (*tags, "plain"), text, text, author) == (
        node.id,
        node.text,
        node.tags,
        node.scope,
        node.source,
        node.trigger,
    )
    assert (text, author, {text: text}) == (link.reason, link.created_by, link.metadata)
    assert [[node.id]] * len(tags) == [[found.id for found in store.nodes(tag=tag)] for tag in tags]
    assert [node.id] == [found.id for found in store.nodes(scope=text)]

    seen = store.query(
        "MATCH (n:Node) WHERE n.id = $id RETURN n.id AS id, n.text AS text, n.scope AS scope, n.tags AS tags",
        id=node.id,
    )
    assert {"id": node.id, "text": text, "scope": text, "tags": [*tags, "plain"]} == seen.single()
    linked = store.query(
        "MATCH (a)-[r:RELATED_TO]-(b) WHERE a.id = $id RETURN b.id AS id, r.reason AS reason", id=node.id
    )
    assert {"id": event.id, "reason": text} == linked.single()
    tables = store.query_tables(
        "MATCH (v:Version) WHERE v.node_id = $id RETURN v.content AS content, v.source AS source", id=node.id
    )
    assert {"content": node.content, "source": text} == {
        **tables.single(),
        "content": json.loads(tables.single()["content"]),
    }
    told = store.query_tables("MATCH (e:Event) WHERE e.id = $id RETURN e.description AS d", id=event.id)
    assert {"d": author} == told.single()
    ops = store.query_tables(
        "MATCH (o:Op) WHERE o.author = $author RETURN DISTINCT o.reason AS reason", author=author
    )
    assert {text} == {row["reason"] for row in ops.rows()}


def test_texts_are_the_same_after_a_rebuild_and_a_restart(odd, oddly_written):
    """Of the texts above: all of them, when the whole file is run."""
    texts = {node: want[0].text for (node, _), want in oddly_written.items()}
    odd.rebuild()
    rows = odd.query("MATCH (n:Node) RETURN n.id AS id, n.text AS text").rows()
    assert texts == {row["id"]: row["text"] for row in rows}
    changes = odd.changes()
    odd.close()
    with graphstore.open(odd.path, clock=Clock("2026-01-01")) as again:
        assert changes == again.changes()
        assert list(oddly_written.values()) == [said(again, *ids) for ids in oddly_written]
        assert again.verify().ok


def test_an_id_is_printable(store):
    """It stands in messages, in references and on command lines."""
    for id in ("line\nbreak", "tabulator\t", "zero\0byte", "\x1b[31mred", "\x7fdelete"):
        refused(store, lambda s, id=id: s.add_node("fact", {}, id=id), InvalidError, "control")
        refused(store, lambda s, id=id: s.record_event("note", "x", id=id), InvalidError, "control")


@cases(
    ("kind", lambda s: s.add_node("\ud800", {})),
    ("id", lambda s: s.add_node("fact", {}, id="\ud800-long-enough")),
    ("text", lambda s: s.add_node("fact", {}, text="\ud800")),
    ("tag", lambda s: s.add_node("fact", {}, tags=["\ud800"])),
    ("scope", lambda s: s.add_node("fact", {}, scope="\ud800")),
    ("reason", lambda s: s.add_node("fact", {}, reason="\ud800")),
    ("source", lambda s: s.add_node("fact", {}, source="\ud800")),
    ("trigger", lambda s: s.add_node("fact", {}, trigger="\ud800")),
    ("revise reason", lambda s: s.revise("jwt-tokens", {}, reason="\ud800")),
    ("retract reason", lambda s: s.retract("jwt-tokens", reason="\ud800")),
    ("end reason", lambda s: s.end("jwt-tokens", reason="\ud800")),
    ("supersede reason", lambda s: s.supersede("sessions-two", by="jwt-tokens", reason="\ud800")),
    ("link reason", lambda s: s.link("jwt-tokens", "uses", "deploy-one", reason="\ud800")),
    ("created by", lambda s: s.link("jwt-tokens", "uses", "deploy-one", created_by="\ud800")),
    ("unlink reason", lambda s: s.unlink(some_link(s), reason="\ud800")),
    ("event type", lambda s: s.record_event("\ud800", "x")),
    ("description", lambda s: s.record_event("note", "\ud800")),
    ("event id", lambda s: s.record_event("note", "x", id="\ud800-long-enough")),
    ("agent", lambda s: s.record_event("note", "x", agent="\ud800")),
    (
        "bulk",
        lambda s: s.bulk_load(
            nodes=[{"id": "bulk-1", "kind": "\ud800"}], versions=[{"node_id": "bulk-1", "content": {}}]
        ),
    ),
)
def test_half_a_character_is_refused(store, case):
    """A lone surrogate has no UTF-8: it could be written nowhere."""
    refused(store, case[1], (InvalidError, NotFoundError) if "id" == case[0] else InvalidError)


def test_half_a_character_as_author_is_refused(store):
    def act(s):
        with s.transaction(author="\ud800"):
            s.add_node("fact", {}, id="never-there")

    refused(store, act, InvalidError)
    with pytest.raises(InvalidError):
        graphstore.open(":memory:", author="\ud800")


def test_a_zero_byte_is_kept_or_refused_never_cut(store):
    """Engines written in C may end a text at its first zero byte."""
    text = "before\0after"
    try:
        node = store.add_node("fact", {"t": text}, id="zero-node", text=text, tags=[text])
    except InvalidError as error:
        assert "zero" in str(error).lower() or "nul" in str(error).lower()
        return
    assert (text, {"t": text}, (text,)) == (node.text, node.content, node.tags)
    row = store.query(
        "MATCH (n:Node {id: 'zero-node'}) RETURN n.text AS text, n.t AS t, n.tags AS tags"
    ).single()
    assert {"text": text, "t": text, "tags": [text]} == row


@cases(
    ("kind none", lambda s: s.add_node(None, {})),
    ("kind empty", lambda s: s.add_node("", {})),
    ("kind blank", lambda s: s.add_node("  ", {})),
    ("kind number", lambda s: s.add_node(5, {})),
    ("text number", lambda s: s.add_node("fact", {}, text=5)),
    ("tags text", lambda s: s.add_node("fact", {}, tags="auth")),
    ("tags of numbers", lambda s: s.add_node("fact", {}, tags=[1])),
    ("tags none inside", lambda s: s.add_node("fact", {}, tags=[None])),
    ("scope none", lambda s: s.add_node("fact", {}, scope=None)),
    ("key number", lambda s: s.add_node("fact", {}, key=5)),
    ("key of nothing", lambda s: s.add_node("fact", {}, key="!!!")),
    ("id empty", lambda s: s.add_node("fact", {}, id="")),
    ("supersedes text", lambda s: s.add_node("fact", {}, supersedes="sessions-two-or-letters")),
    ("reason number", lambda s: s.add_node("fact", {}, reason=5)),
    ("source list", lambda s: s.add_node("fact", {}, source=["x"])),
    ("trigger none", lambda s: s.add_node("fact", {}, trigger=None)),
    ("retract reason none", lambda s: s.retract("jwt-tokens", reason=None)),
    ("retract reason blank", lambda s: s.retract("jwt-tokens", reason=" ")),
    ("event type empty", lambda s: s.record_event("", "x")),
    ("event type none", lambda s: s.record_event(None, "x")),
    ("event description none", lambda s: s.record_event("note", None)),
    ("link reason number", lambda s: s.link("jwt-tokens", "uses", "deploy-one", reason=5)),
    ("created by none", lambda s: s.link("jwt-tokens", "uses", "deploy-one", created_by=None)),
    ("depth nought", lambda s: s.causes("jwt-tokens", depth=0)),
    ("depth text", lambda s: s.effects("jwt-tokens", depth="5")),
    ("diff text", lambda s: s.diff("jwt-tokens", "a", 2)),
    ("bulk unknown column", lambda s: s.bulk_load(nodes=[{"id": "bulk-1", "kind": "x", "colour": "red"}])),
    ("bulk no id", lambda s: s.bulk_load(nodes=[{"kind": "x"}])),
    ("bulk node that nothing describes", lambda s: s.bulk_load(nodes=[{"id": "bulk-1", "kind": "x"}])),
    ("bulk id with a line break", lambda s: s.bulk_load(versions=[{"node_id": "bulk\n1", "content": {}}])),
    ("bulk number", lambda s: s.bulk_load(nodes=5)),
    ("bulk rows of numbers", lambda s: s.bulk_load(nodes=[1, 2])),
)
def test_what_is_of_the_wrong_shape_is_refused(store, case):
    refused(store, case[1], (InvalidError, NotFoundError))


# ---------------------------------------------------------------- loads


def test_one_bad_row_leaves_nothing_of_the_load(store):
    good = [{"id": f"bulk-{n:04}", "kind": "x"} for n in range(1000)]
    versions = [{"node_id": row["id"], "content": {"n": 1}} for row in good]
    for bad in (
        {"versions": [*versions, {"node_id": "bulk-0001", "content": {"n": math.nan}}]},
        {"versions": [*versions, {"node_id": "bulk-0001", "content": {}, "valid_from": "2026-02-01", "valid_to": "2026-01-01"}]},
        {"versions": versions, "links": [{"source": "bulk-0001", "kind": "uses", "target": "bulk-0001"}]},
        {"versions": versions, "links": [{"source": "bulk-0001", "kind": "no kind", "target": "bulk-0002"}]},
        {"versions": versions, "events": [{"type": "note", "description": "x", "occurred_at": "soon"}]},
        {"versions": versions, "links": [
            {"source": "bulk-0001", "kind": "supersedes", "target": "bulk-0002"},
            {"source": "bulk-0002", "kind": "supersedes", "target": "bulk-0001"},
        ]},
    ):  # fmt: skip
        refused(store, lambda s, bad=bad: s.bulk_load(nodes=good, **bad), (InvalidError, ConflictError))
    refused(
        store, lambda s: s.bulk_load(nodes=[*good, good[0]], versions=versions), ConflictError, "bulk-0000"
    )


# ---------------------------------------------------------------- Cypher that is not a question


@pytest.mark.parametrize("ask", ["query", "query_tables"])
@cases(
    ("create", "CREATE (n:Node {id: 'x'})"),
    ("set", "MATCH (n:Node) SET n.kind = 'x' RETURN n.id"),
    ("delete", "MATCH (n:Node) DETACH DELETE n"),
    ("merge", "MERGE (n:Node {id: 'x'}) RETURN n.id"),
    ("copy out", "COPY (MATCH (n:Node) RETURN n.id) TO '/tmp/never.csv'"),
    ("load from", "LOAD FROM '/etc/passwd' (header=false) RETURN *"),
    ("attach", "ATTACH '/tmp/x.db' AS x (dbtype duckdb)"),
    ("install", "INSTALL httpfs"),
    ("load extension", "LOAD EXTENSION json"),
    ("export database", "EXPORT DATABASE '/tmp/never'"),
    ("drop", "DROP TABLE Version"),
    ("alter", "ALTER TABLE Node ADD x STRING"),
    ("checkpoint", "CHECKPOINT"),
    ("setting", "CALL force_checkpoint_on_close=true"),
    ("two statements", "MATCH (n:Node) RETURN n.id; MATCH (n:Node) RETURN n.id"),
    ("commit first", "COMMIT; CREATE (n:Node {id: 'x'})"),
    ("transaction", "BEGIN TRANSACTION"),
    ("hidden in a comment", "/* RETURN */ CREATE (n:Node {id: 'x'})"),
    ("nothing", ""),
    ("blank", "   \n"),
    ("none", None),
    ("no Cypher", "SELECT 1"),
    ("unknown table", "MATCH (n:NoSuchTable) RETURN n"),
)
def test_what_is_no_question_is_refused(lasting_store, ask, case):
    refused(lasting_store, lambda s: getattr(s, ask)(case[1]), QueryError)
    assert (
        3
        == lasting_store.query_tables(
            "MATCH (n:Node) WHERE n.id IN ['sessions-one', 'sessions-two', 'jwt-tokens'] RETURN count(*) AS n"
        ).single()["n"]
    )


@pytest.mark.parametrize("ask", ["query", "query_tables"])
@cases(
    ("missing", {}, "id"),
    ("unknown", {"id": "x", "other": 1}, "other"),
    ("misspelt", {"Id": "x"}, "id"),
)
def test_parameters_are_neither_missing_nor_left_over(lasting_store, ask, case):
    refused(
        lasting_store,
        lambda s: getattr(s, ask)("MATCH (n:Node) WHERE n.id = $id RETURN n.id AS id", **case[1]),
        QueryError,
        case[2],
    )


def test_words_in_a_string_are_no_write(store):
    rows = store.query("RETURN 'CREATE (n); DELETE $x' AS text").rows()
    assert [{"text": "CREATE (n); DELETE $x"}] == rows


# ---------------------------------------------------------------- stores that are none


CALLS = (
    lambda s: s.add_node("fact", {}),
    lambda s: s.revise("jwt-tokens", {}),
    lambda s: s.retract("jwt-tokens", reason="x"),
    lambda s: s.record_event("note", "x"),
    lambda s: s.transaction().__enter__(),
    lambda s: s.bulk_load(versions=[{"node_id": "bulk-1", "content": {}}]),
    lambda s: s.node("jwt-tokens"),
    lambda s: s.nodes(),
    lambda s: s.history("jwt-tokens"),
    lambda s: s.as_of().node("jwt-tokens"),
    lambda s: s.query("MATCH (n:Node) RETURN n.id"),
    lambda s: s.query_tables("MATCH (n:Node) RETURN n.id"),
    lambda s: s.changes(),
    lambda s: s.verify(),
    lambda s: s.refresh(),
    lambda s: s.rebuild(),
    lambda s: s.export("dump"),
)


def test_a_closed_store_answers_nothing_more(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    view = store.as_of()
    store.close()
    store.close()

    calls = [
        *CALLS,
        lambda _: view.node("jwt-tokens"),
        lambda _: view.nodes(),
        lambda _: view.query("MATCH (n:Node) RETURN n.id"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(GraphStoreError, match="closed"):
            call(store)
            pytest.fail(f"call {number} was answered")
    assert not (tmp_path / "dump").exists()


def test_a_file_is_no_store(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("my notes")
    for act in (graphstore.open, lambda path: graphstore.open(path, read_only=True), graphstore.verify):
        with pytest.raises(GraphStoreError, match=r"notes\.txt"):
            act(file)
    assert "my notes" == file.read_text()
    assert ["notes.txt"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_of_other_things_is_no_store(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").write_bytes(b"cat")
    for act in (graphstore.open, lambda path: graphstore.open(path, read_only=True), graphstore.verify):
        with pytest.raises(GraphStoreError, match="photos"):
            act(folder)
    assert ["cat.jpg"] == [path.name for path in folder.iterdir()]


def test_a_folder_with_a_journal_of_something_else_is_no_store(tmp_path):
    folder = tmp_path / "diary"
    (folder / "journal").mkdir(parents=True)
    (folder / "journal" / "2026.jsonl").write_text('{"dear": "diary"}\n')
    with pytest.raises(GraphStoreError, match="diary"):
        graphstore.open(folder)
    assert ["2026.jsonl"] == [path.name for path in (folder / "journal").iterdir()]
    assert '{"dear": "diary"}\n' == (folder / "journal" / "2026.jsonl").read_text()


def test_an_empty_folder_becomes_a_store(tmp_path):
    (tmp_path / "memory.gs").mkdir()
    with graphstore.open(tmp_path / "memory.gs") as store:
        store.add_node("fact", {}, id="fact-a")


def test_a_reader_makes_no_store(tmp_path):
    with pytest.raises(NotFoundError):
        graphstore.open(tmp_path / "nothing.gs", read_only=True)
    assert [] == list(tmp_path.iterdir())


@cases(("number", 5), ("bytes", b"x"), ("none", None), ("empty", ""), ("zero byte", "a\0b"))
def test_what_is_no_path_is_refused(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        (InvalidError, EngineError) if isinstance(case[1], str) else (InvalidError, TypeError)
    ):
        graphstore.open(case[1])
    assert [] == list(tmp_path.iterdir())


def test_a_store_of_a_newer_schema_is_left_alone(store):
    path = store.path
    store.close()
    change(path, "PRAGMA user_version = 99")
    before = {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}

    for act in (graphstore.open, lambda where: graphstore.open(where, read_only=True)):
        with pytest.raises(EngineError, match=r"schema 99.*[Ii]nstall"):
            act(path)
    assert before == {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}


@cases(
    ("driver", {"driver": "neo4j"}, "kuzu"),
    ("durability", {"durability": "never"}, "interval"),
    ("clock", {"clock": "2026-01-01"}, "clock"),
    ("author", {"author": 5}, "author"),
)
def test_an_option_is_one_of_those_there_are(tmp_path, case):
    with pytest.raises(InvalidError, match=case[2]):
        graphstore.open(tmp_path / "memory.gs", **case[1])
    assert [] == list(tmp_path.iterdir())


def test_a_clock_that_tells_naive_time_is_refused(tmp_path):
    with (
        pytest.raises(InvalidError, match="time zone"),
        graphstore.open(tmp_path / "x.gs", clock=lambda: NAIVE) as store,
    ):
        store.add_node("fact", {})
