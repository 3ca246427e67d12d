"""Random histories of links: the store and the oracle refuse the same, believe the same periods under as many ids, and let the same things stand."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore
from tests.change.oracle import END, Oracle, Refused, Undecided, believed
from tests.change.programs import DAYS, Hours, instants, period
from tests.support.seeds import seeds

pytestmark = pytest.mark.in_process("the oracle is asked after each step")

NODES = ("node-0", "node-1", "node-2")
EVENTS = ("evt-a", "evt-b")
KINDS = [
    "derived_from",
    "supports",
    "caused_by",
    "caused_by",
    "part_of",
    "blocks",
    "related_to",
    "contradicts",
    "corrects",
    "supersedes",
]
TURNED = ["causes", "source_of", "relates_to", "possibly_related_to", "possibly_part_of", "superseded_by"]
STEPS = 40
Step = tuple[str, tuple[Any, ...], dict[str, Any]]


class Both:
    """A store and the oracle, told the same."""

    def __init__(self, seed: int) -> None:
        self.chance, self.hours = random.Random(seed), Hours()
        self.oracle = Oracle(self.hours)
        self.store: GraphStore = graphstore.open(":memory:", clock=self.hours)
        self.told: list[Step] = []

    def tell(self, step: Step) -> None:
        """One step; where the oracle leaves it open, it is not told."""
        self.hours.move()
        verb, args, more = step
        try:
            if verb == "unlink_id":
                self.oracle.unlink(self._alike(args)["id"], **more)
            else:
                getattr(self.oracle, {"unlink": "unlink_said"}.get(verb, verb))(*args, **more)
        except Undecided:
            return
        except Refused as refused:
            before = self.store.stats()
            with pytest.raises(refused.classes):
                self._in_store(step)
            assert before == self.store.stats()
            return
        self.told.append(step)
        self._in_store(step)
        self.agree()

    def _alike(self, place: tuple[Any, ...]) -> dict[str, Any]:
        """The link row of the oracle with these ends that begins then."""
        return next(row for row in self.oracle._alike(*place[:3]) if row["valid_from"] == place[3])

    def _in_store(self, step: Step) -> None:
        verb, args, more = step
        done: dict[str, Callable[[], Any]] = {
            "add_node": lambda: self.store.add_node(args[1], args[2], id=args[0], **more),
            "record_event": lambda: self.store.record_event(args[1], args[2], id=args[0], **more),
            "retract": lambda: self.store.retract(*args, reason="wrong", **more),
            "unlink_id": lambda: self.store.unlink(self._id_in_store(args), **more),
            "unlink": lambda: self.store.unlink(source=args[0], kind=args[1], target=args[2], **more),
        }
        done.get(verb, lambda: getattr(self.store, verb)(*args, **more))()

    def _id_in_store(self, place: tuple[Any, ...]) -> str:
        rows = self.store.link_history(*place[:3])
        return next(row.id for row in rows if row.valid_from == place[3])

    # ------------------------------------------------------------------ what is told

    def step(self) -> Step | None:
        known = [*self.oracle.nodes, *self.oracle.events]
        new = [id for id in (*NODES, *EVENTS) if id not in known]
        verb = self.chance.choice(
            ["link"] * 8 + ["supersede", "supersede", "unlink", "unlink", "retract", "end", "revise"]
        )
        if new and (len(known) < 3 or self.chance.random() < 0.1):
            return self._new(self.chance.choice(new), known)
        one, other = self.chance.choice(known), self.chance.choice(known)
        span = period(self.chance) if self.chance.random() < 0.6 else {}
        if verb == "link":
            return (
                "link",
                (one, self.chance.choice(KINDS * 2 + TURNED), other),
                {**span, **self._attributes()},
            )
        if verb == "supersede":
            more = {"by": one, "valid_from": self.chance.choice([None, None, *DAYS[:5]])}
            return verb, (other,), {**more, "reason": self.chance.choice([None, None, "moved"])}
        links = self.oracle._now_links()
        if verb == "unlink" and links:
            link = self.chance.choice(links)
            if self.chance.random() < 0.5:
                return "unlink_id", (link["source"], link["kind"], link["target"], link["valid_from"]), span
            return verb, (link["source"], link["kind"], link["target"]), span
        if verb == "retract":
            return verb, (other,), {} if other in EVENTS else span
        if other in EVENTS:
            return None
        if verb == "end":
            return verb, (other,), {"at": self.chance.choice(DAYS)}
        return "revise", (other, {"says": self.chance.choice("xyz")}), span

    def _new(self, id: str, known: list[str]) -> Step:
        if id in EVENTS:
            return "record_event", (id, "incident", id), {"occurred_at": self.chance.choice(DAYS)}
        named = tuple(self.chance.sample(known, min(len(known), self.chance.choice([0, 0, 1, 2]))))
        how = self.chance.choice(["supersedes", "corrects", "derived_from"])
        return "add_node", (id, "fact", {"says": id}), {**period(self.chance), "valid_to": END, how: named}

    def _attributes(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.chance.random() < 0.2:
            more["reason"] = "because"
        if self.chance.random() < 0.2:
            more["strength"] = self.chance.choice([2, 5])
        if self.chance.random() < 0.2:
            more["confidence"] = "inferred"
        return more

    # ------------------------------------------------------------------ what is believed

    def agree(self) -> None:
        now = self.oracle.now
        links = [link for link in self.oracle.links if believed(link, now)]
        for source, kind, target in {(link["source"], link["kind"], link["target"]) for link in links}:
            theirs = self.oracle.link_history(source, kind, target, now)
            mine = [dict(link) for link in self.store.link_history(source, kind, target)]
            assert _rows(theirs) == _rows(mine), self.told
            assert _by_id(theirs) == _by_id(mine), self.told
        rows = self.store._core.rows.database.rows("SELECT number FROM link_period WHERE closed_by IS NULL")
        assert len(links) == len(rows), self.told
        for v in instants():
            view = self.store.as_of(valid=v)
            for id in (*self.oracle.nodes, *self.oracle.events):
                if self.oracle.known(id, now):
                    assert self.oracle.standing(id, v, now) == view.inspect(id).node.standing, (
                        self.told,
                        id,
                        v,
                    )


def _rows(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("valid_from", "valid_to", "reason", "strength", "confidence", "created_by")
    return sorted(tuple(map(str, (row[name] for name in names))) for row in rows)


def _by_id(rows: list[dict[str, Any]]) -> set[frozenset[datetime]]:
    """Which periods are under one id."""
    found = defaultdict(set)
    for row in rows:
        found[row["id"]].add(row["valid_from"])
    return {frozenset(starts) for starts in found.values()}


@pytest.mark.parametrize("seed", seeds(10, 30, 1_000))
def test_links_are_as_the_oracle_says(seed: int) -> None:
    both = Both(seed)
    with both.store:
        for _ in range(STEPS):
            if step := both.step():
                both.tell(step)
        assert both.store.verify().ok
