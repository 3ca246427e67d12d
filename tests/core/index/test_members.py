"""What is found by its kind, scope, tag, type or time is all that a look at each thing finds: over random stores, at every coordinate, inside
transactions, after what failed, and beside a writer."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, View
from graphstore.core.read.sight import Sight
from graphstore.values.period import OPEN, instant
from tests.conftest import Clock, day

pytestmark = pytest.mark.in_process("looks at each thing by its number")

KINDS, SCOPES, TAGS, TYPES = (
    ("fact", "rule", "note"),
    ("", "a", "a/b"),
    ("red", "Deep Blue"),
    ("error", "deploy", "fix"),
)
LINKS = ("supports", "contradicts", "reference")
FIRST = day("2025-12-01")


def some_day(chance: random.Random) -> datetime:
    return FIRST + timedelta(days=chance.randrange(60), hours=chance.choice((0, 12)))


class Told:
    """A store that is told random things."""

    def __init__(self, store: GraphStore, clock: Clock, chance: random.Random) -> None:
        self.store, self.clock, self.chance = store, clock, chance
        self.nodes: list[str] = []
        self.events: list[str] = []
        self.seen = [store.as_of().at.tx]

    def begin(self) -> Told:
        """The store with a little in it."""
        for _ in range(3):
            self._add()
            self._happens()
        return self

    def one(self) -> None:
        """Something, as a verb or as a transaction of some, which may fail in the end."""
        self.clock.move(seconds=self.chance.randrange(1, 90))
        if self.chance.random() < 0.7:
            self._verb()
        else:
            with suppress(ZeroDivisionError), self.store.transaction():
                for _ in range(self.chance.randrange(1, 6)):
                    self._verb()
                    if self.chance.random() < 0.3:
                        agrees(self.store.as_of(), self.chance)
                if self.chance.random() < 0.4:
                    raise ZeroDivisionError
        self.seen.append(self.store.as_of().at.tx)

    def _verb(self) -> None:
        chance, store = self.chance, self.store
        verbs = [
            self._add,
            self._add,
            self._happens,
            self._happens,
            self._changes,
            self._link,
            self._takes_back,
        ]
        with suppress(GraphStoreError):
            chance.choice(verbs)()
            if chance.random() < 0.05:
                store.erase(chance.choice(self.nodes + self.events), reason="asked to")
            elif chance.random() < 0.1:
                store.undo(chance.choice(store.changes()).tx, reason="a slip")

    def _add(self) -> None:
        chance, id = self.chance, f"n{len(self.nodes)}"
        self.nodes.append(id)
        kind, scope = chance.choice(KINDS), chance.choice(SCOPES)
        tags = chance.sample(TAGS, chance.randrange(3))
        self.store.add_node(kind, {"what": id}, id=id, scope=scope, tags=tags, valid_from=some_day(chance))

    def _happens(self) -> None:
        chance = self.chance
        recorded = self.store.record_event(
            chance.choice(TYPES),
            f"it was {chance.randrange(8)}",
            occurred_at=some_day(chance),
            fingerprint=chance.choice([None, "f1", "f2"]),
        )
        self.events.append(recorded.event.id)

    def _changes(self) -> None:
        chance = self.chance
        id, since = chance.choice(self.nodes), some_day(chance)
        if chance.random() < 0.5:
            self.store.revise(id, {"what": chance.random()}, valid_from=since)
        else:
            self.store.end(id, at=since)

    def _link(self) -> None:
        one, other = self.chance.sample(self.nodes + self.events, 2)
        self.store.link(one, self.chance.choice(LINKS), other, valid_from=some_day(self.chance))

    def _takes_back(self) -> None:
        self.store.retract(self.chance.choice(self.nodes + self.events), reason="it was wrong")

    def anywhere(self) -> View:
        """A view of some coordinate that has passed."""
        return self.store.as_of(valid=some_day(self.chance), tx=self.chance.choice(self.seen))


def agrees(view: View, chance: random.Random) -> None:
    """What some filters find is what a look at each thing finds."""
    for _ in range(3):
        kind, scope, tag = (chance.choice([None, *some]) for some in (KINDS, SCOPES, TAGS))
        found = view.nodes(kind, scope=scope, tag=tag)
        assert found == [
            node
            for node in view.nodes()
            if kind in (None, node.kind) and scope in (None, node.scope) and (tag is None or tag in node.tags)
        ]
        assert [node.id for node in found] == [row.id for row in view.scan(kind, scope=scope, tag=tag)]
        type, days = chance.choice([None, *TYPES]), sorted([some_day(chance), some_day(chance)])
        since, until = (chance.choice([None, at]) for at in days)
        asked = {"type": type, "since": since, "until": until}
        found_events = [event.id for event in view.events(**asked)]  # type: ignore[arg-type]
        assert found_events == view._looked(lambda sight, asked=asked: happened(sight, **asked))
    view._looked(same_links)


def happened(sight: Sight, type: str | None, since: datetime | None, until: datetime | None) -> list[str]:
    """The events, newest first, by a look at each."""
    index = sight.index
    begin, end = -OPEN if since is None else instant(since), OPEN if until is None else instant(until)
    found = []
    for ent in range(len(index.names)):
        if not index.is_event[ent] or index.born[ent] > sight.tx or (row := sight.find(ent)) < 0:
            continue
        inside = since is until is None or any(begin <= at < end for at in sight.happened.instants(ent))
        if inside and type in (None, index.kind[ent]):
            found.append((-index.r_from[row], index.names[ent]))
    return [id for _, id in sorted(found)]


def same_links(sight: Sight) -> None:
    kinds = frozenset(LINKS[:2])
    by_one = [link for link, kind in enumerate(sight.index.l_kind) if kind in kinds]
    assert by_one == [edge.link for edge in sight.edges_of(kinds)]


@pytest.mark.parametrize("seed", range(12))
def test_what_a_filter_finds_is_what_a_look_at_each_thing_finds(
    store: GraphStore, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)
    told = Told(store, clock, chance).begin()
    for _ in range(60):
        told.one()
        agrees(store.as_of(), chance)
        agrees(told.anywhere(), chance)


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_and_a_store_opened_again_find_the_same(tmp_path: Any, seed: int) -> None:
    chance, clock = random.Random(seed), Clock()
    with graphstore.open(tmp_path / "s.gs", clock=clock) as store:
        told = Told(store, clock, chance).begin()
        for _ in range(40):
            told.one()
        with store.branch("aside", tx=chance.choice(told.seen[5:])) as aside:
            beside = Told(aside, clock, chance)  # type: ignore[arg-type]
            beside.nodes, beside.events = told.nodes[:], told.events[:]
            for _ in range(20):
                beside.one()
                agrees(aside.as_of(), chance)
                agrees(store.as_of(), chance)
    with graphstore.open(tmp_path / "s.gs", clock=clock) as store:
        told.store = store
        for _ in range(20):
            agrees(told.anywhere(), chance)
            told.one()
            agrees(store.as_of(), chance)


def test_readers_beside_a_writer_find_what_stands_at_their_coordinate(
    store: GraphStore, clock: Clock
) -> None:
    store.add_node("rule", {}, id="first", valid_from=FIRST)
    store.record_event("deploy", "the first", occurred_at=FIRST)
    view = store.as_of()
    expected = view.nodes("rule"), view.events("deploy", since=FIRST)
    wrong: list[Any] = []
    done = threading.Event()

    def reads() -> None:
        while not done.is_set():
            try:
                found = view.nodes("rule"), view.events("deploy", since=FIRST)
                if found != expected or len(store.nodes("fact")) % 2:
                    wrong.append(found)
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=reads) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(150):
        clock.move(seconds=1)
        with suppress(ZeroDivisionError), store.transaction():
            store.add_node("rule", {"n": number})
            store.record_event("deploy", f"{number}", occurred_at=FIRST - timedelta(days=number % 7))
            store.add_node("fact", {"n": number})
            store.add_node("fact", {"n": -number})
            if number % 3 == 0:
                raise ZeroDivisionError
    done.set()
    for reader in readers:
        reader.join()
    assert [] == wrong
    assert 101 == len(store.nodes("rule")) and 101 == len(
        store.events("deploy", until=FIRST + timedelta(seconds=1))
    )
