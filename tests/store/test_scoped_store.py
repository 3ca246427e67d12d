"""What some scopes hold tells of what is inside exactly what the whole store tells, at every coordinate, and nothing of the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore.errors import GraphStoreError, NotFoundError
from graphstore.memory import recall
from graphstore.store.scoped_store import ScopedStore
from tests.conftest import START, Clock
from tests.support.seeds import seeds

MARK = "zebra"
SCOPES = ("team/a", "shared")
INSIDE = ("team/a", "team/a/garden", "shared")
OUTSIDE = ("team/b", "team/ab", "team", "")
LINKS = ("related_to", "derived_from", "contradicts", "supports", "caused_by", "wears")
STEPS = 60


class World:
    """A store in which two teams say things, of one another too. All that is of the other team has the mark, in ids, contents and reasons."""

    def __init__(self, store: graphstore.GraphStore, clock: Clock, seed: int) -> None:
        self.store, self._clock, self._chance = store, clock, random.Random(seed)
        self.inside: list[str] = []
        self.outside: list[str] = []
        self.taken: set[str] = set()
        """What is inside and was superseded or corrected by something outside."""
        self.done = 0

    def step(self) -> None:
        """One thing that somebody says, or a block of several; what the store refuses is not said."""
        self._clock.move(minutes=self._chance.choice([1, 1, 60, 1500]))
        try:
            if self._chance.random() < 0.2:
                with self.store.transaction(reason="both"):
                    for _ in range(3):
                        self._verb(self._chance.choice((True, False)), reason=None)
            else:
                inside = self._chance.random() < 0.5
                self._verb(inside, reason="so" if inside else MARK)
            self.done += 1
        except GraphStoreError:
            pass

    def _verb(self, inside: bool, reason: str | None) -> None:
        chance, store = self._chance, self.store
        known = self.inside if inside else self.outside
        said: dict[str, Any] = {"n": chance.randrange(3), **({} if inside else {"says": MARK})}
        verb = chance.choice(
            ["add", "add", "add", "event", "revise", "revise", "retract", "end", "confirm", "link", "link", "link", "unlink", "supersede", "fold",
             "undo", "branch", "erase", "evict", "touch", "setting", "load"]
        )  # fmt: skip
        if verb == "add" or len(known) < 2:
            id = f"{'a' if inside else MARK}{len(self.inside) + len(self.outside)}"
            others = chance.sample(self.inside + self.outside, min(1, len(known)))
            how = chance.choice(["supersedes", "corrects", "derived_from", "tags"])
            key = chance.choice([None, "slot" if inside else f"{MARK}slot"])
            self.taken.update(() if inside else others)
            store.add_node("fact", said, id=id, scope=chance.choice(INSIDE if inside else OUTSIDE), key=key, reason=reason,
                           **{how: others if how != "tags" else ["tag" if inside else MARK]}, **self._span())  # fmt: skip
            known.append(id)
            return
        id, other = chance.choice(known), chance.choice(self.inside + self.outside)
        if verb == "event":
            scope = chance.choice(INSIDE if inside else OUTSIDE)
            found = store.record_event(
                "error", f"{'a' if inside else MARK} broke", metadata={"scope": scope}
            ).event.id
            if found not in known:
                known.append(found)
        elif verb == "revise":
            store.revise(id, said, reason=reason, **self._span())
        elif verb == "retract":
            store.retract(id, reason=reason or "a slip", **self._span())
        elif verb == "end":
            store.end(id, reason=reason)
        elif verb == "confirm":
            store.confirm(id, reason=reason or "seen")
        elif verb == "link":
            ends = (id, other) if chance.random() < 0.5 else (other, id)
            crosses = other not in known or not inside
            store.link(ends[0], chance.choice(LINKS), ends[1], reason=MARK if crosses else reason)
        elif verb == "unlink":
            links = [link for link in store.links_from(id) if (link.target in self.inside) == inside]
            store.unlink(chance.choice(links).id, reason=reason) if links else None
        elif verb == "supersede":
            self.taken.update(() if inside else [other])
            store.supersede(other, by=id, reason=reason if inside and other in known else MARK)
        elif verb == "fold":
            into = chance.choice(known)
            store.fold(chance.sample(known, 2), into=into, reason=reason)
        elif verb == "undo":
            store.undo(chance.choice(store.changes()[-6:]).tx, reason="both")
        elif verb == "branch":
            name = f"{MARK}{self.done}"
            store.branch(name, reason=MARK)
            branch = store.on(name)
            branch.revise(chance.choice(self.inside), {"n": 9}, reason="so")
            branch.revise(chance.choice(self.outside), {"n": 9}, reason=MARK)
            if chance.random() < 0.7:
                self._clock.move(minutes=1)
                store.merge(name)
        elif (
            verb == "erase" and chance.random() < 0.3 and not id.startswith("evt_")
        ):  # of what scope it was is erased, too
            store.erase(id, reason=reason or "asked for")
        elif verb == "evict" and chance.random() < 0.3 and not id.startswith("evt_"):
            store.evict(ids=[id])
        elif verb == "touch":
            store.touch([id, other])
            store.flush_accesses()
        elif verb == "setting":
            store.snapshot(chance.choice([f"{MARK}{self.done}", chance.choice(self.inside or [MARK])]))
        elif verb == "load":
            ids = [f"{'a' if inside else MARK}l{self.done}-{n}" for n in range(2)]
            scope = chance.choice(INSIDE if inside else OUTSIDE)
            store.bulk_load(
                nodes=[{"id": one, "kind": "fact", "scope": scope} for one in ids],
                versions=[{"node_id": one, "content": said} for one in ids],
                links=[{"source": ids[0], "kind": "related_to", "target": ids[1]}, {"source": ids[0], "kind": "wears", "target": other}],
            )  # fmt: skip
            known.extend(ids)

    def _span(self) -> dict[str, datetime]:
        if self._chance.random() < 0.6:
            return {}
        first, last = sorted(self._chance.sample(range(1, 30), 2))
        return {
            "valid_from": START - timedelta(days=30 - first),
            "valid_to": START - timedelta(days=30 - last),
        }


def _told(view: Any, ids: list[str], taken: set[str]) -> dict[str, Any]:
    """What a view tells of what is inside, in the words of a scoped store."""
    told: dict[str, Any] = {}
    for id in ids:
        try:
            found = view.inspect(id)
        except NotFoundError:
            continue
        standing = found.node.standing
        links = [link for link in found.links if link.target in ids]
        if id in taken and standing not in ("stands", "shaky"):
            standing = "fell"  # to something outside
        told[id] = (
            standing,
            [version.model_dump() for version in found.history],
            [_plain(link) for link in links],
            [
                (each.tx, each.verb)
                for each in view.operations(id)
                if each.subject == id and each.verb != "snapshot"
            ],
        )
    shaky = {each.node.id for each in view.shaky() if each.node.id in ids}
    return {"things": told, "shaky": shaky}


def _plain(value: Any) -> dict[str, Any]:
    """A link without how its ends stand."""
    told = value.model_dump()
    return {name: told[name] for name in told if not name.endswith("_standing")}


@pytest.mark.parametrize("seed", seeds(3, 12, 500))
def test_scopes_tell_what_the_store_tells_of_what_is_inside(tmp_path: Path, seed: int) -> None:
    clock = Clock()
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        store.define_kind("wears")
        world = World(store, clock, seed)
        seen = ScopedStore(store, SCOPES)
        chance, coordinates = random.Random(seed), []
        for number in range(STEPS):
            world.step()
            if number % 6 == 0:
                at = store.as_of().at
                coordinates.append((at.valid, at.tx))
                for valid, tx in [coordinates[-1], chance.choice(coordinates), (START - timedelta(days=chance.randrange(30)), at.tx)]:  # fmt: skip
                    found, expected = (
                        _told(one.as_of(valid=valid, tx=tx), world.inside, world.taken)
                        for one in (seen, store)
                    )
                    assert found["things"].keys() == expected["things"].keys()
                    for id, told in expected["things"].items():
                        assert found["things"][id] == told, id
                    assert found["shaky"] == expected["shaky"]
        clock.move(minutes=5)
        assert seen.verify().ok
        seen.export(tmp_path / "dump")
        written = (tmp_path / "dump").read_bytes()
        assert MARK.encode() not in written, next(
            line for line in written.split(b"\n") if MARK.encode() in line
        )
        with graphstore.restore(tmp_path / "dump", tmp_path / "restored", clock=clock) as restored:
            assert [node.id for node in restored.nodes()] == [node.id for node in seen.nodes()]
        seen.close()


@pytest.fixture
def both(
    tmp_path: Path,
) -> Iterator[tuple[graphstore.GraphStore, Clock, Callable[[], graphstore.GraphStore]]]:
    """A store, its clock, and what gives the part of it that scopes hold, a minute later."""
    clock = Clock()
    with graphstore.open(tmp_path / "memory.gs", clock=clock) as store:
        seen = ScopedStore(store, SCOPES)

        def followed() -> graphstore.GraphStore:
            clock.move(minutes=1)
            return seen

        yield store, clock, followed
        seen.close()


def test_what_is_undone_is_undone_for_a_token_too(both: Any) -> None:
    store, clock, followed = both
    store.add_node("fact", {"n": 1}, id="a1", scope="team/a")
    store.add_node("fact", {"n": 1}, id="a2", scope="team/a")
    store.add_node("fact", {"n": 1}, id=MARK, scope="team/b")
    store.link("a2", "derived_from", "a1")
    clock.move(minutes=1)
    store.retract("a1", reason="a slip")
    clock.move(minutes=1)
    store.confirm("a2", reason="looked at")
    confirmed = store.changes()[-1].tx
    assert followed().shaky() == []
    store.undo(confirmed, reason="not looked at")
    assert [each.node.id for each in followed().shaky()] == ["a2"]
    with store.transaction():
        store.retract("a2", reason="a slip")
        store.retract(MARK, reason=MARK)
    assert [node.id for node in followed().nodes()] == []
    store.undo(store.changes()[-1].tx, reason="both")
    store.retract(MARK, reason=MARK)
    assert [node.id for node in followed().nodes()] == ["a2"]
    store.undo(store.changes()[-1].tx, reason=MARK)
    assert MARK not in repr(followed().changes())


def test_an_event_that_something_outside_superseded_or_resolved_says_so_and_no_more(both: Any) -> None:
    store, clock, followed = both
    first = store.record_event("error", "the oven is cold", metadata={"scope": "team/a"}).event.id
    second = store.record_event("error", "the tap drips", metadata={"scope": "team/a"}).event.id
    store.add_node("fact", {"says": MARK}, id=MARK, scope="team/b")
    before = followed().as_of()
    clock.move(minutes=1)
    store.supersede(first, by=MARK, reason=MARK)
    clock.move(minutes=1)
    store.record_event("fix", MARK, metadata={"scope": "team/b"}, related_to=second)
    seen = followed()
    assert {event.id: event.status for event in seen.events()} == {first: "superseded", second: "resolved"}
    assert (seen.inspect(first).node.standing, seen.inspect(second).node.standing) == ("superseded", "stands")
    assert (
        str(seen.what_superseded(first))
        == f"{first} (the oven is cold) is superseded by something outside your scope."
    )
    rows = "MATCH (e:Event) RETURN e.id AS id, e.standing AS standing, e.status AS status"
    assert {row["id"]: (row["standing"], row["status"]) for row in seen.query(rows)} == {
        first: ("superseded", "superseded"), second: ("stands", "resolved"),
    }  # fmt: skip
    assert seen.inspect(second).links == seen.inspect(second).backlinks == ()
    assert {event.status for event in before.events()} == {"active"}
    assert seen.verify().ok
    store.unlink(store.supersedes(MARK)[0].id)
    assert followed().inspect(first).node.standing == "stands"


def test_a_reason_that_was_given_for_something_outside_as_well_is_not_told(both: Any) -> None:
    store, _, followed = both
    store.add_node("fact", {"n": 1}, id="a1", scope="team/a", reason="by itself")
    with store.transaction(reason=f"{MARK} moves"):
        store.add_node("fact", {"n": 1}, id="a2", scope="team/a")
        store.add_node("fact", {"n": 1}, id="b2", scope="team/b")
        store.add_node("fact", {"n": 1}, id="a3", scope="team/a", reason="of its own")
    store.add_node("fact", {"n": 2}, id="b3", scope="team/b", corrects=["a3"], reason=f"{MARK} said so")
    seen = followed()
    told = {(change.verb, change.subject): change.reason for change in seen.changes()}
    assert told == {
        ("add_node", "a1"): "by itself", ("add_node", "a2"): None, ("add_node", "a3"): "of its own", ("correct", "a3"): None,
    }  # fmt: skip
    assert seen.inspect("a3").node.standing == "retracted"


def test_every_occurrence_of_an_event_inside_is_counted(both: Any) -> None:
    store, clock, followed = both
    for number in range(3):
        with store.transaction(reason="seen again"):
            store.record_event("error", f"no room on disk {number}", metadata={"scope": "team/a"})
        clock.move(minutes=1)
    (event,) = followed().events()
    assert event.count == 3
    assert event == store.event(event.id)


def test_texts_are_found_in_the_languages_of_the_store(both: Any) -> None:
    store, clock, followed = both
    store.add_node("fact", {"says": "die H\u00e4user sind rot"}, id="a1", scope="team/a")
    clock.move(minutes=1)
    store.set_languages(["german"])
    store.snapshot(MARK)
    seen = followed()
    assert seen.languages == ("german",)
    assert [hit.node.id for hit in recall.mentions(seen.as_of(), "Haus").hits] == ["a1"]
    assert seen.snapshots() == []


def test_what_another_opening_writes_is_seen_at_once(both: Any) -> None:
    store, clock, followed = both
    store.add_node("fact", {"n": 1}, id="a1", scope="team/a")
    seen = followed()
    assert (["a1"], []) == ([node.id for node in seen.nodes()], seen.stats()["custom_kinds"])
    clock.move(minutes=1)
    with graphstore.open(store.path, clock=clock) as other:
        other.define_kind("wears")
        other.add_node("fact", {"n": 1}, id="a2", scope="team/a")
        other.add_node("fact", {"n": 1}, id=MARK, scope="team/b")
        other.link("a1", "wears", "a2")
    assert (["a1", "a2"], ["wears"]) == ([node.id for node in seen.nodes()], seen.stats()["custom_kinds"])
    assert ["wears"] == [link.kind for link in seen.links_from("a1", "wears")]
