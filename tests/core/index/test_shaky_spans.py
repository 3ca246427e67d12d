"""The spans in which things are shaky are what the judge says who follows what rests on what, at every coordinate and after every write."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest

import graphstore
from graphstore import GraphStore
from graphstore.core.index.foundations import Resting
from graphstore.core.index.shaky_spans import NO, NOT_KEPT, YES, look
from graphstore.core.tables.arrow_tables import holding
from graphstore.errors import GraphStoreError
from graphstore.values.period import instant
from tests.conftest import Clock

pytestmark = pytest.mark.in_process("spans are compared inside the index")

THINGS, DAYS = 12, 40
KINDS = ("derived_from", "derived_from", "derived_from", "supports", "caused_by", "leans_on", "reference")


class Story:
    """Random verbs on few things, so that all rest on one another, fall, are looked at and given back."""

    def __init__(self, store: GraphStore, clock: Clock, seed: int) -> None:
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.made = 0
        store.define_kind("leans_on", rests=("retracted", "superseded", "shaky"))
        self.ids: list[str] = []
        for _ in range(THINGS):
            self.add()

    def day(self) -> str:
        day = self.chance.randrange(1, DAYS)
        return f"2026-0{1 + day // 28}-{1 + day % 28:02}"

    def add(self, **said: object) -> str:
        id = f"t{self.made}"
        self.made += 1
        if not said and self.chance.random() < 0.2:
            self.store.record_event("error", id, id=id, occurred_at=self.day())
        else:
            since = self.day()
            self.store.add_node("fact", {"n": self.made}, id=id, valid_from=since, **said)  # type: ignore[arg-type]
        self.ids.append(id)
        return id

    def some(self) -> str:
        return self.chance.choice(self.ids)

    def link(self) -> None:
        until = {"valid_to": "2026-03-20"} if self.chance.random() < 0.2 else {}
        since = {"valid_from": self.day()} if self.chance.random() < 0.6 else {}
        self.store.link(self.some(), self.chance.choice(KINDS), self.some(), **since, **until)  # type: ignore[arg-type]

    def revise(self) -> None:
        since = {"valid_from": self.day()} if self.chance.random() < 0.6 else {}
        content = {"n": self.chance.randrange(3)}
        self.store.revise(self.some(), content, minor=self.chance.random() < 0.3, **since)  # type: ignore[arg-type]

    def load(self) -> None:
        if self.chance.random() < 0.7:
            self.link()
            return
        versions = [
            {
                "node_id": id,
                "content": {"n": self.chance.randrange(3)},
                "valid_from": f"{self.day()}T00:00:00Z",
            }
            for id in (self.some(), self.some(), f"t{self.made}")
        ]
        links = [{"source": self.some(), "kind": "derived_from", "target": f"t{self.made}"}]
        self.store.bulk_load(versions=versions, links=links)
        self.ids.append(f"t{self.made}")
        self.made += 1

    def turn(self, *, forgets: bool = True) -> None:
        """One verb; what the store refuses is none."""
        store, chance = self.store, self.chance
        since = {"valid_from": self.day()} if chance.random() < 0.6 else {}
        verb = chance.choice(
            (
                self.link, self.link, self.link, self.link, self.link, self.revise, self.revise, self.add,
                lambda: store.retract(self.some(), reason="wrong", **since),  # type: ignore[arg-type]
                lambda: store.end(self.some(), at=self.day()),
                lambda: store.supersede(self.some(), by=self.some(), **since),  # type: ignore[arg-type]
                lambda: self.add(supersedes=self.some()), lambda: self.add(corrects=self.some()),
                lambda: self.add(derived_from=self.some()),
                lambda: store.confirm(self.some(), reason="seen"), lambda: store.confirm(self.some(), reason="seen"),
                self.unlink, self.undo, self.forget if forgets else self.revise, self.load,
            )
        )  # fmt: skip
        self.clock.move(hours=chance.choice((0, 1, 30)))
        try:
            if chance.random() < 0.2:
                with store.transaction():
                    verb()
                    verb()
                    if chance.random() < 0.2:
                        raise GraphStoreError("no")
            else:
                verb()
        except GraphStoreError:
            pass

    def unlink(self) -> None:
        links = [link for id in self.ids for link in self.store.links_from(id)]
        if links:
            self.store.unlink(self.chance.choice(links).id, reason="no")

    def undo(self) -> None:
        if self.chance.random() < 0.4:
            self.store.undo(self.store.changes()[-1], reason="no")

    def forget(self) -> None:
        if self.chance.random() < 0.2:
            if self.chance.random() < 0.5:
                self.store.erase(self.some(), reason="private")
            else:
                self.store.evict(ids=[self.some()])


def compared(store: GraphStore, chance: random.Random) -> Counter[str]:
    """How often the spans and the judge were asked for the same. Asserts that they agree where the spans say anything."""
    core = store._core
    index = core.index
    edges = {edge for column in (index.r_from, index.r_to, index.k_from, index.k_to) for edge in column}
    edges |= {edge + 1 for edge in edges} | {edge - 1 for edge in edges}
    found: Counter[str] = Counter()
    for ent in (ent for ent in sorted(index.rests) if ent < len(index.names)):
        for valid in chance.sample(sorted(edges), min(12, len(edges))):
            tx = index.last_tx if chance.random() < 0.7 else chance.choice(index.t_tx)
            if index.born[ent] > tx or index.standing(ent, valid, tx) != "stands":
                continue
            says = {YES: True, NO: False}.get(look(index, core.raw, ent).says(ent, valid, tx))
            resting = Resting(index, valid, tx, core.raw)
            judged = resting._is_shaken(ent)
            assert says is None or says == judged, (index.names[ent], valid, tx, says, judged)
            fell = [(one.fell_at, one.ent) for one in resting.shaky_entities()]
            assert fell == sorted(fell, key=lambda one: -one[0]), "the latest fall is not the first"
            assert judged == (ent in {one for _, one in fell})
            found["open" if says is None else "shaky" if says else "stands"] += tx == index.last_tx
    return found


@pytest.mark.parametrize(("hub", "enough"), [(256, 200), (3, 200), (256, 2)])
@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.rest) for seed in range(8, 25))]
)
def test_what_is_kept_is_what_the_judge_says(
    seed: int, hub: int, enough: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphstore.core.index.shaky_spans.HUB", hub)
    monkeypatch.setattr("graphstore.core.index.shaky_spans.ENOUGH", enough)
    clock, found = Clock("2026-02-01"), Counter[str]()
    chance = random.Random(seed)
    with graphstore.open(":memory:", clock=clock) as store:
        story = Story(store, clock, seed)
        for turn in range(120):
            story.turn()
            if turn % 5 == 4 or chance.random() < 0.2:
                found += compared(store, chance)
    assert found["shaky"] and found["stands"]


def in_columns(resting: Resting) -> Resting:
    """It, with all rows that hold there."""
    index, here = resting.index, (resting.valid, resting.tx)
    rows = holding(index.r_from, index.r_to, index.r_tx, index.r_end, *here).to_pylist()
    links = holding(index.k_from, index.k_to, index.k_tx, index.k_end, *here).to_pylist()
    resting.take({index.r_ent[row]: row for row in rows if index.r_ent[row] not in index.gone}, links)
    return resting


@pytest.mark.parametrize("seed", range(20))
def test_all_that_is_shaky_is_what_the_judge_says_of_each(seed: int) -> None:
    clock, chance, shaky = Clock("2026-02-01"), random.Random(seed), 0
    with graphstore.open(":memory:", clock=clock) as store:
        story, core = Story(store, clock, seed), store._core
        for turn in range(120):
            story.turn()
            if turn % 5 == 4:
                index = core.index
                edges = sorted({edge for column in (index.r_from, index.k_from) for edge in column})
                for valid in chance.sample(edges, min(6, len(edges))):
                    tx = index.last_tx if chance.random() < 0.5 else chance.choice(index.t_tx)
                    found = Resting(index, valid, tx, core.raw).shaken()
                    there = [
                        ent
                        for ent in index.rests
                        if ent < len(index.names)
                        and index.born[ent] <= tx
                        and index.standing(ent, valid, tx) == "stands"
                    ]
                    judged = {ent for ent in there if Resting(index, valid, tx, core.raw)._is_shaken(ent)}
                    assert judged == found == in_columns(Resting(index, valid, tx, core.raw)).shaken()
                    shaky += len(found)
    assert shaky


def test_a_load_leaves_no_spans_to_be_made(clock: Clock) -> None:
    def version(number: int, day: int) -> dict[str, object]:
        at = f"2026-01-0{day}T00:00:00Z"
        return {"node_id": f"n{number}", "content": {"day": day}, "valid_from": at, "tx_from": at}

    links = [
        {"source": f"n{number}", "kind": "derived_from", "target": f"n{number // 2}", "tx_from": "2026-01-01"}
        for number in range(1, 30)
    ]
    with graphstore.open(":memory:", clock=clock) as store:
        versions = [version(number, 1) for number in range(30)] + [version(number, 2) for number in (1, 2, 3)]
        store.bulk_load(versions=versions, links=links)
        index = store._core.index
        within = [ent for ent in index.rests if ent in index.tainted]
        assert {"n2", "n29"} <= {index.names[ent] for ent in within}
        assert all(index._shaken.says(ent, index.last_tx, index.last_tx) != NOT_KEPT for ent in within)
        assert store.node("n29").standing == "shaky"


def test_what_no_fall_ever_reached_needs_no_judge_at_an_older_tx(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        for id in ("cause", "effect", "beyond"):
            store.add_node("fact", {}, id=id, valid_from="2026-01-01")
        store.link("effect", "caused_by", "cause")
        store.link("beyond", "derived_from", "effect")
        before = store.changes()[-1].tx
        clock.move(days=1)
        store.revise("cause", {"repaired": True})
        store.end("cause", at="2026-12-31")
        core, tx = store._core, instant(before)
        for id in ("effect", "beyond"):
            assert look(core.index, core.raw, core.index.ids[id]).says(core.index.ids[id], tx, tx) == NO
        store.add_node("fact", {}, id="apart")
        look(core.index, core.raw, core.index.ids["apart"])
        store.retract("cause", reason="it was not so")
        assert store.node("effect").standing == store.node("beyond").standing == "shaky"
        assert store.as_of(tx=before).node("beyond").standing == "stands"


def test_a_write_drops_only_what_it_may_have_shaken(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        for id in ("cause", "effect", "ground", "roof", "sky"):
            store.add_node("fact", {"n": 0}, id=id, valid_from="2026-01-01")
        store.link("effect", "caused_by", "cause")
        store.link("roof", "derived_from", "ground")
        store.link("sky", "derived_from", "roof")
        for id in ("cause", "ground"):
            store.revise(id, {"n": 1})
        index, raw, ids = store._core.index, store._core.raw, store._core.index.ids
        index._shaken = None  # as of a store that has no rows of standings
        for id in ("effect", "sky"):
            look(index, raw, ids[id])
        store.revise("cause", {"n": 2})
        store.revise("ground", {"n": 2})
        shaken = look(index, raw, ids["cause"])
        says = {id: shaken.says(ids[id], index.last_tx, index.last_tx) for id in ("effect", "roof", "sky")}
    assert says == {"effect": NO, "roof": NOT_KEPT, "sky": NOT_KEPT}


def test_a_query_after_a_write_asks_the_judge_only_of_what_that_touched(clock: Clock) -> None:
    with graphstore.open(":memory:", clock=clock) as store:
        store._core.index._shaken = None  # as of a store that has no rows of standings
        for id in ("cause", "effect", "ground", "roof"):
            store.add_node("fact", {"n": 0}, id=id, valid_from="2026-01-01")
        store.link("effect", "derived_from", "cause")
        store.link("roof", "derived_from", "ground")
        for id in ("cause", "ground"):
            store.revise(id, {"n": 1})
        assert ["shaky", "shaky"] == [store.node(id).standing for id in ("effect", "roof")]
        store.confirm("roof", reason="it holds still")
        standings = {
            row["id"]: row["standing"]
            for row in store.query("MATCH (n:Node) RETURN n.id AS id, n.standing AS standing")
        }
        index, now = store._core.index, store._core.index.last_tx
        says = {id: index._shaken.says(index.ids[id], now, now) for id in ("effect", "roof")}
        assert {"effect": YES, "roof": NOT_KEPT} == says
        assert standings == {id: store.node(id).standing for id in standings}
        assert ("shaky", "stands") == (standings["effect"], standings["roof"])


@pytest.mark.parametrize("seed", range(3))
def test_who_reads_beside_a_writer_is_told_what_stays_true_of_that_coordinate(seed: int) -> None:
    clock, told = Clock("2026-02-01"), []
    done = threading.Event()
    with graphstore.open(":memory:", clock=clock) as store:
        story = Story(store, clock, seed)
        for _ in range(60):
            story.turn()

        def read(chance: random.Random) -> None:
            while not done.is_set():
                view = store.as_of(valid=f"2026-0{chance.choice((1, 2))}-{chance.randrange(1, 29):02}")
                for id in chance.sample(story.ids[:THINGS], 4):
                    told.append((view, id, view.inspect(id).node.standing))

        readers = [threading.Thread(target=read, args=(random.Random(seed + n),)) for n in range(2)]
        for reader in readers:
            reader.start()
        for _ in range(150):
            story.turn(forgets=False)
        done.set()
        for reader in readers:
            reader.join()
        core = store._core
        for view, id, standing in told:
            if standing in ("stands", "shaky"):
                valid, tx = view._coordinate()
                shaken = Resting(core.index, valid, tx, core.raw)._is_shaken(core.index.ids[id])
                assert (standing == "shaky") == shaken, (id, view)
    assert {"stands", "shaky"} <= {standing for _, _, standing in told}
