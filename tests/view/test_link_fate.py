"""A link by its id: its periods, what was ever believed of it, all about it, and what became of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from graphstore import (
    GraphStore,
    Inspection,
    Link,
    LinkId,
    LinkInspection,
    LinkSupersession,
    NotFoundError,
    Supersession,
    Version,
)
from tests.conftest import Clock, day

pytestmark = pytest.mark.served

USES = LinkId("lamp-uses-bulb")


@pytest.fixture
def lamp(store: GraphStore, clock: Clock) -> GraphStore:
    """A lamp that uses a bulb: guessed for the first half of 2025, said from March to June, unlinked in April by bob."""
    for id in ("lamp", "bulb"):
        store.add_node("thing", {}, id=id, text=f"a {id}", valid_from="2025-01-01")
    ends = ("lamp", "uses", "bulb")
    store.link(*ends, confidence="inferred", valid_from="2025-01-01", valid_to="2025-07-01", id=USES)
    clock.set("2026-02-02")
    with store.transaction(author="ana"):
        store.link(*ends, reason="it shines", valid_from="2025-03-01", valid_to="2025-06-01")
    clock.set("2026-02-03")
    with store.transaction(author="bob"):
        store.unlink(USES, valid_from="2025-04-01", valid_to="2025-05-01", reason="it was broken")
    return store


def date(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%m-%d")


def told(links: list[Link]) -> list[tuple[str | None, str | None, str]]:
    return [(date(link.valid_from), date(link.valid_to), link.confidence) for link in links]


def test_the_history_of_a_link_is_what_is_believed_of_it(lamp: GraphStore) -> None:
    expected = [
        ("01-01", "03-01", "inferred"), ("03-01", "04-01", "explicit"), ("05-01", "06-01", "explicit"), ("06-01", "07-01", "inferred"),
    ]  # fmt: skip
    assert expected == told(lamp.history(USES)) == told(lamp.link_history("lamp", "uses", "bulb"))
    assert [("01-01", "07-01", "inferred")] == told(lamp.as_of(tx="2026-02-01T12:00:00Z").history(USES))


def test_its_versions_are_all_that_was_ever_believed(lamp: GraphStore) -> None:
    versions = lamp.versions(USES)

    assert ("01-01", "07-01", "inferred") == told(versions)[0]
    assert day("2026-02-02") == versions[0].tx_to
    assert [("03-01", "06-01", "explicit")] == told(
        [row for row in versions if row.tx_to == day("2026-02-03")]
    )
    assert [row.tx_from for row in versions] == sorted(row.tx_from for row in versions)


def test_all_about_a_link(lamp: GraphStore) -> None:
    lamp.retract("bulb", reason="there was none")
    found = lamp.as_of(valid="2025-03-15").inspect(USES)

    assert isinstance(found, LinkInspection)
    assert (True, "it shines", "stands", "retracted") == (
        found.holds,
        found.link.reason,
        found.source.standing,
        found.target.standing,
    )
    assert lamp.history(USES) == list(found.history)
    assert str(found).startswith(
        "lamp-uses-bulb (lamp uses bulb (it shines)) holds. lamp (a lamp) stands, bulb (a bulb) is retracted. Believed: "
    )


def test_a_link_that_does_not_hold_shows_its_last_period_there(lamp: GraphStore) -> None:
    found = lamp.as_of(valid="2025-04-15").inspect(USES)

    assert (False, "it shines", "03-01") == (found.holds, found.link.reason, date(found.link.valid_from))
    assert "07-01" == date(lamp.inspect(USES).link.valid_to)


def test_what_became_of_a_link_that_was_unlinked(lamp: GraphStore) -> None:
    found = lamp.as_of(valid="2025-04-15").what_superseded(USES)

    assert isinstance(found, LinkSupersession)
    assert not found.holds
    assert [("revised", "ana", "it shines", "03-01"), ("unlinked", "bob", "it was broken", "04-01")] == [
        (step.how, step.who, step.why, date(step.since)) for step in found.chain
    ]
    assert [day("2026-02-02"), day("2026-02-03")] == [step.recorded_at for step in found.chain]
    assert str(found) == (
        "lamp-uses-bulb (lamp uses bulb (it shines)) was revised since 2025-03-01 recorded 2026-02-02 by ana because: it shines; "
        "then unlinked since 2025-04-01 recorded 2026-02-03 by bob because: it was broken. It does not hold."
    )


def test_what_became_of_a_link_depends_on_when_it_is_asked(lamp: GraphStore) -> None:
    def steps(valid: str, tx: str | None = None) -> tuple[list[str], bool]:
        found = lamp.as_of(valid=valid, tx=tx).what_superseded(USES)
        return [step.how for step in found.chain], found.holds

    assert ([], True) == steps("2025-02-01")
    assert (["revised"], True) == steps("2025-05-15")
    assert (["ended"], False) == steps("2025-08-01")
    assert ([], False) == steps("2024-08-01")
    assert (["revised"], True) == steps("2025-04-15", "2026-02-02T12:00:00Z")
    lamp.link("lamp", "uses", "bulb", valid_from="2025-04-01", valid_to="2025-05-01")
    assert (["revised", "unlinked"], True) == steps("2025-04-15")
    assert "lamp-uses-bulb (lamp uses bulb) holds." == str(
        lamp.as_of(valid="2025-02-01").what_superseded(USES)
    )


def test_a_supersession_taken_back_with_its_successor_says_why(store: GraphStore) -> None:
    for number, id in enumerate(("old", "new"), 1):
        store.add_node("fact", {}, id=id, valid_from=f"2025-0{number}-01")
    (link,) = store.supersede("old", by="new")
    store.retract("new", reason="never came")

    (step,) = store.what_superseded(link.id).chain
    assert ("unlinked", "never came", link.id) == (step.how, step.why, step.link and step.link.id)


def test_what_asks_for_a_thing_is_told_that_it_is_a_link(lamp: GraphStore) -> None:
    for found in (lamp.inspect(USES), lamp.what_superseded(USES)):
        with pytest.raises(NotFoundError, match="it is a link, 'lamp' uses 'bulb'"):
            _ = found.node if isinstance(found, LinkInspection) else found.subject


def test_what_was_not_made_by_then_is_unknown(lamp: GraphStore) -> None:
    before = lamp.as_of(tx="2026-01-31")
    for ask in (before.history, before.versions, before.inspect, before.what_superseded):
        with pytest.raises(NotFoundError):
            ask(USES)


def test_a_thing_goes_before_a_link_of_its_id(lamp: GraphStore) -> None:
    lamp.add_node("fact", {}, id=USES)

    assert isinstance(lamp.history(str(USES))[0], Version)
    assert isinstance(lamp.inspect(str(USES)), Inspection)
    assert isinstance(lamp.what_superseded(str(USES)), Supersession)
