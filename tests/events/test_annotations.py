"""A transcript or a classification may come after the message: an event of its own, shown with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore import ConflictError, InvalidError, NotFoundError, context, observer, recall, timeline
from graphstore.context.observer import Observer

pytestmark = pytest.mark.in_process("its compressor is a function of the test")


@pytest.fixture
def voice(store, clock):
    """A message without words, of an hour ago."""
    timeline.record_message(store, "AUDIO", media_path="/voice.ogg", sender="ada", thread="t1", id="voice")
    timeline.record_message(
        store, "TEXT", "the invoice", sender="ada", thread="t1", id="text", classification="draft"
    )
    clock.move(hours=1)
    return store


def listed(view, **how):
    return [event.id for event in timeline.messages(view, **how)]


def test_a_transcript_is_an_event_of_its_own_and_shown_with_its_message(voice, clock):
    before = voice.event("voice")
    (event,) = timeline.annotate(voice, "voice", transcript="the crane is on pier nine")

    assert ("message_transcript", "the crane is on pier nine", clock.now) == (
        event.type,
        event.description,
        event.occurred_at,
    )
    assert before.model_dump(exclude={"links"}) == voice.event("voice").model_dump(exclude={"links"})
    page = timeline.messages(voice)
    assert ["text", "voice"] == [each.id for each in page]
    assert {"voice": [event.id]} == {id: [each.id for each in added] for id, added in page.added.items()}
    assert [event.id] == [each.id for each in timeline.added(voice, "voice")]
    assert [] == timeline.added(voice, "text")
    assert event.id in [hit.node.id for hit in recall.recall(voice, "crane pier")]
    assert {} == timeline.messages(voice.as_of(valid=clock.now - timedelta(minutes=1))).added


def test_a_transcript_is_what_the_observer_and_an_agent_are_told(voice):
    timeline.annotate(voice, "voice", transcript="the crane is on pier nine")
    given = []
    watching = Observer(voice, lambda messages: given.extend(each.text for each in messages) or "- [LOW] x")
    watching.enqueue(voice.event("voice"), user="ada", thread="t1")
    assert ["[AUDIO /voice.ogg] the crane is on pier nine"] == [
        each.text for each in observer.queue(voice, "ada", "t1")
    ]
    watching.observe("ada", "t1")
    assert ["[AUDIO /voice.ogg] the crane is on pier nine"] == given
    assert "ada: [AUDIO /voice.ogg] the crane is on pier nine" in context.context(voice, "ada", "t1").text


def test_the_latest_classification_counts(voice, clock):
    timeline.annotate(voice, "text", classification="invoice")
    timeline.annotate(voice, "voice", classification="invoice")
    assert (["text", "voice"], []) == (
        listed(voice, classification="invoice"),
        listed(voice, classification="draft"),
    )
    clock.move(hours=1)
    timeline.annotate(voice, "text", classification="draft")
    assert (["voice"], ["text"]) == (
        listed(voice, classification="invoice"),
        listed(voice, classification="draft"),
    )
    assert 2 == len(timeline.added(voice, "text"))
    assert (["text"], []) == (
        listed(voice, classification="draft", sender="ada"), listed(voice, classification="draft", sender="bob"),
    )  # fmt: skip
    past = voice.as_of(valid=clock.now - timedelta(minutes=1))
    assert ["text", "voice"] == listed(past, classification="invoice")
    first = timeline.messages(past, classification="invoice", limit=1)
    assert ["voice"] == listed(past, classification="invoice", cursor=first.cursor)


def test_two_messages_that_are_alike_are_two(voice):
    one = timeline.annotate(voice, "text", classification="invoice", transcript="same")
    two = timeline.annotate(voice, "voice", classification="invoice", transcript="same")
    assert 4 == len({event.id for event in (*one, *two)})


def test_of_a_message_that_was_not_authorized_nothing_is_found(voice):
    timeline.record_message(
        voice, "AUDIO", media_path="/s.ogg", sender="eve", thread="t1", authorized=False, id="secret"
    )
    timeline.annotate(voice, "secret", transcript="the word is marmalade")
    assert [] == [hit.node.id for hit in recall.recall(voice, "marmalade")]
    assert "marmalade" not in context.context(voice, "ada", "t1", "marmalade").text
    assert ["secret"] == listed(voice, authorized=False)


def test_what_cannot_be_annotated_is_refused(voice):
    voice.record_event("deploy", "v2", id="d1")
    (event,) = timeline.annotate(voice, "voice", transcript="hello")
    for id, how, error in (
        ("nobody", {"transcript": "x"}, NotFoundError),
        ("d1", {"transcript": "x"}, InvalidError),
        (event.id, {"transcript": "x"}, InvalidError),
        ("voice", {}, InvalidError),
        ("voice", {"transcript": " "}, InvalidError),
        ("voice", {"transcript": "a", "classification": ""}, InvalidError),
    ):
        with pytest.raises((error, ConflictError)):
            timeline.annotate(voice, id, **how)
    assert 1 == len(timeline.added(voice, "voice"))
