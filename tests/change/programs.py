"""Random worlds as programs: lists of steps that the oracle and a store both take, in any grouping into transactions.

Every step says its times, so that no answer depends on when it was told. A step that the oracle refuses or leaves open, each step
told in a transaction of its own, is in no program.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.change.oracle import END, Oracle, Refused, Undecided
from tests.support.seeds import seeds

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = [FIRST + timedelta(days=number) for number in range(9)]
TOLD = FIRST + timedelta(days=60)
"""When the first transaction is told: every time that is said lies before."""
NODES = tuple(f"node-{number}" for number in range(6))
EVENTS = ("evt-a", "evt-b")
THINGS = NODES + EVENTS
SEEDS = seeds(5, 20, 10_000)


class Step(NamedTuple):
    """One verb, its arguments, and (of `unlink`) an instant at which the link holds."""

    verb: str
    args: tuple[Any, ...]
    more: dict[str, Any]
    seen_at: datetime | None = None


class Hours:
    """A clock that every transaction moves on by an hour."""

    def __init__(self) -> None:
        self.now = TOLD

    def __call__(self) -> datetime:
        return self.now

    def move(self) -> None:
        self.now += timedelta(hours=1)


def draw(chance: random.Random, steps: int, oracle: Oracle, hours: Hours, with_names: str = "") -> list[Step]:
    """A program that goes on from where the oracle is, told to it step by step."""
    program: list[Step] = []
    for _ in range(steps * 3):
        if len(program) == steps:
            break
        step = _step(chance, oracle, with_names)
        if step is None:
            continue
        hours.move()
        try:
            tell(oracle, step)
        except (Refused, Undecided):
            continue
        program.append(step)
    return program


def _step(chance: random.Random, oracle: Oracle, prefix: str) -> Step | None:
    mine = tuple(prefix + id for id in THINGS)
    known = [id for id in mine if id in oracle.nodes or id in oracle.events]
    nodes = [id for id in known if id in oracle.nodes]
    new = [id for id in mine if id not in known]
    verbs = ["add"] * (4 if len(known) < 3 else 1) + [
        "link", "link", "link", "supersede", "revise", "revise", "amend", "end", "retract", "retract", "confirm", "confirm", "unlink",
    ]  # fmt: skip
    verb = chance.choice(verbs)
    span = period(chance)
    if verb == "add" and chance.random() < 0.6:
        span = {"valid_from": chance.choice(DAYS[:3]), "valid_to": END}
    content = {"colour": chance.choice(["red", "green", "blue"]), "size": chance.choice([1, 2])}
    if verb == "add" and new:
        id = chance.choice(new)
        if id.removeprefix(prefix) in EVENTS:
            return Step(
                "event", (id, chance.choice(["incident", "deploy"]), id), {"occurred_at": chance.choice(DAYS)}
            )
        named = chance.sample(known, min(len(known), chance.choice([0, 0, 1])))
        how = chance.choice(["supersedes", "corrects", "derived_from"])
        key = prefix + chance.choice(["slot", "place"]) if chance.random() < 0.5 else None
        more = {"key": key, **span, how: tuple(named)}
        return Step("add", (id, chance.choice(["fact", "note"]), content), more)
    if not nodes:
        return None
    id, other = chance.choice(nodes), chance.choice(known)
    if verb == "revise":
        more = {} if chance.random() < 0.4 else span
        return Step("revise", (id, content), {**more, "minor": chance.random() < 0.2})
    if verb == "amend":
        return Step("amend", (id, {"size": chance.choice([1, 2, 3])}), span)
    if verb == "end":
        return Step("end", (id,), {"at": chance.choice(DAYS)})
    if verb == "retract":
        node_only = span if other in nodes and chance.random() < 0.6 else {}
        return Step("retract", (other,), node_only)
    if verb == "confirm":
        return Step("confirm", (other,), {})
    if other == id:
        return None
    if verb == "supersede":
        return Step("supersede", (other,), {"by": id, "valid_from": chance.choice([None, *DAYS])})
    if verb == "link":
        kinds = ["derived_from", "derived_from", "supports", "caused_by", "part_of", "corrects"]
        ends, kind = chance.choice([(id, other), (other, id)]), chance.choice(kinds)
        by_itself = kind != "part_of" and chance.random() < 0.5  # a part is one from when it is told
        more = {"history": True} if kind != "part_of" and chance.random() < 0.3 else {}
        return Step("link", (ends[0], kind, ends[1]), more if by_itself else {**span, **more})
    links = [link for link in oracle._now_links() if {link["source"], link["target"]} <= set(mine)]
    if verb == "unlink" and links:
        link = chance.choice(links)
        more = {} if chance.random() < 0.5 else span
        return Step("unlink", (link["source"], link["kind"], link["target"]), more, link["valid_from"])
    return None


def period(chance: random.Random) -> dict[str, datetime]:
    start, stop = sorted(chance.sample(range(len(DAYS)), 2))
    return {"valid_from": DAYS[start], "valid_to": END if chance.random() < 0.4 else DAYS[stop]}


def tell(oracle: Oracle, step: Step) -> None:
    """One step, told to the oracle."""
    verb, args, more, _ = step
    if verb == "unlink":
        oracle.unlink(_same_link(oracle, step), **more)
    else:
        names = {"add": "add_node", "event": "record_event"}
        getattr(oracle, names.get(verb, verb))(*args, **more)


def _same_link(oracle: Oracle, step: Step) -> str:
    source, kind, target = step.args
    links = [
        one
        for one in oracle._alike(source, kind, target)
        if one["valid_from"] <= step.seen_at < one["valid_to"]
    ]
    if not links:
        raise Refused(LookupError)
    return str(links[0]["id"])


def tell_store(store: Any, step: Step) -> None:
    """One step, told to a store."""
    verb, args, more, seen_at = step
    if verb == "add":
        id, kind, content = args
        store.add_node(kind, content, id=id, **more)
    elif verb == "event":
        id, type, description = args
        store.record_event(type, description, id=id, **more)
    elif verb == "retract":
        store.retract(*args, reason="it was wrong", **more)
    elif verb == "confirm":
        store.confirm(*args, reason="still so")
    elif verb == "unlink":
        source, kind, target = args
        links = store.as_of(valid=seen_at).links_from(source, kinds=(kind,))
        store.unlink(next(link.id for link in links if link.target == target), **more)
    else:
        if not more.get("minor", True):
            more = {name: value for name, value in more.items() if name != "minor"}
        getattr(store, verb)(*args, **more)


def groupings(chance: random.Random, steps: int, count: int) -> list[list[int]]:
    """Ways to put so many steps into transactions: the sizes, in order. All at once and each by itself are among them."""
    found = [[1] * steps, [steps]]
    while len(found) < count:
        sizes, left = [], steps
        while left:
            sizes.append(min(left, chance.randint(1, 5)))
            left -= sizes[-1]
        found.append(sizes)
    return found


def grouped(program: list[Step], sizes: Iterable[int]) -> Iterable[list[Step]]:
    at = 0
    for size in sizes:
        yield program[at : at + size]
        at += size


def vanishes(program: list[Step], sizes: list[int]) -> bool:
    """Whether in some group a thing comes and goes, so that it was never known there while each by itself it was."""
    hours = Hours()
    oracle = Oracle(hours)
    try:
        for group in grouped(program, sizes):
            hours.move()
            before = {*oracle.nodes, *oracle.events}
            with oracle.transaction():
                for step in group:
                    tell(oracle, step)
                born = {*oracle.nodes, *oracle.events} - before
            if not born <= {*oracle.nodes, *oracle.events}:
                return True
    except Undecided:
        return True
    return False


def instants() -> list[datetime]:
    """One inside each cell of valid time, and the first of each."""
    return [DAYS[0] - timedelta(hours=6), *DAYS, *(at + timedelta(hours=6) for at in DAYS[::3]), TOLD]
