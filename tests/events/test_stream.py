"""A web application watched for ten days, as it really comes: what the recorder makes of 2,152 observations, judged by what was put in."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

import graphstore
from graphstore import events
from graphstore.events.recorder import Recorder
from tests.conftest import BOOM, Clock, after
from tests.events.stream import AGAIN, DEPLOYS, ERRORS, REGRESSIONS, Stream, crowd, stream
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("hundreds of thousands of calls")
LATER = "2027-01-01"


def watched(store, made: Stream, *, restart: int = 0):
    """All of a stream observed, with a look at the time after each, by a new recorder every `restart` observations."""
    recorder = Recorder(store)
    for number, (method, args, more, at) in enumerate(made.seen):
        if restart and number % restart == 0:
            recorder = Recorder(store)
        getattr(recorder, method)(*args, at=at, **more)
        recorder.tick(at)
    return store.as_of(valid=LATER)


def of(view, type: str):
    return sorted((each for each in view.events() if each.type == type), key=lambda each: each.first_seen)


@pytest.fixture(scope="module", params=seeds(1, 2, 20))
def seen(request):
    """A stream, and the view of a store that was told all of it."""
    made = stream(request.param)
    with graphstore.open(":memory:", clock=Clock("2026-04-02")) as store:
        yield made, watched(store, made, restart=request.param % 3)


def test_deploys_regressions_errors_and_what_ended_them_are_those_there_were(seen):
    made, view = seen
    assert 2152 == len(made.seen)
    deploys = of(view, "deploy")
    assert DEPLOYS == len(deploys)
    for deploy, at in zip(deploys, made.deploys, strict=True):
        assert abs(deploy.first_seen - at) <= timedelta(minutes=5)
    slow = of(view, "regression")
    assert REGRESSIONS == sum(each.count for each in slow) and {"resolved"} == {each.status for each in slow}
    for metric, page, number in made.slow:
        (event,) = [
            each for each in slow if (each.metadata["metric"], each.metadata.get("page")) == (metric, page)
        ]
        causes = [link.target for link in event.links if link.kind == "caused_by"]
        assert deploys[number].id in causes
    assert {(metric, page) for metric, page, _ in made.slow} == {
        (each.metadata["metric"], each.metadata["page"]) for each in slow
    }


def test_no_bug_is_there_twice_and_resolutions_are_credited_to_their_deploy(seen):
    made, view = seen
    errors, deploys = of(view, "error"), [each.id for each in of(view, "deploy")]
    assert len(ERRORS) == len(errors)
    named = {}
    for event in errors:
        (error,) = [n for n, text in enumerate(ERRORS) if text.split("{n}")[0] == event.description[: len(text.split("{n}")[0])] and text.split("{n}")[-1] in event.description]  # fmt: skip
        named[error] = event
    credited = {
        error: sorted(deploys.index(link.target) for link in event.links if link.target in deploys)
        for error, event in named.items()
    }
    assert {error: made.fixed.get(error, []) for error in named} == credited
    assert any(len(made.fixed.get(error, ())) > 1 for error in AGAIN)


@pytest.mark.rest
def test_stopped_and_opened_again_in_the_middle_it_makes_the_same(tmp_path, clock):
    clock.move(days=60)
    made = stream(3, 900)
    with graphstore.open(":memory:", clock=clock) as store:
        whole = Counter((each.type, each.first_seen, each.count) for each in watched(store, made).events())
    for number, part in enumerate((made.seen[:300], made.seen[300:600], made.seen[600:])):
        with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
            view = watched(store, Stream(seen=part))
            found = Counter((each.type, each.first_seen, each.count) for each in view.events())
            assert number < 2 or whole == found


def test_time_that_nobody_was_seen_in_does_not_count_as_browsing(store, recorder):
    recorder.observe_error(BOOM, at=after(0))
    recorder.observe_metric("lcp_ms", 1200, at=after(50))
    recorder.observe_metric("lcp_ms", 1200, at=after(400))

    assert [] == recorder.tick(after(401))
    for second in range(440, 700, 40):
        recorder.observe_metric("lcp_ms", 1200, at=after(second))
    assert 1 == len(events.Recorder(store).tick(after(701), active=None))


@pytest.mark.parametrize("seed", seeds(0, 1, 20))
def test_of_many_users_with_old_tabs_on_pages_cut_by_routes_each_build_is_one_deploy(store, clock, seed):
    clock.move(days=60)
    made = crowd(seed)
    deploys = of(watched(store, made), "deploy")

    assert DEPLOYS == len(deploys)
    assert all(
        timedelta(0) <= each.first_seen - at < timedelta(minutes=3)
        for each, at in zip(deploys, made.deploys, strict=True)
    )
