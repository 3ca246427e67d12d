"""A verb decides the same and records the same whether the index is loaded or it reads what it needs from the rows."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import graphstore
from graphstore import GraphStore, GraphStoreError, NotFoundError
from graphstore.context import working
from graphstore.context.observer import Observer
from graphstore.events import grouped, timeline
from graphstore.memory.memory import Memory
from graphstore.read import working_set
from graphstore.topics import topics
from graphstore.values import random_bits
from tests.conftest import START, Clock
from tests.support.seeds import seeds

STEPS = 60
KINDS = (
    "derived_from",
    "supports",
    "supersedes",
    "corrects",
    "contradicts",
    "related_to",
    "caused_by",
    "continuation",
)


def drawn(seed: str) -> list[str]:
    chance = random.Random(seed)
    return [f"{chance.getrandbits(64):016x}" for _ in range(200)]


def day(chance: random.Random) -> str | None:
    return None if chance.random() < 0.5 else (START - timedelta(days=chance.randrange(40))).isoformat()


def period(chance: random.Random) -> dict[str, Any]:
    start, stop = day(chance), day(chance)
    return {name: at for name, at in (("valid_from", start), ("valid_to", stop)) if at is not None}


def step(chance: random.Random, ids: list[str], links: list[str]) -> Callable[[GraphStore], Any]:
    """One verb with arguments, most of which are sensible."""
    one, two = chance.choice([*ids, "nothing"]), chance.choice(ids)
    content = {"n": chance.randrange(4)}
    number = chance.choice((None, None, None, 1, 2))
    source = chance.choice((None, None, "user:ana", "agent:bot"))
    link = chance.choice([*links, "lnk_none"])
    kind = chance.choice(KINDS)
    during = period(chance)
    return chance.choice(
        (
            lambda s: s.add_node(
                "fact", content, derived_from=[two] if chance.random() < 0.5 else (), **during
            ),
            lambda s: s.add_node(
                "fact", content, id=f"n-{chance.randrange(30)}", supersedes=one, reason="new"
            ),
            lambda s: s.add_node(kind, content, corrects=two, source=source),
            lambda s: s.add_node("fact", content, key=f"k{chance.randrange(3)}", **during),
            lambda s: s.add_node("note", content, key=f"k{chance.randrange(3)}", tags=["x"], text="said"),
            lambda s: s.revise(one, content, if_number=number, minor=chance.random() < 0.2, **during),
            lambda s: s.revise(one, content, source=source, reason="looked"),
            lambda s: s.amend(one, {"m": chance.randrange(3)}, **during),
            lambda s: s.end(one, at=day(chance), if_number=number),
            lambda s: s.retract(one, reason="no", **during),
            lambda s: s.confirm(one, reason="yes", if_number=number),
            lambda s: s.supersede(one, by=two, valid_from=day(chance)),
            lambda s: s.link(one, kind, two, **during),
            lambda s: s.link(
                one, kind, two, strength=chance.choice((None, 3)), reason="because", metadata={"a": 1}
            ),
            lambda s: s.unlink(link, **during),
            lambda s: s.unlink(source=one, kind=kind, target=two),
            lambda s: s.record_event("deploy", "shipped", id=f"e-{chance.randrange(9)}", related_to=[two]),
            lambda s: s.link(one, "related_to", f"{two}-v1"),
            lambda s: s.record_event(
                "error", f"failed {chance.randrange(3)}", occurred_at=day(chance), agent="a"
            ),
            lambda s: s.record_event(
                "error", "failed 1", metadata={"scope": "x"}, related_to=[one, "nothing"]
            ),
            lambda s: s.record_event(chance.choice(("fix", "odd")), "mended", related_to=[one]),
            lambda s: s.confirm(one, reason="yes", source=source),
            lambda s: s.add_node("fact", content, key="k1", source=source),
            lambda s: take_back(s, chance),
            lambda s: take_back(s, chance),
            lambda s: s.define_point("odd"),
            lambda s: s.define_kind(f"kind_{chance.randrange(3)}", rests=chance.choice(((), ("retracted",)))),
            lambda s: s.promote_kind(f"kind_{chance.randrange(3)}"),
            lambda s: s.link(one, f"kind_{chance.randrange(3)}", two),
            lambda s: s.fold([one, two], into=content, reason="in short"),
            lambda s: s.fold([two], into=chance.choice(ids)),
            lambda s: decide(s, one, two, chance.choice((one, two, "both"))),
            lambda s: s.snapshot(f"s{chance.randrange(4)}"),
            lambda s: s.revise(one, content, valid_from=f"s{chance.randrange(4)}"),
        )
    )


def room_step(chance: random.Random) -> Callable[[GraphStore], Any]:
    """Return one verb of a room with arguments."""
    user, thread = chance.choice("uv"), chance.choice((None, "t1", "t2"))
    text, message = f"text {chance.randrange(5)}", f"m{chance.randrange(5)}"
    return chance.choice(
        (
            lambda s: working.append(s, user, thread, text),
            lambda s: working.clear(s, user, thread),
            lambda s: working.record_outcome(s, "a", chance.choice(("success", "failure")), note="so"),
            lambda s: Memory(s).remember(
                text, layer="conversation", user=user, key=chance.choice((None, "k"))
            ),
            lambda s: Memory(s).remember_many([{"text": text, "layer": "conversation"}] * 2),
            lambda s: Observer(s).enqueue(text, user=user, thread=thread, end=chance.random() < 0.2),
            lambda s: Observer(s, lambda messages: f"- {text}", threshold=2).enqueue(text, user=user),
            lambda s: timeline.record_message(s, "TEXT", text, sender=user, thread=thread, id=message),
            lambda s: timeline.annotate(s, message, transcript=text),
            lambda s: s.record_event("error", text, metadata={"n": chance.randrange(2)}, fingerprint="f"),
            lambda s: [grouped.tell_apart(s, event.id, reason="two") for event in s.events("error")[:1]],
            lambda s: [grouped.occurrences(s, event.id) for event in s.events("error")],
            lambda s: topics.memorize(s, [{"role": "user", "content": text}] * 2),
            lambda s: s.nodes(),
        )
    )


def forgetting(chance: random.Random, ids: list[str]) -> Callable[[GraphStore], Any]:
    """Something that forgets."""
    one, two = chance.choice([*ids, "nothing"]), chance.choice(ids)
    keep_audit, kinds = chance.random() < 0.6, chance.choice((None, ["fact"], ["note", "error", "fact"]))
    before, most = day(chance) or "2026-01-20", chance.choice((1_000, 5_000, 20_000))
    days, size = chance.choice((None, 20)), chance.choice((None, 3_000, 10_000))
    return chance.choice(
        (
            lambda s: s.erase(one, reason="asked for"),
            lambda s: s.erase(two, reason="asked for"),
            lambda s: s.evict(ids=[one, two], keep_audit=keep_audit, reason="old"),
            lambda s: s.evict(ids=[two], keep_audit=keep_audit),
            lambda s: s.evict(ids=[two, *ids[:3]], larger_than=most, keep_audit=keep_audit),
            lambda s: s.evict(before=before, kinds=kinds, keep_audit=keep_audit),
            lambda s: s.evict(larger_than=most, kinds=kinds, keep_audit=keep_audit),
            lambda s: s.evict_old(),
            lambda s: s.set_retention(days=days, bytes=size),
        )
    )


def question(chance: random.Random, ids: list[str], links: list[str]) -> Callable[[GraphStore], Any]:
    """Return one read with arguments."""
    one, two, link = chance.choice([*ids, "nothing"]), chance.choice(ids), chance.choice([*links, "lnk_none"])
    number, kind, days = chance.randrange(1, 4), chance.choice(KINDS), chance.randrange(40)
    return chance.choice(
        (
            lambda s: s.node(one),
            lambda s: s.node(f"{one}-v{number}"),
            lambda s: s.event(one),
            lambda s: s.inspect(one),
            lambda s: s.inspect(link),
            lambda s: s.history(one),
            lambda s: s.versions(one),
            lambda s: s.versions(link),
            lambda s: s.operations(one),
            lambda s: s.operations(link),
            lambda s: s.diff(one, 1, number),
            lambda s: s.what_superseded(one),
            lambda s: s.what_superseded(link),
            lambda s: s.links_from(one),
            lambda s: s.backlinks_to(one, (kind,)),
            lambda s: s.link_history(one, kind, two),
            lambda s: s.causes(one),
            lambda s: s.effects(one),
            lambda s: s.walk((one, two)),
            lambda s: s.paths(one, two, direction="both"),
            lambda s: s.shaky(),
            lambda s: s.shaky(),
            lambda s: s.contradictions(settled=True),
            lambda s: s.contradiction(one, two),
            lambda s: s.nodes(),
            lambda s: s.nodes("fact", tag="x"),
            lambda s: s.nodes(key=f"k{chance.randrange(3)}"),
            lambda s: s.events(),
            lambda s: s.scan(content=True),
            lambda s: s.knows(one),
            lambda s: s.whole_id(one[:9]),
            lambda s: s.changes(),
            lambda s: {**s.stats(), "path": None},
            lambda s: s.snapshots(),
            lambda s: s.as_of(valid=START - timedelta(days=days)).nodes(),
            lambda s: s.as_of(valid=START - timedelta(days=days)).inspect(one),
            lambda s: [s.as_of(tx=change.tx).nodes() for change in s.changes()[-5:-4]],
            lambda s: s.as_of().compare(s.as_of(valid=START - timedelta(days=days))),
        )
    )


def plain(found: Any) -> Any:
    """Return an answer as something whose text can be compared."""
    if isinstance(found, (list, tuple)) and not hasattr(found, "_fields"):
        return [plain(each) for each in found]
    return found.model_dump() if hasattr(found, "model_dump") else found


def decide(store: GraphStore, one: str, other: str, keep: str) -> Any:
    store.link(one, "contradicts", other)
    return store.resolve(store.contradiction(one, other), keep=keep, reason="so")


def take_back(store: GraphStore, chance: random.Random) -> Any:
    """Undo one of the last transactions, or several."""
    last = [each.tx for each in store.changes()][-6:]
    named = "tx" if chance.random() < 0.8 else "since"
    return store.undo(**{named: chance.choice([*last, START]), "reason": "a slip"})


class Stop(Exception):
    """Takes a block back."""


class Player:
    """Tells a store a random history, and notes what each verb answered."""

    def __init__(self, path: Path, seed: int, reads: int = 0, forgets: bool = False) -> None:
        self.reads = reads  # how many times as many reads there are in a block
        self.path, self.seed, self.forgets = path, seed, forgets
        self.clock, self.answers = Clock(), list[str]()
        self.ids, self.links = ["n-1", "n-2"], ["lnk_one"]
        self.held: list[Any] = []  # answers that nobody has looked at yet
        self.store = graphstore.open(path, clock=self.clock)

    def play(self) -> None:
        """Tell all of it."""
        chance = random.Random(self.seed)
        random_bits._drawn[:] = drawn(f"{self.seed}")
        if chance.random() < 0.3:
            self.store.set_trust({"user": 2, "agent": 1})
        for at in range(STEPS):
            self.clock.move(seconds=chance.choice((0, 1, 3600)))
            random_bits._drawn[:] = drawn(f"{self.seed} {at}")
            if chance.random() < 0.2:  # an opening may forget something
                self.store.close()
                author = chance.choice((None, "agent:bot"))
                self.store = graphstore.open(self.path, clock=self.clock, author=author)
            random_bits._drawn[:] = drawn(f"{self.seed} {at}")
            if chance.random() < 0.6:
                self.tell(f"{self.seed} {at}")
            else:
                self.block(f"{self.seed} {at}", chance.randrange(1, 7))
            self.look()
        assert self.store.verify().problems == ()
        self.store.close()
        random_bits._drawn.clear()

    def block(self, seed: str, count: int) -> None:
        """Tell several steps in one transaction, and look at the store between them at times."""
        chance = random.Random(f"block {seed}")
        try:
            with self.store.transaction(reason=chance.choice((None, "together"))):
                for at in range(count):
                    self.tell(f"{seed} {at}")
                    if chance.random() < 0.1:
                        self.look()
                    for number in range(self.reads * chance.randrange(3)):
                        self.ask(f"{seed} {at} {number}")
                if chance.random() < 0.1:
                    raise Stop
        except (Stop, GraphStoreError) as error:
            self.answers.append(repr(error))

    def tell(self, seed: str) -> None:
        """Tell one step."""
        chance = random.Random(seed)
        forgets = self.forgets and chance.random() < 0.12
        run = forgetting(chance, self.ids) if forgets else step(chance, self.ids, self.links)
        self.note(partial(run, self.store))

    def ask(self, seed: str) -> None:
        """Note what a read answers."""
        try:
            read = question(random.Random(seed), self.ids, self.links)
            self.answers.append(f"{seed} {plain(read(self.store))!r}")
        except GraphStoreError as error:
            self.answers.append(f"{seed} {type(error).__name__}: {error}")

    def note(self, run: Callable[[], Any]) -> None:
        """Note what a call answered."""
        try:
            found = run()
        except GraphStoreError as error:
            self.answers.append(f"{type(error).__name__}: {error}")
            return
        for each in found if isinstance(found, list) else [found]:
            if each is None or isinstance(each, str):
                self.answers += [each] if each else []
                continue
            self.held.append(each)
            if isinstance(each, (graphstore.Snapshot, graphstore.Contradiction, graphstore.Change)):
                continue
            named = each.event if isinstance(each, graphstore.Recorded) else each
            (self.links if isinstance(named, graphstore.Link) else self.ids).append(named.id)
        self.answers.append("done")

    def look(self) -> None:
        """Note all of the answers that were held."""
        for each in self.held:
            try:
                self.answers.append(repr(each.model_dump()))
            except NotFoundError:  # of a block that was taken back
                self.answers.append("gone")
        self.held.clear()


def play_rooms(path: Path, seed: int, branch: str | None = None) -> list[str]:
    """Tell a store, or a branch of it, a random history by verbs of rooms. Return what each answered."""
    chance, clock, answers = random.Random(f"rooms {seed}"), Clock(), list[str]()

    def tell(at: str) -> None:
        try:
            answers.append(f"{at} {plain(room_step(random.Random(at))(store))!r}")
        except GraphStoreError as error:
            answers.append(f"{at} {type(error).__name__}: {error}")

    if branch is not None:
        random_bits._drawn[:] = drawn(f"{seed}")
        with graphstore.open(path, clock=clock) as trunk:
            Memory(trunk).remember("text 1", layer="conversation", user="u", key="k")
            trunk.branch(branch)
    with graphstore.open(path, clock=clock) as trunk:
        store: Any = trunk if branch is None else trunk.on(branch)
        for at in range(STEPS // 2):
            clock.move(seconds=chance.choice((0, 1, 3600)))
            random_bits._drawn[:] = drawn(f"{seed} {at}")
            with contextlib.suppress(Stop), store.transaction():
                for number in range(chance.randrange(1, 6)):
                    tell(f"{seed} {at} {number}")
                if chance.random() < 0.1:
                    raise Stop
            tell(f"{seed} {at}")
        assert store.verify().problems == ()
    random_bits._drawn.clear()
    return answers


@pytest.mark.parametrize("seed", seeds(8, 24, 1_000))
def test_the_rows_that_verbs_leave_are_those_of_the_chain(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(working_set, "FEW_ROWS", seed % 2 * 8)  # as if things had many periods
    player = Player(tmp_path / "memory.gs", seed, reads=int(seed % 5 == 4), forgets=seed // 2 % 2 == 0)
    player.play()  # which verifies
    assert player.answers.count("done") > len(player.answers) / 8


@pytest.mark.parametrize("branch", [None, "side"])
@pytest.mark.parametrize("seed", range(6))
def test_the_rows_that_verbs_of_rooms_leave_are_those_of_the_chain(seed, branch, tmp_path):
    assert play_rooms(tmp_path / "memory.gs", seed, branch)
