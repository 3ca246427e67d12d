"""Messages on the timeline: kept as events, found by who, where and when, a page at a time, at any coordinate."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphstore
from graphstore import ConflictError, Event, GraphStore, InvalidError, timeline
from graphstore.events.timeline import messages, record_message
from tests.conftest import START, Clock, after

pytestmark = pytest.mark.served


def says(page: timeline.Page) -> list[str]:
    return [event.description for event in page]


@pytest.fixture
def talk(store: GraphStore, clock: Clock) -> GraphStore:
    """Four messages, a second apart, and a deploy that is none."""
    told: list[dict[str, Any]] = [
        {"type": "TEXT", "text": "hello", "sender": "ana", "thread": "a"},
        {
            "type": "TEXT",
            "text": "good day",
            "sender": "bot",
            "thread": "a",
            "trace_id": "t1",
            "span_id": "s1",
        },
        {
            "type": "AUDIO",
            "media_path": "voice.ogg",
            "sender": "ana",
            "thread": "b",
            "classification": "private",
        },
        {"type": "SYSTEM", "text": "blocked", "sender": "guard", "thread": "b", "authorized": False},
    ]
    for number, fields in enumerate(told):
        record_message(store, occurred_at=after(number), id=f"m{number}", **fields)
    store.record_event("deploy", "v2", trace_id="t1")
    clock.move(hours=1)
    return store


# ---- what is kept -----------------------------------------------------------------------------


def test_a_message_is_an_event_with_its_fields(store: GraphStore) -> None:
    recorded = record_message(
        store,
        "IMAGE",
        "a plan",
        sender="u1",
        sender_name="Ana",
        thread="plans",
        trace_id="t",
        span_id="s",
        parent_span_id="p",
        classification="internal",
        media_path="plan.png",
        media_hash="AB" * 32,
        metadata={"width": 3},
    )
    event = store.event(recorded.event.id)

    assert recorded.is_new
    assert ("IMAGE", "a plan", "u1", "Ana", "plans") == (
        event.type, event.description, event.sender, event.sender_name, event.thread,
    )  # fmt: skip
    assert ("t", "s", "p", "internal", True) == (
        event.trace_id, event.span_id, event.parent_span_id, event.classification, event.authorized,
    )  # fmt: skip
    assert ("plan.png", "ab" * 32, {"width": 3}) == (event.media_path, event.media_hash, event.metadata)


def test_an_event_that_is_no_message_is_neither_authorized_nor_not(talk: GraphStore) -> None:
    assert [None] == [event.authorized for event in talk.events(type="deploy")]


def test_cypher_finds_messages_in_a_view_and_in_the_tables(talk: GraphStore) -> None:
    asked = "MATCH (e:Event) WHERE e.sender = $who AND e.authorized RETURN e.id ORDER BY e.id"

    assert [{"e.id": "m0"}, {"e.id": "m2"}] == talk.query(asked, who="ana").rows()
    assert [{"e.id": "m0"}, {"e.id": "m2"}] == talk.query_tables(asked, who="ana").rows()
    refused = "MATCH (e:Event) WHERE e.authorized = false RETURN e.id, e.thread"
    assert [{"e.id": "m3", "e.thread": "b"}] == talk.query(refused).rows()


def test_a_text_told_before_messages_had_fields_is_one(store: GraphStore) -> None:
    store.record_event("TEXT", "hi", id="old")

    assert ["hi"] == says(messages(store))
    assert store.event("old").authorized is True


def test_fields_of_a_message_make_any_event_one(store: GraphStore) -> None:
    store.record_event("note", "plain")
    store.record_event("note", "said", sender="ana")
    record_message(store, "VIDEO", "recorded")

    assert ["recorded", "said"] == sorted(says(messages(store)))


def test_bulk_load_takes_the_fields_of_a_message(store: GraphStore) -> None:
    rows = [{"type": "TEXT", "description": "x", "id": "b1", "sender": "ana", "authorized": False}]
    store.bulk_load(events=rows)

    assert ["x"] == says(messages(store, sender="ana", authorized=False))


@pytest.mark.parametrize("kind", ["TEXT", "error"])
def test_messages_that_say_the_same_are_two(store: GraphStore, kind: str) -> None:
    first, second = (record_message(store, kind, "the same again", sender="ana") for _ in range(2))

    assert (True, True) == (first.is_new, second.is_new)
    assert first.event.id != second.event.id


def test_a_report_is_no_occurrence_of_a_message(store: GraphStore) -> None:
    record_message(store, "error", "it broke", sender="ana")

    assert store.record_event("error", "it broke").is_new
    assert not store.record_event("error", "it broke").is_new
    assert store.record_event("error", "it broke", sender="bot").is_new


def test_the_same_id_with_the_same_content_is_the_same_message(store: GraphStore) -> None:
    record_message(store, "TEXT", "once", id="m", sender="ana")

    assert not record_message(store, "TEXT", "once", id="m", sender="ana").is_new
    with pytest.raises(ConflictError, match="other content"):
        record_message(store, "TEXT", "once", id="m", sender="bot")
    with pytest.raises(ConflictError, match="other content"):
        record_message(store, "TEXT", "once", id="m", sender="ana", authorized=False)


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"text": ""}, "says nothing"),
        ({"text": " "}, "says nothing"),
        ({"text": "x", "authorized": "yes"}, "neither true nor false"),
        ({"text": "x", "sender": 3}, "no text"),
    ],
)
def test_what_is_no_message_is_refused(store: GraphStore, fields: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidError, match=hint):
        record_message(store, "TEXT", **fields)
    assert [] == store.events()


# ---- media ------------------------------------------------------------------------------------


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    path = tmp_path / "voice.ogg"
    path.write_bytes(b"OggS and so on")
    return path


def test_the_hash_of_a_medium_that_is_there_is_computed(store: GraphStore, voice: Path) -> None:
    event = record_message(store, "AUDIO", media_path=voice).event

    assert (str(voice), hashlib.sha256(voice.read_bytes()).hexdigest()) == (
        event.media_path,
        event.media_hash,
    )
    assert event.description == ""


def test_a_hash_that_is_not_the_mediums_is_refused(store: GraphStore, voice: Path) -> None:
    with pytest.raises(InvalidError, match="its SHA-256 is"):
        record_message(store, "AUDIO", media_path=voice, media_hash="00" * 32)
    right = hashlib.sha256(voice.read_bytes()).hexdigest().upper()
    assert (
        right.lower() == record_message(store, "AUDIO", media_path=voice, media_hash=right).event.media_hash
    )


def test_a_message_stays_the_same_when_its_medium_is_gone(store: GraphStore, voice: Path) -> None:
    record_message(store, "AUDIO", media_path=voice, id="m")
    voice.unlink()

    assert not record_message(store, "AUDIO", media_path=voice, id="m").is_new


def test_another_medium_under_the_same_name_is_another_message(store: GraphStore, voice: Path) -> None:
    record_message(store, "AUDIO", media_path=voice, id="m")
    voice.write_bytes(b"something else")

    with pytest.raises(ConflictError, match="other content"):
        record_message(store, "AUDIO", media_path=voice, id="m")


# ---- questions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, "m3 m2 m1 m0"),
        ({"sender": "ana"}, "m2 m0"),
        ({"thread": "b"}, "m3 m2"),
        ({"thread": "b", "sender": "ana"}, "m2"),
        ({"trace": "t1"}, "m1"),
        ({"type": "TEXT"}, "m1 m0"),
        ({"classification": "private"}, "m2"),
        ({"authorized": True}, "m2 m1 m0"),
        ({"authorized": False}, "m3"),
        ({"since": after(1), "until": after(3)}, "m2 m1"),
        ({"since": after(1), "sender": "ana"}, "m2"),
        ({"sender": "nobody"}, ""),
        ({"limit": 2}, "m3 m2"),
    ],
)
def test_filters_are_anded_and_the_newest_comes_first(
    talk: GraphStore, filters: dict[str, Any], ids: str
) -> None:
    assert ids.split() == [event.id for event in messages(talk, **filters)]


@pytest.mark.parametrize(
    ("filters", "hint"),
    [
        ({"sender": 3}, "no text"),
        ({"authorized": 1}, "neither true nor false"),
        ({"limit": 0}, "limit"),
        ({"since": "soon"}, "since"),
        ({"cursor": "soon"}, "no cursor"),
    ],
)
def test_what_is_no_filter_is_refused(talk: GraphStore, filters: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidError, match=hint):
        messages(talk, **filters)


def test_a_page_is_that_of_its_coordinate(talk: GraphStore, clock: Clock) -> None:
    before = talk.as_of()
    clock.move(minutes=1)
    record_message(talk, "TEXT", "late", occurred_at=after(2.5), id="late")
    talk.retract("m3", reason="slip")

    assert ["late", "m2", "m1", "m0"] == [event.id for event in messages(talk)]
    assert ["m3", "m2", "m1", "m0"] == [event.id for event in messages(before)]
    assert ["m1", "m0"] == [event.id for event in messages(talk.as_of(valid=after(1)))]


def test_a_transaction_sees_its_own_messages_and_what_is_taken_back_leaves_nothing(talk: GraphStore) -> None:
    with pytest.raises(RuntimeError), talk.transaction():
        record_message(talk, "TEXT", "never", sender="ana", occurred_at=after(1.5))
        assert ["", "never", "hello"] == says(messages(talk, sender="ana"))
        raise RuntimeError
    assert ["", "hello"] == says(messages(talk, sender="ana"))


def test_pages_go_on_where_the_last_one_ended_whatever_arrives(talk: GraphStore, clock: Clock) -> None:
    first = messages(talk, limit=2)
    clock.move(seconds=1)
    record_message(talk, "TEXT", "newer")
    record_message(talk, "TEXT", "told late", occurred_at=after(0.5))
    second = messages(talk, limit=2, cursor=first.cursor)

    assert ["m3", "m2"] == [event.id for event in first]
    assert ["m1", "m0"] == [event.id for event in second]
    assert second.cursor is None


def test_messages_of_one_instant_are_each_on_one_page(store: GraphStore) -> None:
    for number in range(7):
        record_message(store, "TEXT", "x", id=f"m{number}", occurred_at=START)
    seen: list[str] = []
    page = messages(store, limit=3)
    while page.cursor is not None:
        seen += [event.id for event in page]
        page = messages(store, limit=3, cursor=page.cursor)
    seen += [event.id for event in page]

    assert [f"m{number}" for number in reversed(range(7))] == seen


def test_a_cursor_is_for_its_own_question_and_view(talk: GraphStore) -> None:
    view = talk.as_of()
    cursor = messages(view, limit=1).cursor

    assert ["m2"] == [event.id for event in messages(view, limit=1, cursor=cursor)]
    with pytest.raises(InvalidError, match="other filters"):
        messages(view, sender="ana", cursor=cursor)
    with pytest.raises(InvalidError, match="elsewhere"):
        messages(talk.as_of(valid=after(1)), cursor=cursor)


def test_what_is_evicted_or_erased_is_on_no_page(talk: GraphStore) -> None:
    assert 4 == len(messages(talk))
    talk.evict(ids=["m1"])
    talk.erase("m2", reason="private")
    record_message(talk, "TEXT", "after", id="m4")

    assert ["m4", "m3", "m0"] == [event.id for event in messages(talk)]
    assert [] == [event.id for event in messages(talk, trace="t1")]
    assert ["m0"] == [event.id for event in messages(talk, sender="ana")]


def test_what_was_evicted_without_a_trace_is_on_no_page(talk: GraphStore) -> None:
    assert 4 == len(messages(talk))
    talk.evict(ids=["m1", "m2"], keep_audit=False)

    assert ["m3", "m0"] == [event.id for event in messages(talk)]


def test_a_reader_follows(disk_store: GraphStore, clock: Clock) -> None:
    record_message(disk_store, "TEXT", "one", sender="ana")
    with graphstore.open(disk_store.path, read_only=True, clock=clock) as reader:
        assert ["one"] == says(messages(reader, sender="ana"))
        clock.move(seconds=1)
        record_message(disk_store, "TEXT", "two", sender="ana")
        reader.refresh()
        assert ["two", "one"] == says(messages(reader, sender="ana"))
        disk_store.evict(ids=[messages(disk_store).events[1].id])
        reader.refresh()
        assert ["two"] == says(messages(reader, sender="ana"))


def test_messages_are_there_after_opening_anew(disk_store: GraphStore, clock: Clock) -> None:
    record_message(disk_store, "TEXT", "one", sender="ana", authorized=False)
    path = disk_store.path
    disk_store.close()
    with graphstore.open(path, clock=clock) as again:
        assert ["one"] == says(messages(again, sender="ana", authorized=False))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"sender": "even", "thread": "odd"}, []),
        ({"sender": "even", "thread": "rare"}, [0, 7_000]),
        ({"sender": "odd", "type": "TEXT"}, range(1, 10_000, 2)),
        ({"sender": "odd", "type": "TEXT", "until": after(9_000)}, range(1, 9_000, 2)),
        ({"sender": "odd", "authorized": False}, [1]),
    ],
)
def test_what_is_rare_is_found_among_many(
    store: GraphStore, clock: Clock, filters: dict[str, Any], expected: list[int]
) -> None:
    clock.move(days=1)
    rows = [
        {"type": "TEXT", "description": "x", "id": f"m{number:05}", "occurred_at": after(number), "authorized": number != 1,
         "sender": ("even", "odd")[number % 2], "thread": "rare" if number % 7_000 == 0 else ("even", "odd")[number % 2]}
        for number in range(10_000)
    ]  # fmt: skip
    store.bulk_load(events=rows)
    first = messages(store, limit=30, **filters)
    rest = messages(store, limit=None, cursor=first.cursor, **filters) if first.cursor else ()

    assert [f"m{number:05}" for number in reversed(expected)] == [event.id for event in (*first, *rest)]


# ---- against a plain scan ---------------------------------------------------------------------

_SOME = st.sampled_from(["a", "b"]) | st.none()
_FIELDS = st.fixed_dictionaries(
    {"sender": _SOME, "thread": _SOME, "trace_id": _SOME, "type": st.sampled_from(["TEXT", "SYSTEM", "note"]),
     "authorized": st.booleans(), "at": st.integers(0, 5)}
)  # fmt: skip
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), _FIELDS),
        st.tuples(st.sampled_from(["retract", "evict", "erase", "look"]), st.integers(0, 30)),
    ),
    max_size=30,
)


def scanned(view: Any, filters: dict[str, Any]) -> list[Event]:
    """The messages of a view by looking at every event."""
    names = {"trace": "trace_id"}
    found = [
        event
        for event in view.events(since=filters.get("since"), until=filters.get("until"))
        if event.authorized is not None
        and all(
            value == getattr(event, names.get(name, name))
            for name, value in filters.items()
            if name not in ("since", "until")
        )
    ]
    return sorted(found, key=lambda event: (event.occurred_at, event.id), reverse=True)


@given(
    steps=_STEPS,
    filters=st.fixed_dictionaries(
        {},
        optional={
            "sender": st.sampled_from("ab"),
            "thread": st.sampled_from("ab"),
            "trace": st.sampled_from("ab"),
            "type": st.sampled_from(["TEXT", "note"]),
            "authorized": st.booleans(),
            "since": st.sampled_from([after(1), after(3)]),
            "until": st.sampled_from([after(3), after(5)]),
        },
    ),
)
@settings(deadline=None)
def test_pages_are_what_a_scan_of_every_event_finds(steps: list[Any], filters: dict[str, Any]) -> None:
    clock = Clock()
    with graphstore.open(":memory:", clock=clock) as store:
        views, ids = [], []
        for what, detail in steps:
            clock.move(seconds=1)
            if what == "say":
                fields = {**detail}
                at = fields.pop("at")
                ids.append(
                    record_message(
                        store, text="x", occurred_at=START + timedelta(seconds=at), **fields
                    ).event.id
                )
            elif what == "look":
                views.append(store.as_of())
                messages(views[-1], **filters)  # noted up to here, the rest later
            elif ids and store.inspect(ids[detail % len(ids)]).node.standing == "stands":
                id = ids[detail % len(ids)]
                {"retract": lambda id: store.retract(id, reason="r"), "evict": lambda id: store.evict(ids=[id]),
                 "erase": lambda id: store.erase(id, reason="r")}[what](id)  # fmt: skip
        for view in [*views, store.as_of(), store.as_of(valid=after(2))]:
            page, seen = messages(view, limit=2, **filters), []
            seen += page.events
            while page.cursor is not None:
                page = messages(view, limit=2, cursor=page.cursor, **filters)
                seen += page.events
            assert scanned(view, filters) == seen


# ---- by what they say -------------------------------------------------------------------------


@pytest.fixture
def chat(store: GraphStore, clock: Clock) -> GraphStore:
    told = [
        "We deploy the login page on Friday",
        "Logins fail since the deployment",
        "The rate limiter is fine",
        "login page deployed again, error ERR-404 is gone",
    ]
    for number, text in enumerate(told):
        sender = "ana" if number % 2 else "bob"
        record_message(store, "TEXT", text, sender=sender, occurred_at=after(number), id=f"m{number}")
    store.add_node("fact", {"says": "the login page is no message"}, id="fact")
    clock.move(hours=1)
    return store


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("login", ["m3", "m1", "m0"]),
        ("deploying logins", ["m3", "m1", "m0"]),
        ("login page", ["m3", "m0"]),
        ('"login page"', ["m3", "m0"]),
        ('"page login"', []),
        ("login -page", ["m1"]),
        ("-login", ["m2"]),
        ("err-404", ["m3"]),
        ("login nonsense", []),
        ("the login page", ["m3", "m0"]),
        (f"login since:{after(1).isoformat()}", ["m3", "m1"]),
    ],
)
def test_messages_that_say_all_words_of_a_text_are_found(
    chat: GraphStore, text: str, found: list[str]
) -> None:
    assert found == [event.id for event in messages(chat, text=text)]
    by_ana = [event.id for event in messages(chat, sender="ana", text=text)]
    assert [id for id in found if id in ("m1", "m3")] == by_ana


def test_what_says_a_text_is_read_page_by_page_at_any_coordinate(chat: GraphStore) -> None:
    first = messages(chat, text="login", limit=2)
    assert ["m3", "m1"] == [event.id for event in first]
    with pytest.raises(InvalidError, match="other filters"):
        messages(chat, text="page", limit=2, cursor=first.cursor)
    chat.retract("m0", reason="never said")
    assert ["m0"] == [event.id for event in messages(chat, text="login", limit=2, cursor=first.cursor)]
    assert ["m3", "m1"] == [event.id for event in messages(chat, text="login")]
    then = chat.as_of(valid=after(1))
    assert ["m1"] == [event.id for event in messages(then, text="login")]
    assert [] == list(messages(chat.as_of(tx="2020-01-01"), text="login"))


@pytest.mark.parametrize("text", ["login", '"login page"', "login -fine", "-limiter"])
def test_what_was_superseded_is_found_as_it_is_listed(chat: GraphStore, text: str) -> None:
    before = [event.id for event in messages(chat, text=text)]
    chat.supersede("m0", by="m3", reason="said anew")

    assert "m0" in before
    assert before == [event.id for event in messages(chat, text=text)]
    chat.erase("m0", reason="asked to")
    assert [id for id in before if id != "m0"] == [event.id for event in messages(chat, text=text)]


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_a_text_without_words_is_refused(chat: GraphStore, text: str) -> None:
    with pytest.raises(InvalidError, match="text"):
        messages(chat, text=text)


def test_few_and_many_that_say_a_text_are_found_alike(store: GraphStore, clock: Clock) -> None:
    with store.transaction():
        for number in range(200):
            text = f"number {number}" + (" seldom" if number % 50 == 0 else " often")
            record_message(
                store, "TEXT", text, thread=f"t{number % 3}", occurred_at=after(number), id=f"m{number:03}"
            )
            if number == 150:
                assert ["m150", "m100", "m050", "m000"] == [
                    event.id for event in messages(store.as_of(valid=after(500)), text="seldom")
                ]
    clock.move(hours=1)
    for word, step in (("seldom", 50), ("number", 1)):
        ids = [f"m{number:03}" for number in range(0, 200, step)][::-1]
        assert ids == [event.id for event in messages(store, text=word, limit=None)]
        mine = [id for id in ids if int(id[1:]) % 3 == 1]
        assert mine == [event.id for event in messages(store, text=word, thread="t1", limit=None)]


# ---------------------------------------------------------------- who spoke, and where


def test_a_role_is_kept_with_the_message(store: GraphStore) -> None:
    found = record_message(store, "TEXT", "hello", sender="ana", role="user").event

    assert {"role": "user"} == found.metadata
    with pytest.raises(InvalidError, match="role"):
        record_message(store, "TEXT", "hello", role="user", metadata={"role": "agent"})


def test_senders_and_threads_with_counts_whoever_spoke_last_first(store: GraphStore, clock: Clock) -> None:
    for sender, thread, role in (("ana", "a", "user"), ("bot", "a", "agent"), ("ana", "b", "user")):
        clock.move(seconds=1)
        record_message(store, "TEXT", f"{sender} in {thread}", sender=sender, thread=thread, role=role)
    before = clock.now

    assert [("ana", "user", 2, before), ("bot", "agent", 1, after(2))] == [
        (each.id, each.role, each.messages, each.last_seen) for each in timeline.senders(store)
    ]
    assert [("b", 1), ("a", 2)] == [(each.id, each.messages) for each in timeline.threads(store)]
    assert [("a", "bot")] == [(each.id, each.name) for each in timeline.threads(store.as_of(valid=after(2)))]
    assert 1 == len(timeline.senders(store, limit=1))


def test_messages_recorded_since_a_transaction_whenever_they_happened(
    store: GraphStore, clock: Clock
) -> None:
    record_message(store, "TEXT", "first")
    seen = store.event(next(iter(messages(store))).id).tx_from
    clock.move(days=1)
    record_message(store, "TEXT", "told late", occurred_at=after(-60))
    record_message(store, "TEXT", "told now")

    assert ["told now", "told late"] == says(messages(store, recorded_since=seen))
    assert ["told late"] == says(messages(store, recorded_since=seen, text="late"))
    page = messages(store, recorded_since=seen, limit=1)
    assert ["told late"] == says(messages(store, recorded_since=seen, limit=1, cursor=page.cursor))


def test_the_traces_newest_first_with_their_errors(store: GraphStore, clock: Clock) -> None:
    for trace in ("one", "two"):
        store.record_event(
            "span",
            f"root of {trace}",
            trace_id=trace,
            span_id="r",
            metadata={"ended_at": after(60).isoformat()},
        )
        clock.move(seconds=1)
        store.record_event("error", f"boom in {trace}", trace_id=trace, span_id="s", parent_span_id="r")
        clock.move(seconds=1)

    found = timeline.traces(store)
    assert [("two", "root of two", 2, 1), ("one", "root of one", 2, 1)] == [
        (each.trace_id, each.name, each.events, each.errors) for each in found
    ]
    assert after(60) == found[0].end
    assert ["one"] == [each.trace_id for each in timeline.traces(store.as_of(valid=after(1)))]
