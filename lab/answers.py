"""Plays random histories through the public names and prints a digest of the answers to each question: one line of JSON for each line and question.

`python lab/answers.py --first 0 --count 10`: it uses the `graphstore` that it imports, of any release, so it uses nothing else of the project.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import graphstore
from graphstore import GraphStoreError
from graphstore.values import random_bits

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
TOLD = FIRST + timedelta(days=60)  # when the first transaction is told
DAYS = [FIRST + timedelta(days=number) for number in range(12)]
RESTING = ("derived_from", "supports", "caused_by")
KINDS = (
    *RESTING,
    "supersedes",
    "corrects",
    "contradicts",
    "related_to",
    "continuation",
    "part_of",
    "resolved_by",
)
WORDS = ("red", "green", "blue", "small", "large", "round", "square")
SHAPES = ("web", "web", "web", "branches", "branches", "hub", "chain")


class Clock:
    """A clock that every verb moves on by an hour."""

    def __init__(self) -> None:
        self.now = TOLD

    def __call__(self) -> datetime:
        return self.now


class History:
    """One random history: the same seed takes the same decisions with every release."""

    def __init__(self, seed: int, shape: str, size: int, steps: int, place: Path) -> None:
        self.chance = random.Random(f"{seed}-{shape}")
        self.clock = Clock()
        self.seed, self.drawn = seed, 0
        self.store: Any = graphstore.open(place, clock=self.clock)
        self.ids = [f"n{number}" for number in range(9)]
        self.events = [f"e{number}" for number in range(4)]
        self.tx: list[datetime] = []
        self.lines: dict[str, Any] = {"": self.store}
        self.outcomes: list[str] = []
        self.shape, self.size = shape, size
        self._lay_out()
        for _ in range(steps):
            self._step()

    def _do(self, verb: Callable[[], Any]) -> None:
        """Do a verb, or a block of verbs, and note how it ended."""
        self.clock.now += timedelta(hours=1)
        self._draw_ids_anew()
        try:
            verb()
            self.outcomes.append("done")
        except Exception as error:
            self.outcomes.append(type(error).__name__)
            return
        self.tx.append(self.clock.now)

    def _draw_ids_anew(self) -> None:
        """Let the ids that a verb makes be the same with every release, so that links are in the same order."""
        self.drawn += 1
        os.urandom = random.Random(f"{self.seed}-{self.drawn}").randbytes
        random_bits._drawn.clear()

    def _lay_out(self) -> None:
        store, chance = self.store, self.chance
        if self.shape in ("web", "branches"):
            for id in self.ids[:7]:
                begin = chance.choice(DAYS[:3])
                self._do(partial(store.add_node, "fact", {"n": 0}, id=id, valid_from=begin))
            for id in self.events[:3]:
                self._do(
                    partial(store.record_event, "deploy", id, id=id, occurred_at=chance.choice(DAYS[:4]))
                )
            for source, target in pairwise(chance.sample(self.ids[:7], 5)):
                self._do(partial(store.link, source, chance.choice(RESTING), target, valid_from=DAYS[2]))
        elif self.shape == "hub":
            self._do(lambda: store.add_node("fact", {"n": 0}, id="n0", valid_from=DAYS[0]))
            self._add_many(lambda number: "n0")
        elif self.shape == "chain":
            self._do(lambda: store.add_node("fact", {"n": 0}, id="n0", valid_from=DAYS[0]))
            self._add_many(lambda number: f"m{number - 1}" if number else "n0")

    def _add_many(self, of: Callable[[int], str]) -> None:
        def block() -> None:
            with self.store.transaction():
                for number in range(self.size):
                    self.store.add_node(
                        "fact", {"n": number}, id=f"m{number}", derived_from=[of(number)], valid_from=DAYS[1]
                    )

        self._do(block)
        self.ids += [f"m{number}" for number in sorted({0, 1, self.size // 2, self.size - 1})]

    # ------------------------------------------------------------------ what is done

    def _step(self) -> None:
        chance = self.chance
        line = chance.choice(list(self.lines))
        store = self.lines[line]
        roll = chance.random()
        if roll < 0.12:
            verbs = [self._verb(store) for _ in range(chance.randint(2, 5))]
            fails = chance.random() < 0.15

            def block() -> None:
                with store.transaction(author=chance.choice((None, "ana"))):
                    for verb in verbs:
                        self._draw_ids_anew()
                        with contextlib.suppress(GraphStoreError):
                            verb()
                    if fails:
                        raise graphstore.InvalidError("the block gives up")

            self._do(block)
        elif roll < 0.18:
            self._do(lambda: store.undo(chance.choice(self.tx or [self.clock.now]), reason="taken back"))
        elif roll < 0.22:
            one = chance.choice([*self.ids, *self.events])
            forget = chance.random() < 0.5
            self._do(
                lambda: self.store.erase(one, reason="private") if forget else self.store.evict(ids=[one])
            )
        elif roll < 0.30 and self.shape == "branches":
            self._branch()
        else:
            self._do(self._verb(store))

    def _branch(self) -> None:
        chance = self.chance
        names = [name for name in self.lines if name]
        roll = chance.random()
        if not names or (len(names) < 3 and roll < 0.5):
            above = self.lines[chance.choice(list(self.lines))]
            name = f"b{len(self.outcomes)}"
            back = chance.choice((None, None, self.tx[-1] if self.tx else None))

            def begin() -> None:
                self.lines[name] = above.branch(name, tx=back)

            self._do(begin)
            return
        name = chance.choice(names)
        side = chance.choice(("trunk", "branch", None))
        if roll < 0.85:
            self._do(lambda: self.store.merge(name, decide=side))
        elif roll < 0.93 and len(names) == 1:
            self._do(lambda: self.lines[name].pull(decide=side))
        else:

            def delete() -> None:
                self.store.delete_branch(name)
                del self.lines[name]

            self._do(delete)

    def _period(self) -> dict[str, datetime]:
        start, stop = sorted(self.chance.sample(DAYS, 2))
        return self.chance.choice(
            ({}, {"valid_from": start}, {"valid_from": start}, {"valid_from": start, "valid_to": stop})
        )

    def _verb(self, store: Any) -> Callable[[], Any]:
        chance = self.chance
        one, two = chance.choice(self.ids[:9]), chance.choice(self.ids[:9])
        event = chance.choice(self.events)
        thing, other = chance.choice((one, one, event)), chance.choice((two, two, event))
        content = {"colour": chance.choice(WORDS), "size": chance.randrange(4)}
        text = " ".join(chance.sample(WORDS, 3))
        during, kind, at = self._period(), chance.choice(KINDS), chance.choice(DAYS)
        key = chance.choice((None, None, "slot", "place"))
        named = chance.choice(((), (two,), (event,)))
        relation = chance.choice(("derived_from", "derived_from", "supersedes", "corrects"))
        source = chance.choice((None, None, "user:ana", "agent:bot"))
        verbs: list[tuple[int, Callable[[], Any]]] = [
            (6, lambda: store.add_node("fact", content, id=one, text=text, key=key, source=source, **during, **{relation: named})),
            (5, lambda: store.revise(one, content, text=text, **during)),
            (1, lambda: store.revise(one, content, minor=True)),
            (2, lambda: store.amend(one, {"size": content["size"]}, **during)),
            (2, lambda: store.end(one, at=at)),
            (3, lambda: store.retract(thing, reason="wrong")),
            (2, lambda: store.retract(one, reason="wrong then", **during)),
            (3, lambda: store.confirm(thing, reason="looked again")),
            (3, lambda: store.supersede(thing, by=one if one != thing else two, valid_from=chance.choice((None, at)))),
            (8, lambda: store.link(thing, kind, other, **during)),
            (4, lambda: store.link(one, chance.choice(RESTING), other, **during)),
            (3, lambda: self._unlink(store, thing, kind, other, during)),
            (4, lambda: store.record_event(chance.choice(("error", "deploy", "fix")), text, id=event, occurred_at=at, related_to=[one])),
            (1, lambda: store.set_trust({"user:ana": chance.randrange(3), "agent:bot": 1})),
        ]  # fmt: skip
        weights, acts = zip(*verbs, strict=True)
        return chance.choices(acts, weights)[0]  # type: ignore[no-any-return]

    @staticmethod
    def _unlink(store: Any, source: str, kind: str, target: str, during: dict[str, datetime]) -> None:
        store.unlink(source=source, kind=kind, target=target, **during)

    # ------------------------------------------------------------------ what is asked

    def questions(self) -> Iterator[tuple[str, str, str]]:
        """Ask everything of every line; give the line, the question, and the answer as text."""
        chance = random.Random(f"asked-{len(self.outcomes)}-{self.tx[-1]}")
        yield "", "outcomes", " ".join(self.outcomes)
        valid = sorted({*DAYS[::2], *(day - timedelta(microseconds=1) for day in DAYS[1::4]), self.clock.now})
        txs = sorted({*chance.sample(self.tx, min(9, len(self.tx))), self.clock.now})
        things = [*self.ids, *self.events]
        for line, store in self.lines.items():
            for tx in txs:
                for at in valid:
                    view = self._answer(partial(store.as_of, valid=at, tx=tx), keep=True)
                    if isinstance(view, str):
                        yield line, "as_of", view
                        continue
                    for question, ask in self._of_view(view, things):
                        answer = self._answer(ask)
                        if question == "operations":  # release 0.1 wrote as revise what a merge had decided
                            answer = answer.replace('"verb":"amend"', '"verb":"revise"')
                        yield line, question, f"{at} {tx} {answer}"

    def _of_view(self, view: Any, things: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
        if self.shape not in ("hub", "chain"):
            yield "nodes", view.nodes
            yield "shaky", view.shaky
        yield "events", view.events
        yield "contradictions", lambda: view.contradictions(candidates=False)
        for id in things:
            yield "node", partial(view.event if id.startswith("e") else view.node, id)
            for question in self._questions(id):
                yield question, partial(getattr(view, question), id)

    def _questions(self, id: str) -> Iterator[str]:
        """Name what is asked of a thing. What would give most of a hub or chain at each coordinate is not asked of one."""
        is_small = self.shape not in ("hub", "chain")
        yield from ("links_from", "what_superseded", "versions", "history", "operations")
        if is_small or id != "n0":
            yield "backlinks_to"
        if is_small:
            yield from ("causes", "effects", "walk", "inspect")

    def _answer(self, ask: Callable[[], Any], keep: bool = False) -> Any:
        try:
            found = ask()
        except Exception as error:
            return type(error).__name__
        if keep:
            return found
        values = found if isinstance(found, list) else [found]
        return "\n".join(value.model_dump_json() for value in values)


def main(arguments: list[str]) -> int:
    """Play the histories, and print what they answer."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--first", type=int, default=0)
    said.add_argument("--count", type=int, default=1)
    said.add_argument("--steps", type=int, default=50)
    said.add_argument("--size", type=int, default=300, help="things on a hub or in a chain")
    said.add_argument("--shape", choices=sorted(set(SHAPES)), default=None)
    said.add_argument("--show", action="store_true", help="print the answers, not their digests")
    told = said.parse_args(arguments)
    for seed in range(told.first, told.first + told.count):
        shape = told.shape or SHAPES[seed % len(SHAPES)]
        with tempfile.TemporaryDirectory() as folder:
            history = History(seed, shape, told.size, told.steps, Path(folder) / "store")
            digests: dict[str, tuple[int, Any]] = {}
            for line, question, answer in history.questions():
                if told.show:
                    print(json.dumps([line, question, answer]))
                    continue
                name = f"{line} {question}"
                count, digest = digests.get(name) or (0, hashlib.blake2b(digest_size=16))
                digest.update(answer.encode() + b"\0")
                digests[name] = count + 1, digest
            history.store.close()
        if not told.show:
            print(json.dumps([seed, shape, {name: (count, found.hexdigest()) for name, (count, found) in digests.items()}]), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
