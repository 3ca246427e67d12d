"""Read the chain as the calls that were made, each with the arguments given, so that it can be repeated without another call.

A call is one request of a caller: a verb with its operations. Heads have the arguments that effects do not show (`given_arguments`). Heads of release 0.1 have only
effects. The bounds of their calls are those of what they left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from graphstore.ledger.chain import FORGETTING, Verbatim
from graphstore.values.models import Json
from graphstore.values.period import Instant, instant

Sentence = tuple[str, str, str]
Part = tuple[int, Json, list[Any]]
"""A head of a transaction: the number of operations in the heads before it, the head, and its bodies."""


@dataclass(slots=True)
class RecordedVersion:
    """A version that an operation recorded: its number, its body (None if it was forgotten), and its periods."""

    id: str
    number: int
    body: Json | None
    periods: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(slots=True)
class LinkSaid:
    """Stores the attributes that an operation stated of a link."""

    id: str
    sentence: Sentence
    strength: int | None = None
    inferred: bool = False
    history: bool = False
    created_by: str = "user"
    body: Json = field(default_factory=dict)
    periods: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(slots=True)
class RecordedOperation:
    """One operation as it was recorded. `reason`: its own reason, not that of its transaction."""

    verb: str
    subject: str
    author: str | None
    reason: str | None = None
    is_forgotten: bool = False  # True if its body was removed
    args: Json = field(default_factory=dict)
    held: Json = field(default_factory=dict)
    own: Json = field(default_factory=dict)
    versions: dict[int, RecordedVersion] = field(default_factory=dict)
    links: list[LinkSaid] = field(default_factory=list)
    seen: str | None = None


@dataclass(slots=True)
class RecordedCall:
    """A verb that was called, with its operations. The first one has the arguments."""

    ops: list[RecordedOperation]

    @property
    def first(self) -> RecordedOperation:
        """Return the first operation, which names the call."""
        return self.ops[0]


@dataclass(slots=True)
class RecordedTransaction:
    """One transaction of a line of belief."""

    tx: Instant
    branch: str | None
    author: str | None
    reason: str | None
    is_bulk: bool
    has_arguments: bool  # False for a transaction of release 0.1
    heads: list[Json]
    lines: list[Verbatim]
    calls: list[RecordedCall] = field(default_factory=list)
    entities: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def is_forgetting(self) -> bool:
        """Return True if it forgot something."""
        return any(op[0] in FORGETTING for head in self.heads for op in head.get("ops", ()))

    @property
    def lacks_bodies(self) -> bool:
        """Return True if one of its bodies was removed."""
        return any(body == b"null" for line in self.lines for body in line.bodies)


class ChainReader:
    """Reads a chain in order. It remembers the attributes of links."""

    def __init__(self) -> None:
        self.links: dict[str, LinkSaid] = {}
        self.entities: dict[str, list[Any]] = {}
        self.events: dict[str, Json | None] = {}

    def transactions(self, lines: Iterable[Verbatim]) -> Iterator[RecordedTransaction]:
        """Yield the transactions of a chain."""
        together: list[Verbatim] = []
        heads: list[Json] = []
        for line in lines:
            head = orjson.loads(line.head)
            if together and (head["tx"], head.get("branch")) != (heads[0]["tx"], heads[0].get("branch")):
                yield self._transaction(heads, together)
                together, heads = [], []
            together.append(line)
            heads.append(head)
        if together:
            yield self._transaction(heads, together)

    def _transaction(self, heads: list[Json], lines: list[Verbatim]) -> RecordedTransaction:
        head = heads[0]
        bodies = [[orjson.loads(body) for body in line.bodies] for line in lines]
        why = next((bodies[at][each["why"]] for at, each in enumerate(heads) if "why" in each), None)
        made = RecordedTransaction(
            instant(head["tx"]), head.get("branch"), head.get("author"), (why or {}).get("reason"),
            any("*" in each.get("args", {}) for each in heads), "requires" in head, heads, lines,
        )  # fmt: skip
        ops: list[RecordedOperation] = []
        firsts: list[int] = []
        for each, texts in zip(heads, bodies, strict=True):
            firsts.append(len(ops))
            args = each.get("args", {})
            for at, entry in enumerate(each.get("ops", ())):
                ops.append(_operation(entry, texts, made, args.get(str(at), {})))
        parts = list(zip(firsts, heads, bodies, strict=True))
        for first, each, _ in parts:
            for entity in each.get("entities", ()):
                made.entities[entity[0]] = self.entities[entity[0]] = entity
            for _, at, op in each.get("seen", ()):
                ops[first + op].seen = at
        self._versions(parts, ops)
        self._links(parts, ops)
        made.calls = list(_calls(ops))
        return made

    def _versions(self, parts: list[Part], ops: list[RecordedOperation]) -> None:
        """Assign to operations the versions that they recorded. A large transaction has its versions, their rows and its operations in several heads."""
        texts = {
            (id, number): bodies[body]
            for _, head, bodies in parts
            for id, number, body in head.get("versions", ())
        }
        self.events |= {
            id: body
            for (id, number), body in texts.items()
            if number == 1 and len(self.entities.get(id, ())) == 2
        }
        told = {
            (id, number): first + op for first, head, _ in parts for id, number, op in head.get("told", ())
        }
        for first, head, _ in parts:
            for id, number, start, stop, op in head.get("rows", ()):
                if (id, number) in texts:
                    by = told.setdefault(
                        (id, number), first + op
                    )  # later rows may be pieces that other operations left
                    version = RecordedVersion(id, number, texts[id, number])
                    ops[by].versions.setdefault(number, version).periods.append((start, stop))
        for (id, number), by in told.items():
            if (id, number) in texts:
                ops[by].versions.setdefault(number, RecordedVersion(id, number, texts[id, number]))
        for first, head, bodies in parts:
            # an event that was corrected in its own transaction has no row
            for id, start, stop, _ in head.get("gaps", ()):
                if (id, 1) in told and id in self.events:
                    ops[told[id, 1]].versions[1].periods.append((start, stop))
            for id, number, place, start, stop, op in head.get("said", ()):
                body = bodies[place] if place is not None else texts.get((id, number))
                version = ops[first + op].versions.setdefault(number, RecordedVersion(id, number, body))
                if place is not None:
                    version.periods.append((start, stop))

    def _links(self, parts: list[Part], ops: list[RecordedOperation]) -> None:
        """Assign to operations what they stated of links."""
        claims: dict[tuple[str, int], LinkSaid] = {}
        told: dict[tuple[str, int], int] = {}
        for first, head, bodies in parts:
            for id, source, kind, target in head.get("links", ()):
                self.links[id] = LinkSaid(id, (source, kind, target))
            for id, number, strength, how, by, body in head.get("claims", ()):
                text = {} if body is None else bodies[body] or {}
                said = LinkSaid(id, self.links[id].sentence, strength, bool(how & 1), bool(how & 2), by, text)
                claims[id, number] = self.links[id] = said
            told |= {(id, number): first + op for id, number, op in head.get("link_told", ())}
        found: dict[int, dict[str, LinkSaid]] = {}
        for first, head, _ in parts:
            for id, number, start, stop, op in head.get("link_rows", ()):
                by = told.get((id, number), first + op)
                said = found.setdefault(by, {}).setdefault(id, claims.get((id, number)) or self._known(id))
                said.periods.append((start, stop))
            for id, _, _, op in head.get("linked", ()):
                found.setdefault(first + op, {}).setdefault(id, self._known(id))
        for at, operation in enumerate(ops):
            for id, source, kind, target, strength, how, creator in operation.args.get("links", ()):
                said = LinkSaid(id, (source, kind, target), strength, bool(how & 1), bool(how & 2), creator)
                found.setdefault(at, {}).setdefault(id, said)
                self.links.setdefault(id, said)
        for by, links in found.items():
            ops[by].links += links.values()

    def _known(self, id: str) -> LinkSaid:
        """Return the last recorded attributes of a link."""
        return replace(self.links[id], periods=[])


def _operation(
    entry: list[Any], bodies: list[Any], made: RecordedTransaction, args: Json
) -> RecordedOperation:
    verb, subject = entry[:2]
    author = entry[3] if len(entry) > 3 else made.author
    place = entry[2] if len(entry) > 2 else None
    op = RecordedOperation(verb, subject, author, args=args)
    if place is not None:
        body = bodies[place]
        op.is_forgotten = body is None
        body = body or {}
        reason = body.get("reason")
        op.reason = None if reason == made.reason else reason
        op.held, op.own = body.get("args", {}), body.get("own", {})
    return op


def _calls(ops: list[RecordedOperation]) -> Iterator[RecordedCall]:
    """Yield the calls, each with its operations."""
    at = 0
    while at < len(ops):
        op = ops[at]
        count = int(op.args.get("ops", 1))
        if op.verb in ("merge", "pull"):
            count = len(ops)
        elif op.verb == "resolve":
            follow = [each.verb for each in ops[at + 1 : at + 3]]
            count = 1 + (2 if follow[:2] == ["link", "retract"] else 1 if follow[:1] == ["link"] else 0)
        yield RecordedCall(ops[at : at + count])
        at += count
