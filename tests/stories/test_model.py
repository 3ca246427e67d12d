"""Random histories against the oracle: every verb, every read, both axes; then the same through the graph tables.

Instants come from a few days, so that periods touch, overlap and contain each other often. The oracle decides first: what it
calls undecided is not done at all, what it refuses the store must refuse with the same kind of error.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import graphstore
from graphstore.errors import GraphStoreError, NotFoundError
from tests.change.oracle import (
    END,
    RESTING,
    START,
    SYMMETRIC,
    TICK,
    UPRIGHT,
    Oracle,
    Refused,
    Undecided,
    turned,
)

pytestmark = pytest.mark.rest

DAY = timedelta(days=1)
DAYS = [datetime(2026, 1, 1, tzinfo=UTC) + k * DAY for k in range(8)]
NOON = datetime(2026, 1, 4, 12, tzinfo=UTC)

NODES = ["alpha0", "bravo0", "charly", "delta0", "echo00", "foxtrt", "golf00"]
EVENTS = ["event1", "event2", "event3"]
THINGS = NODES + EVENTS
JOINING = [
    "derived_from",
    "derived_from",
    "caused_by",
    "part_of",
    "supports",
    "resolved_by",
    "contradicts",
    "transition",
]
KINDS = [
    "supersedes", "superseded_by", "caused_by", "causes", "possibly_caused_by", "contradicts", "relates_to",
    "related_to", "possibly_fixed_by", "resolves", "continuation", "continues", "corrects", "derived_from", "derived_from",
    "source_of", "supports", "part_of", "no_such",
]  # fmt: skip

# the first ones come up most: what happens often to one thing finds more than what happens once to many
node = st.sampled_from(NODES[:1] * 3 + NODES[:2] * 2 + NODES)
event = st.sampled_from(EVENTS)
TYPES = ["error", "error", "resolution", "fix", "deploy"]
report = st.sampled_from(["it broke", "it broke", "it failed"])
thing = st.sampled_from(NODES[:1] * 5 + NODES[:2] * 3 + NODES + EVENTS)
day = st.sampled_from(DAYS)
maybe_day = st.none() | day
word = st.sampled_from(["red", "green", "blue"])
tags = st.sampled_from([(), ("hot",), ("hot", "new")])
reason = st.sampled_from([None, "told so", "'); MATCH (n) DETACH DELETE n //"])
few = st.lists(thing, max_size=2, unique=True).map(tuple)
number = st.integers(0, 1000)


def in_order(pair: tuple[datetime | None, datetime | None], upright: bool) -> dict[str, datetime | None]:
    start, stop = pair
    if start and stop and upright:
        start, stop = min(start, stop), max(start, stop)
    return {"valid_from": start, "valid_to": stop}


# mostly the right way round; an empty or inverted one now and then
ends = st.tuples(maybe_day, maybe_day)
upright = st.builds(in_order, ends, st.just(True))
span = st.builds(in_order, ends, st.sampled_from([True] * 9 + [False]))

NODE_FIELDS = (
    "id", "kind", "key", "scope", "number", "content", "tags", "trigger", "valid_from", "valid_to", "tx_from", "tx_to",
)  # fmt: skip
EVENT_FIELDS = (
    "id", "type", "description", "occurred_at", "first_seen", "last_seen", "count", "status", "standing", "tx_from", "tx_to",
)  # fmt: skip
LINK_FIELDS = (
    "id", "source", "kind", "target", "reason", "strength", "confidence", "source_standing", "target_standing",
    "valid_from", "valid_to", "tx_from", "tx_to",
)  # fmt: skip

LINK_PERIODS = ("id", "source", "kind", "target", "reason", "valid_from", "valid_to", "tx_from", "tx_to")

# how many histories, of how many steps; no profiles of hypothesis, or every other test that draws would draw as many
SIZES = {"ci": (150, 50), "fuzz": (5_000, 80), "quick": (50, 25)}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
HOW_MANY, HOW_LONG = SIZES.get(PROFILE, SIZES["ci"])
OURS = settings(
    max_examples=HOW_MANY,
    stateful_step_count=HOW_LONG,
    deadline=None,
    derandomize=PROFILE == "ci",
    print_blob=True,
    database=None if PROFILE == "ci" else settings.default.database,
    suppress_health_check=list(HealthCheck),
)
FEWER = settings(OURS, max_examples=OURS.max_examples // 8, stateful_step_count=25)


class Boom(Exception):
    """What goes wrong in the middle of a block."""


def plain(value: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in fields}


def picked(row: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in fields}


def asked(read: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The answer, or the error's class where there is none."""
    try:
        return read(*args, **kwargs)
    except GraphStoreError as error:
        return type(error)


def everything(view: Any) -> dict[tuple[Any, ...], Any]:
    """Every read of a view, by name and argument."""
    out: dict[tuple[Any, ...], Any] = {
        ("nodes",): view.nodes(),
        ("nodes", "kind"): view.nodes(kind="fact"),
        ("nodes", "key"): view.nodes(key="slot"),
        ("nodes", "tag"): view.nodes(tag="hot"),
        ("shaky",): view.shaky(),
        ("events",): view.events(),
        ("events", "between"): view.events(since=DAYS[2], until=DAYS[5]),
        ("contradictions",): view.contradictions(candidates=False),
        ("contradictions", "settled"): view.contradictions(settled=True, candidates=False),
    }
    for id in THINGS:
        for read in ("node", "event", "history", "versions", "links_from", "backlinks_to", "inspect"):
            out[read, id] = asked(getattr(view, read), id)
        for read in ("supersedes", "what_superseded"):
            out[read, id] = asked(getattr(view, read), id)
        out["links_from", id, "causes"] = asked(view.links_from, id, kinds="causes")
        out["backlinks_to", id, "relates"] = asked(view.backlinks_to, id, kinds="relates_to")
        out["links_from", id, "caused_by"] = asked(view.links_from, id, kinds=("caused_by",))
        for version in (1, 2, 3):
            for read in ("node", "what_superseded"):
                out[read, id, version] = asked(getattr(view, read), f"{id}-v{version}")
        for depth in (1, 5):
            out["causes", id, depth] = asked(view.causes, id, depth=depth)
            out["effects", id, depth] = asked(view.effects, id, depth=depth)
    return out


class Histories(RuleBasedStateMachine):
    """The store on disk and the oracle, side by side."""

    driver = "kuzu"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="graphstore-model-"))
        self.path = self.folder / "memory.gs"
        self.at = NOON
        self.oracle = Oracle(self.clock)
        self.store = self.open()
        self.block: tuple[AbstractContextManager[Any], AbstractContextManager[Any]] | None = None
        self.remembered: list[tuple[datetime, datetime, Any]] = []
        self.link_ids: list[str] = []
        self.names: dict[str, str] = {}
        self.since = START  # what was told before belongs to another line
        self.follower: Any = None
        self.follower_seen = NOON - DAY

    def clock(self) -> datetime:
        return self.at

    def open(self, **how: Any) -> Any:
        return graphstore.open(self.path, clock=self.clock, driver=self.driver, **how)

    # ------------------------------------------------------------------ doing the same twice

    def both(self, theirs: Callable[[], Any], ours: Callable[[], Any]) -> tuple[Any, Any] | None:
        try:
            expected, refusal = theirs(), None
        except Undecided:
            return None
        except Refused as refused:
            expected, refusal = None, refused
        try:
            got = ours()
        except GraphStoreError as error:
            assert refusal, f"the store refused what the documents allow: {error!r}"
            assert isinstance(error, refusal.classes), f"{error!r} should be one of: {refusal}"
            return None
        assert refusal is None, f"the store allowed what must be refused ({refusal}): {got!r}"
        self.learn_names()
        return expected, got

    def learn_names(self) -> None:
        """Learn the ids of the links that the store made, said or in passing."""
        made = [link for link in self.oracle.links if link["id"].startswith("?") and link["tx_to"] == END]
        for link in made:
            if link["id"] in self.names:
                continue
            view = self.store.as_of(valid=link["valid_from"])
            self.oracle.handed = max(self.oracle.handed, self.oracle.now)
            ids = [
                one.id for one in view.links_from(link["source"], kinds=(link["kind"],))
                if one.target == link["target"]
            ]  # fmt: skip
            sentence = f"{link['source']} {link['kind']} {link['target']}"
            assert len(ids) == 1, f"{sentence} should have been made once, and not {len(ids)} times"
            self.names[link["id"]] = ids[0]
            self.link_ids.append(ids[0])
        for one in {link["id"] for link in made}:
            self.oracle.name_link(one, self.names[one])

    def is_named(self, made: str, id: str) -> None:
        """The link that a verb answers is the one the oracle expects: a new one, or the one that said so before."""
        assert self.names.get(made, made) == id

    # ------------------------------------------------------------------ time, blocks, files

    @rule(step=st.sampled_from([TICK, timedelta(hours=5), DAY, -DAY]))
    def time_passes(self, step: timedelta) -> None:
        self.at += step

    @precondition(lambda self: self.block is None)
    @rule()
    def block_begins(self) -> None:
        cms = self.oracle.transaction("someone"), self.store.transaction(author="someone", reason="a block")
        for cm in cms:
            cm.__enter__()
        self.block = cms

    @precondition(lambda self: self.block is not None)
    @rule(fails=st.booleans())
    def block_ends(self, fails: bool) -> None:
        assert self.block is not None
        theirs, ours = self.block
        self.block = None
        boom = (Boom, Boom(), None) if fails else (None, None, None)
        for cm in (theirs, ours):
            try:
                assert not cm.__exit__(*boom)  # type: ignore[arg-type]
            except Boom:
                assert fails

    @precondition(lambda self: self.block is None)
    @rule(lose_index=st.booleans())
    def closed_and_opened(self, lose_index: bool) -> None:
        self.store.close()
        if lose_index:
            for saved in self.path.glob("index*"):
                shutil.rmtree(saved) if saved.is_dir() else saved.unlink()
        self.forget_what_the_clock_took_back()
        self.store = self.open()

    def forget_what_the_clock_took_back(self) -> None:
        """A store cannot know, after a restart, of views handed out at instants its clock has not reached again."""
        self.remembered = [known for known in self.remembered if known[1] <= self.oracle.last]
        self.oracle.handed = START

    # ------------------------------------------------------------------ verbs

    @rule(
        id=node, colour=word, key=st.sampled_from([None, "slot", "slot"]), tags=tags, span=span, supersedes=few,
        corrects=few, reason=reason,
    )  # fmt: skip
    def add_node(
        self,
        id: str,
        colour: str,
        span: Any,
        supersedes: tuple[str, ...],
        corrects: tuple[str, ...],
        **more: Any,
    ) -> None:
        corrects = tuple(old for old in corrects if old != id)
        supersedes = tuple(old for old in supersedes if old != id)
        more |= {"supersedes": supersedes, "corrects": corrects, **span}
        content = {"colour": colour}
        done = self.both(
            lambda: self.oracle.add_node(id, "fact", content, **more),
            lambda: self.store.add_node("fact", content, id=id, **more),
        )
        if done:
            assert done[1].id == id

    @initialize(spans=st.lists(upright, min_size=3, max_size=3), occurred_at=st.lists(day, max_size=2))
    def first_things(self, spans: list[Any], occurred_at: list[datetime]) -> None:
        for id, key, during in zip(NODES, ("slot", None, None), spans, strict=False):
            more = {"key": key, **during}
            self.both(
                lambda id=id, more=more: self.oracle.add_node(id, "fact", {"colour": "white"}, **more),
                lambda id=id, more=more: self.store.add_node("fact", {"colour": "white"}, id=id, **more),
            )
        for id, at in zip(EVENTS, occurred_at, strict=False):
            self.record_event(id, "error", "it broke", occurred_at=at)

    @precondition(lambda self: len(self.oracle.nodes) < len(NODES))
    @rule(colour=word, span=upright, supersedes=few, reason=reason)
    def fill_the_slot(self, colour: str, span: Any, **more: Any) -> None:
        """A new value under an id of its own."""
        id = next(id for id in NODES if id not in self.oracle.nodes)
        self.add_node(id=id, colour=colour, span=span, corrects=(), key="slot", **more)

    @rule(one=number, two=number, kind=st.sampled_from(JOINING), valid_from=maybe_day)
    def join(self, one: int, two: int, kind: str, valid_from: datetime | None) -> None:
        """A link between two things that are known."""
        known = [id for id in THINGS if id in self.oracle.nodes or id in self.oracle.events]
        if not known:  # they may all have had an empty period
            return
        source, target = known[one % len(known)], known[two % len(known)]
        if source != target:
            during = {"valid_from": valid_from, "valid_to": None}
            self.link(source, kind, target, during, reason=None, strength=None, confidence="explicit")

    @precondition(lambda self: self.oracle.events)
    @rule(which=number, by=number, at=number)
    def resolve(self, which: int, by: int, at: int) -> None:
        """A resolution at an instant at which the event itself happened."""
        events = list(self.oracle.events.values())
        broken, known = events[which % len(events)], [*self.oracle.nodes, *self.oracle.events]
        instants = [one for one, _ in self.oracle.told(broken["id"])] or DAYS
        instant = instants[at % len(instants)]
        target = known[by % len(known)]
        if target != broken["id"]:
            during = {"valid_from": instant, "valid_to": None}
            self.link(
                broken["id"], "resolved_by", target, during, reason=None, strength=None, confidence="explicit"
            )

    @precondition(lambda self: self.block is None)
    @rule(
        ground=thing,
        onto=thing,
        falls=st.booleans(),
        look=st.sampled_from(["confirm", "revise"]),
        looks_first=st.booleans(),
    )
    def fall_and_be_looked_at(
        self, ground: str, onto: str, falls: bool, look: str, looks_first: bool
    ) -> None:
        """What something rests on falls in the transaction in which somebody looks at it."""
        self.join_to_ground(onto, ground)
        self.block_begins()
        acts = [
            lambda: self.retract(ground, {}, True) if falls else self.supersede([ground], onto, reason=None, valid_from=None),
            lambda: self.confirm(onto) if look == "confirm" else self.revise(onto, "green", {}),
        ]  # fmt: skip
        for act in reversed(acts) if looks_first else acts:
            act()
        self.block_ends(fails=False)

    @precondition(lambda self: self.block is None)
    @rule(id=node, by=node, cut=day, parts=st.lists(upright, min_size=1, max_size=2), look=number)
    def taken_in_turn(
        self, id: str, by: str, cut: datetime, parts: list[dict[str, datetime | None]], look: int
    ) -> None:
        """What one verb of a block took is not taken again by the next; whose it is shows after the block."""
        self.block_begins()
        self.supersede([id], by, reason=None, valid_from=cut)
        for part in parts:
            self.retract(id, part, False)
        self.block_ends(fails=False)
        self.look(look, -1, 4)

    def join_to_ground(self, onto: str, ground: str) -> None:
        during = {"valid_from": DAYS[0], "valid_to": None}
        self.link(onto, "derived_from", ground, during, reason=None, strength=None, confidence="explicit")

    @rule(colour=word, span=span)
    def say_again(self, colour: str, span: Any) -> None:
        """The same value of the slot again; said without an id."""
        done = self.both(
            lambda: self.oracle.say_again({"colour": colour}, key="slot", **span),
            lambda: self.store.add_node("fact", {"colour": colour}, key="slot", **span),
        )
        if done:
            assert done[0] == done[1].id

    @rule(id=thing)
    def confirm(self, id: str) -> None:
        self.both(lambda: self.oracle.confirm(id), lambda: self.store.confirm(id, reason="still so"))

    @rule(id=thing, colour=word, span=span)
    def revise(self, id: str, colour: str, span: Any) -> None:
        done = self.both(
            lambda: self.oracle.revise(id, {"colour": colour}, **span),
            lambda: self.store.revise(id, {"colour": colour}, **span),
        )
        if done and done[0] is not None:  # None: nothing was written
            assert done[0] == done[1].number

    @rule(
        id=node,
        patch=st.dictionaries(st.sampled_from(["colour", "size"]), word, min_size=1),
        span=span,
        whole=st.booleans(),
    )
    def amend(self, id: str, patch: dict[str, str], span: Any, whole: bool) -> None:
        more = {} if whole else span
        done = self.both(
            lambda: self.oracle.amend(id, patch, **more), lambda: self.store.amend(id, patch, **more)
        )
        if done and done[0]:
            assert done[0] == sorted({row.number for row in self.store.history(id)} & set(done[0]))

    @rule(
        verb=st.sampled_from(["revise", "end", "retract", "confirm"]),
        id=thing,
        offset=st.sampled_from([0, 0, 1]),
        at=day,
    )
    def when_it_is_still(self, verb: str, id: str, offset: int, at: datetime) -> None:
        """A write that is meant for one version: refused where another one stands."""
        number = (self.oracle._number_now(id) if id in self.oracle.nodes else None) or 1
        given = {
            "revise": [{"colour": "blue"}], "end": [], "retract": [], "confirm": [],
        }[verb]  # fmt: skip
        more = {"if_number": number + offset, **({"at": at} if verb == "end" else {})}
        why = {"reason": "looked at"} if verb in ("retract", "confirm") else {}
        self.both(
            lambda: getattr(self.oracle, verb)(id, *given, **more),
            lambda: getattr(self.store, verb)(id, *given, **more, **why),
        )

    @rule(id=node, colour=word, span=span, minor=st.booleans(), tags=tags)
    def revise_in_passing(self, id: str, colour: str, span: Any, **more: Any) -> None:
        self.both(
            lambda: self.oracle.revise(id, {"colour": colour}, **span, **more),
            lambda: self.store.revise(id, {"colour": colour}, **span, **more),
        )

    @precondition(lambda self: self.block is None)
    @rule(back=st.sampled_from([0, 0, 0, 1, 2, 5]))
    def undo(self, back: int) -> None:
        """The last transaction. Of older ones with occurrences of events the oracle and the store do not always say the same: `tests/write` has those."""
        _, txs = self.oracle.instants()
        mine = [tx for tx in txs if tx > self.since]
        if back == 0 and mine:
            tx = mine[-1]
            self.both(lambda: self.oracle.undo(tx), lambda: self.store.undo(tx, reason="a slip"))

    @rule(
        old=st.lists(thing, min_size=1, max_size=2, unique=True),
        by=thing,
        reason=reason,
        valid_from=maybe_day,
    )
    def supersede(self, old: list[str], by: str, **more: Any) -> None:
        done = self.both(
            lambda: self.oracle.supersede(*old, by=by, **more),
            lambda: self.store.supersede(*old, by=by, **more),
        )
        for made, link in zip(*done, strict=True) if done else ():
            self.is_named(made, link.id)

    @rule(id=thing, at=maybe_day)
    def end(self, id: str, at: datetime | None) -> None:
        self.both(lambda: self.oracle.end(id, at=at), lambda: self.store.end(id, at=at))

    @rule(id=thing, span=span, whole=st.booleans())
    def retract(self, id: str, span: Any, whole: bool) -> None:
        more = {} if whole else span
        self.both(
            lambda: self.oracle.retract(id, **more), lambda: self.store.retract(id, reason="wrong", **more)
        )

    @rule(
        source=thing, kind=st.sampled_from(KINDS), other=thing, reason=reason,
        strength=st.sampled_from([None, None, None, 3, 9]), span=span,
        confidence=st.sampled_from(["explicit", "explicit", "inferred"]),
    )  # fmt: skip
    def link(self, source: str, kind: str, other: str, span: Any, **more: Any) -> None:
        more |= span
        done = self.both(
            lambda: self.oracle.link(source, kind, other, **more),
            lambda: self.store.link(source, kind, other, **more),
        )
        if done:
            self.is_named(done[0], done[1].id)

    @precondition(lambda self: self.link_ids)
    @rule(which=number, span=span, whole=st.booleans())
    def unlink(self, which: int, span: Any, whole: bool) -> None:
        id = self.link_ids[which % len(self.link_ids)]
        more = {} if whole else span
        self.both(lambda: self.oracle.unlink(id, **more), lambda: self.store.unlink(id, **more))

    @precondition(lambda self: self.link_ids)
    @rule(which=number, turned_round=st.booleans(), span=span, whole=st.booleans())
    def unlink_by_sentence(self, which: int, turned_round: bool, span: Any, whole: bool) -> None:
        """Every link that says so, by what it says."""
        id = self.link_ids[which % len(self.link_ids)]
        said = next((link for link in self.oracle.links if link["id"] == id), None)
        if said is None:
            return
        ends = (said["target"], said["source"]) if turned_round else (said["source"], said["target"])
        more = {"source": ends[0], "kind": said["kind"], "target": ends[1], **({} if whole else span)}
        self.both(lambda: self.oracle.unlink_said(**more), lambda: self.store.unlink(**more))

    @rule(
        id=event,
        type=st.sampled_from(TYPES),
        description=report,
        occurred_at=maybe_day,
        related_to=st.none() | thing,
    )
    def record_event(self, id: str, type: str, description: str, **more: Any) -> None:
        done = self.both(
            lambda: self.oracle.record_event(id, type, description, **more),
            lambda: self.store.record_event(type, description, id=id, **more),
        )
        if done:
            assert done[1].is_new

    @precondition(lambda self: self.oracle.events)
    @rule(
        which=number, type=st.none() | st.sampled_from(TYPES), occurred_at=maybe_day,
        related_to=st.none() | event | thing,
    )  # fmt: skip
    def happens_again(self, which: int, type: str | None, **more: Any) -> None:
        """Mostly what happened before; said without its id."""
        before = list(self.oracle.events.values())[which % len(self.oracle.events)]
        type, description = type or before["type"], before["description"]
        done = self.both(
            lambda: self.oracle.happens_again(type, description, **more),
            lambda: self.store.record_event(type, description, **more),
        )
        if done:
            (id, _), recorded = done
            now = self.oracle.now
            known = self.oracle.event(id, now, now)
            assert (id, False) == (recorded.event.id, recorded.is_new)
            assert known is None or known["count"] == recorded.event.count

    # ------------------------------------------------------------------ reads

    def coordinate(self, v: int, t: int, jitter: int) -> tuple[datetime, datetime]:
        """A point at, just before or just after a boundary of either axis."""
        valids, txs = self.oracle.instants()
        valids, txs = [*valids, *DAYS, self.at], [*txs, self.oracle.now]
        valid = valids[v % len(valids)] + (jitter % 3 - 1) * TICK
        tx = txs[t % len(txs)] + (jitter // 3 % 3 - 1) * TICK
        return valid, min(tx, self.oracle.now)

    @precondition(lambda self: self.block is None)
    @rule(v=number, t=number, jitter=st.integers(0, 8))
    def look(self, v: int, t: int, jitter: int) -> None:
        valid, tx = self.coordinate(v, t, jitter)
        view = self.store.as_of(valid=valid, tx=tx)
        self.oracle.handed = max(self.oracle.handed, tx)
        answers = everything(view)
        self.compare({**answers, ("links",): self.links_of(view)}, valid, tx)
        self.remembered.append((valid, tx, answers))

    def links_of(self, view: Any) -> dict[tuple[str, ...], Any]:
        """What a view says of the history of each link that is known now."""
        found = {}
        for id in self.link_ids[-8:]:
            for read in ("history", "versions"):
                found[read, id] = asked(getattr(view, read), id)
            said = next((link for link in self.oracle.links if link["id"] == id), None)
            if said:
                sentence = said["source"], said["kind"], said["target"]
                found["said", *sentence] = asked(view.link_history, *sentence)
        return found

    @precondition(lambda self: self.block is not None)
    @rule()
    def look_inside_the_block(self) -> None:
        """The store's reads see the block's own writes, at its instant or at the clock."""
        tx = self.oracle.now
        for id in NODES:
            expected = self.oracle.history(id, tx)
            got = asked(self.store.history, id)
            if id in self.oracle.nodes:
                assert [picked(row, NODE_FIELDS) for row in expected] == [
                    plain(row, NODE_FIELDS) for row in got
                ]
            else:
                assert got is NotFoundError

    @precondition(lambda self: self.remembered and self.block is None)
    @rule(which=number)
    def ask_again(self, which: int) -> None:
        valid, tx, answers = self.remembered[which % len(self.remembered)]
        if tx <= max(self.at, self.oracle.last):
            assert answers == everything(self.store.as_of(valid=valid, tx=tx))

    @precondition(lambda self: self.block is None)
    @rule(one=st.tuples(number, number), two=st.tuples(number, number), jitter=st.integers(0, 8))
    def look_at_two(self, one: tuple[int, int], two: tuple[int, int], jitter: int) -> None:
        a, b = self.coordinate(*one, 4), self.coordinate(*two, jitter)
        found = self.store.as_of(valid=a[0], tx=a[1]).compare(self.store.as_of(valid=b[0], tx=b[1]))
        self.oracle.handed = max(self.oracle.handed, a[1], b[1])
        got = tuple({item.id for item in part} for part in (found.added, found.removed, found.changed))
        assert self.oracle.compare(a, b) == got
        events = tuple({event.id for event in part} for part in (found.events_added, found.events_removed))
        assert self.oracle.compare_events(a, b) == events

    @precondition(lambda self: self.block is None)
    @rule(v=number, t=number, jitter=st.integers(0, 8))
    def look_beside(self, v: int, t: int, jitter: int) -> None:
        """A reader that follows sees what was committed before its last refresh."""
        if self.follower is None:
            self.follower = self.open(read_only=True)
        self.follower.refresh()
        valid, tx = self.coordinate(v, t, jitter)
        if tx <= self.oracle.last:
            view = self.follower.as_of(valid=valid, tx=tx)
            self.compare({**everything(view), ("links",): self.links_of(view)}, valid, tx)

    def compare(self, got: dict[tuple[Any, ...], Any], v: datetime, t: datetime) -> None:
        """Every answer is what the oracle says at (v, t)."""
        where = f"at valid {v}, tx {t}"
        o = self.oracle
        filters: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
            (("nodes",), {}),
            (("nodes", "kind"), {"kind": "fact"}),
            (("nodes", "key"), {"key": "slot"}),
            (("nodes", "tag"), {"tag": "hot"}),
        )
        for name, chosen in filters:
            fields = (*NODE_FIELDS, "standing")
            expected = [picked(row, fields) for row in o.nodes_at(v, t, **chosen)]
            assert expected == by_id(got[name], fields), (name, where)
        assert [picked(row, EVENT_FIELDS) for row in o.events_at(v, t)] == by_id(
            got["events",], EVENT_FIELDS
        ), where
        between = o.events_between(DAYS[2], DAYS[5], v, t)
        assert between == {event.id for event in got["events", "between"]}, where
        assert o.contradictions(v, t) == {found.link.id for found in got["contradictions",]}, where
        settled = {found.link.id for found in got["contradictions", "settled"]}
        assert o.contradictions(v, t, settled=True) == settled, where
        self.compare_shaky(got["shaky",], v, t, where)
        self.compare_links(got["links",], t, where)
        for id in THINGS:
            if o.known(id, t):
                self.compare_thing(got, id, v, t, f"{id} {where}")
            else:
                for key, answer in got.items():
                    if id in key:
                        assert answer is NotFoundError, (key, where)

    def compare_thing(
        self, got: dict[tuple[Any, ...], Any], id: str, v: datetime, t: datetime, where: str
    ) -> None:
        o = self.oracle
        standing = o.standing(id, v, t)
        if id in NODES:
            expected = o.node(id, v, t)
            found = got["node", id]
            if expected is None:
                assert found is NotFoundError, where
            else:
                assert picked(expected, (*NODE_FIELDS, "standing")) == plain(
                    found, (*NODE_FIELDS, "standing")
                ), where
            history = [picked(row, NODE_FIELDS) for row in o.history(id, t)]
            assert history == [plain(row, NODE_FIELDS) for row in got["history", id]], where
            assert history == [plain(row, NODE_FIELDS) for row in got["inspect", id].history], where
            versions = [picked(row, NODE_FIELDS) for row in o.versions(id, t)]
            assert versions == [plain(row, NODE_FIELDS) for row in got["versions", id]], where
            self.compare_references(got, id, v, t, where)
        else:
            assert isinstance(got["node", id], type), where
            expected = o.event(id, v, t)
            found = got["event", id]
            if expected is None:
                assert found is NotFoundError, where
            else:
                assert picked(expected, EVENT_FIELDS) == plain(found, EVENT_FIELDS), where
                every = [link for link in o._links(v, t) if id in (link["source"], link["target"])]
                assert [picked(link, LINK_FIELDS) for link in every] == [
                    plain(link, LINK_FIELDS) for link in found.links
                ], where
        assert standing == got["inspect", id].node.standing, where
        links = [picked(link, LINK_FIELDS) for link in o.links_from(id, v, t)]
        assert links == [plain(link, LINK_FIELDS) for link in got["links_from", id]], where
        assert links == [plain(link, LINK_FIELDS) for link in got["inspect", id].links], where
        assert o.confirmations(id, t) == got["inspect", id].confirmations, where
        backlinks = [picked(link, LINK_FIELDS) for link in o.backlinks_to(id, v, t)]
        assert backlinks == [plain(link, LINK_FIELDS) for link in got["backlinks_to", id]], where
        straight = [link for link in backlinks if link["kind"] not in SYMMETRIC]
        assert straight == [plain(link, LINK_FIELDS) for link in got["inspect", id].backlinks], where
        related = [picked(link, LINK_FIELDS) for link in o.backlinks_to(id, v, t, "related_to")]
        assert related == [plain(link, LINK_FIELDS) for link in got["backlinks_to", id, "relates"]], where
        inverse = [
            {**picked(turned(link), LINK_FIELDS), "kind": "causes"}
            for link in o.backlinks_to(id, v, t, "caused_by")
        ]
        assert inverse == [plain(link, LINK_FIELDS) for link in got["links_from", id, "causes"]], where
        causal = [link["id"] for link in o.links_from(id, v, t, "caused_by")]
        assert causal == [link.id for link in got["links_from", id, "caused_by"]], where
        assert [link["id"] for link in o.supersedes(id, v, t)] == [
            link.id for link in got["supersedes", id]
        ], where
        self.compare_supersession(got["what_superseded", id], id, v, t, where)
        for depth in (1, 5):
            for name in ("causes", "effects"):
                chain = got[name, id, depth]
                wanted = o.chain(id, v, t, depth, effects=name == "effects")
                reached = [thing.id for thing in chain.nodes]
                for level in wanted["levels"]:
                    assert level == sorted(reached[: len(level)]), (name, depth, where)
                    reached = reached[len(level) :]
                assert not reached, (name, depth, where)
                assert wanted["truncated"] == chain.truncated, (name, depth, where)
                assert wanted["every"] == {link.id for link in chain.links}, (name, depth, where)

    def compare_shaky(self, found: list[Any], v: datetime, t: datetime, where: str) -> None:
        """Each once, under the latest fall that shakes it, with a shortest way to it."""
        o = self.oracle
        known = [id for id in THINGS if o.known(id, t)]
        expected = {id for id in known if o.standing(id, v, t) == "shaky"}
        assert expected == {one.node.id for one in found}, where
        assert len(expected) == len(found), where
        assert found == sorted(found, key=lambda one: one.recorded_at, reverse=True), where
        for one in found:
            ways = o.shaken(one.node.id, v, t)
            told = max(told for told, _, _ in ways)
            links = min(length for at, root, length in ways if (at, root) == (told, one.root.id))
            assert (told, links) == (one.recorded_at, len(one.links)), (one.node.id, where)
            assert "shaky" == one.node.standing, where
            at = one.node.id
            for link in one.links:
                assert at in (link.source, link.target), where
                at = link.target if link.kind in RESTING else link.source
            assert at == one.root.id, where

    def compare_links(self, got: dict[tuple[str, ...], Any], t: datetime, where: str) -> None:
        """The history of each link, by its id and by its sentence."""
        o = self.oracle
        for key, rows in got.items():
            expected = {
                "history": lambda id: o.link_rows(id, t),
                "versions": lambda id: o.link_rows(id, t, every=True),
                "said": lambda *sentence: o.link_history(*sentence, t),
            }[key[0]](*key[1:])
            fields = LINK_PERIODS
            if isinstance(rows, type):
                assert not expected, (key, where)
            else:
                assert [picked(row, fields) for row in expected] == [plain(row, fields) for row in rows], (
                    key,
                    where,
                )

    def compare_references(
        self, got: dict[tuple[Any, ...], Any], id: str, v: datetime, t: datetime, where: str
    ) -> None:
        for number in (1, 2, 3):
            expected = self.oracle.described(id, number, v, t)
            if expected is None:
                assert got["node", id, number] is NotFoundError, (number, where)
                assert got["what_superseded", id, number] is NotFoundError, (number, where)
                continue
            # which of several rows written at once is the last is nobody's promise: compare what they share
            fields = ("id", "number", "content", "tags", "tx_from", "standing")
            found = plain(got["node", id, number], fields)
            assert picked(expected, fields) == found, (number, where, found)
            steps = [step for step in got["what_superseded", id, number].chain if step.how == "revised"]
            told = {step.node.number for step in steps}
            assert self.oracle.revised(id, number, t) == told, (number, where)

    def compare_supersession(self, got: Any, id: str, v: datetime, t: datetime, where: str) -> None:
        wanted = self.oracle.what_superseded(id, v, t)
        links = [step for step in got.chain if step.link is not None]
        assert wanted["steps"] == [(step.how, step.link.id, step.node.id) for step in links], where
        assert wanted["planned"] == [step.planned for step in links], where
        revised = [step.node.number for step in got.chain if step.how == "revised"]
        assert ([] if wanted["revised"] is None else [wanted["revised"]]) == revised, where
        assert wanted["closed"] == sorted(step.how for step in got.chain if step.node is None), where
        assert wanted["current"] == sorted(thing.id for thing in got.current), where
        assert wanted["standing"] == got.standing == got.subject.standing, where
        assert str(got), where

    def teardown(self) -> None:
        try:
            if self.block is not None:
                self.block_ends(fails=True)
            for number in range(5):
                self.look(7 * number, -1 - 3 * number, 4)
            for which in range(len(self.remembered)):
                self.ask_again(which)
        finally:
            self.store.close()
            if self.follower is not None:
                self.follower.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def by_id(things: list[Any], fields: tuple[str, ...]) -> list[dict[str, Any]]:
    return [plain(thing, fields) for thing in sorted(things, key=lambda thing: thing.id)]


def test_the_store_answers_what_the_oracle_answers() -> None:
    run_state_machine_as_test(Histories, settings=OURS)


# ---------------------------------------------------------------------- the graph tables

FOREVER = datetime.max.replace(tzinfo=UTC)


def opened(row: dict[str, Any]) -> dict[str, Any]:
    """The row as the tables have it: an open end is the last instant there is; readers may turn it into None."""
    return {name: None if value == FOREVER else value for name, value in row.items()}


def sorted_rows(rows: list[dict[str, Any]]) -> list[tuple[tuple[str, str], ...]]:
    return sorted(tuple(sorted((name, str(value)) for name, value in opened(row).items())) for row in rows)


def occurrences(oracle: Oracle) -> dict[str, list[dict[str, Any]]]:
    """What was told of each event, first what was told first, and of that the earliest. What an undo gave back was told before."""
    found: dict[str, list[dict[str, Any]]] = {id: [] for id in oracle.events}
    told = [one for one in oracle.occurrences if one["made"] == one["tx_from"]]
    for one in sorted(told, key=lambda one: (one["tx_from"], one["at"])):
        found[one["id"]].append(picked(one, ("id", "at", "tx_from")))
    return found


class Tables(Histories):
    """The graph tables, grown or made anew, hold what the oracle holds; a view's graph is what the view reads."""

    @precondition(lambda self: self.block is None)
    @rule(rebuild=st.booleans())
    def tables_hold_the_history(self, rebuild: bool) -> None:
        if rebuild:
            self.store.rebuild()
        query = self.store.query_tables
        instants = ("valid_from", "valid_to", "tx_from", "tx_to")
        columns = ", ".join(f"v.{name} AS {name}" for name in instants)
        rows = query(
            "MATCH (n:Node)-[:HAS_VERSION]->(v:Version) WHERE n.id = v.node_id "
            f"RETURN n.id AS id, v.ref AS ref, v.number AS number, {columns}"
        ).rows()
        expected = [
            {"ref": f"{row['id']}-v{row['number']}", **picked(row, ("id", "number", *instants))}
            for row in self.oracle.rows
        ]
        assert sorted_rows(expected) == sorted_rows(rows)
        assert [{"count": len(expected)}] == query("MATCH (v:Version) RETURN count(*) AS count").rows()
        columns = ", ".join(
            f"r.{name} AS {name}" for name in ("id", "kind", "reason", "confidence", *instants)
        )
        kinds = {link["kind"] for link in self.oracle.links}
        if kinds:
            rows = query(
                f"MATCH (a)-[r]->(b) WHERE r.id IS NOT NULL RETURN a.id AS source, b.id AS target, {columns}"
            ).rows()
            names = ("source", "target", "id", "kind", "reason", "confidence", *instants)
            assert sorted_rows([picked(link, names) for link in self.oracle.links]) == sorted_rows(rows)
        rows = query(
            "MATCH (e:Event) RETURN e.id AS id, e.type AS type, e.occurred_at AS occurred_at, "
            "e.tx_from AS tx_from, e.tx_to AS tx_to"
        ).rows()
        names = ("id", "type", "tx_from", "tx_to")
        told = occurrences(self.oracle)
        expected = [
            {**picked(self.oracle.event_row(id), names), "occurred_at": told[id][0]["at"]}
            for id in self.oracle.events
        ]
        assert sorted_rows(expected) == sorted_rows(rows)
        rows = query(
            "MATCH (e:Event)-[:HAS_OCCURRENCE]->(o:Occurrence) WHERE e.id = o.event_id "
            "RETURN e.id AS id, o.occurred_at AS at, o.tx_from AS tx_from"
        ).rows()
        again = [one for of_one in told.values() for one in of_one[1:]]
        assert sorted_rows(again) == sorted_rows(rows)

    @precondition(lambda self: self.block is None)
    @rule(v=number, t=number, jitter=st.integers(0, 8))
    def a_views_graph_is_what_it_reads(self, v: int, t: int, jitter: int) -> None:
        valid, tx = self.coordinate(v, t, jitter)
        o = self.oracle
        view = self.store.as_of(valid=valid, tx=tx)
        o.handed = max(o.handed, tx)
        standing = {id: o.standing(id, valid, tx) for id in THINGS if o.known(id, tx)}
        for label in ("Node", "Event", "Absent"):
            found = view.query(f"MATCH (n:{label}) RETURN n.id AS id, n.standing AS standing").rows()
            happened = {
                id for id in EVENTS if id in standing and standing[id] in ("stands", "shaky", "superseded")
            }
            chosen = {
                "Node": {id for id in standing if id in NODES and standing[id] in UPRIGHT},
                "Event": happened,
                "Absent": {id for id in standing if standing[id] not in UPRIGHT} - happened,
            }[label]
            assert {id: standing[id] for id in chosen} == {row["id"]: row["standing"] for row in found}, label
        found = view.query("MATCH (a)-[r]->(b) RETURN a.id AS source, r.id AS id, b.id AS target").rows()
        names = ("source", "id", "target")
        assert sorted_rows([picked(link, names) for link in o._links(valid, tx)]) == sorted_rows(found)
        found = view.query(
            "MATCH (a)-[r:SUPERSEDES]->(b) RETURN a.id AS source, r.id AS id, b.id AS target"
        ).rows()
        links = o._links(valid, tx, "supersedes")
        assert sorted_rows([picked(link, names) for link in links]) == sorted_rows(found)

    def teardown(self) -> None:
        try:
            if self.block is not None:
                self.block_ends(fails=True)
            self.tables_hold_the_history(rebuild=False)
            self.a_views_graph_is_what_it_reads(-1, -1, 4)
            self.tables_hold_the_history(rebuild=True)
        finally:
            super().teardown()


def test_the_graph_tables_answer_what_the_oracle_answers() -> None:
    run_state_machine_as_test(Tables, settings=FEWER)
