"""Writes a dump of what some scopes of a store contain, as if nothing else had been recorded. It has no trace of what is outside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from graphstore.ledger import backup as restore
from graphstore.ledger.chain import OF_LINKS, OF_THE_STORE, OWN, UNDO, Verbatim
from graphstore.ledger.checking import transactions
from graphstore.ledger.erasing import Compacting, Head, Transaction, chained, with_bodies
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.scoped_rows import within
from graphstore.values.period import Instant, instant
from graphstore.values.vocabulary import JOINED, JOINS

Line = tuple[Head, int]  # a head, and the number of its first body
_NOT_COPIED = ("branches", "aliases")
_OF_WORDS = "languages"
"""The only setting that is copied: the languages in which texts are searched."""


def save(ledger: Ledger, scopes: tuple[str, ...], target: Path) -> int:
    """Write a dump of what some scopes contain, and close the ledger. Return its number of lines; raises as `restore.save` does."""
    part = _part(ledger, scopes)
    return restore.write(chained(part), len(part), target)


def lines(ledger: Ledger, scopes: tuple[str, ...]) -> Iterator[Verbatim]:
    """Return the lines of such a dump, and close the ledger."""
    return chained(_part(ledger, scopes))


def _part(ledger: Ledger, scopes: tuple[str, ...]) -> list[Transaction]:
    with contextlib.closing(ledger):
        return list(_Part(ledger, scopes).transactions())


class _Part:
    """The part of a chain that some scopes contain. It has no branches, and of the settings only the languages of texts, and that nodes inside were joined.

    A node is in its own scope. An event is in the `scope` of the metadata that it was first recorded with. A link is inside if both its ends are.
    """

    def __init__(self, ledger: Ledger, scopes: tuple[str, ...]) -> None:
        self._ledger, self._scopes = ledger, scopes
        self._leaving_out = _Outside()
        self._kinds: dict[str, dict[str, Any]] = {}
        self._used: set[str] = set()  # kinds of the links inside

    def transactions(self) -> Iterator[Transaction]:
        """Yield the remaining part of each transaction."""
        for lines in transactions(self._ledger.database):
            if left := self._left(lines):
                yield left

    def _left(self, lines: list[Line]) -> Transaction:
        heads = [head for head, _ in lines]
        if heads[0].get("branch") is not None:
            return []
        for line in lines:
            self._look(line)
        self._leaving_out.hidden = self._said_outside(lines)
        left = with_bodies(self._ledger, lines, self._leaving_out.transaction(heads))
        for head, _ in left:
            head.pop("request", None)
        if left:
            self._leaving_out.copied.add(instant(left[0][0]["tx"]))
        return left

    def _look(self, line: Line) -> None:
        """Record what a line has inside and outside, and remove what is never copied."""
        outside, (head, _) = self._leaving_out, line
        for name in _NOT_COPIED:
            head.pop(name, None)
        if spoken := [{_OF_WORDS: one[_OF_WORDS]} for one in head.pop("settings", ()) if _OF_WORDS in one]:
            head["settings"] = spoken
        bodies = {name: body for name, _, body in head.get("versions", ())}
        for name, *more in head.get("entities", ()):
            scope = more[2] if len(more) > 1 else _scope_in(self._body(line, bodies.get(name)))
            (outside.inside if within(scope, self._scopes) else outside.gone).add(name)
        self._leave_occurrences(line)
        kinds = [kind for kind in head.pop("kinds", ()) if "promoted" not in kind]
        self._kinds |= {kind["name"]: kind for kind in kinds}
        for name, begin, kind, end in head.get("links", ()):
            if {begin, end} <= outside.inside:
                outside.inside_links.add(name)
                self._used.add(kind)
                if kind == JOINED:
                    head.setdefault("settings", []).append({JOINS: True})
        if defined := [self._kinds.pop(kind) for kind in sorted(self._used & self._kinds.keys())]:
            head["kinds"] = defined

    def _leave_occurrences(self, line: Line) -> None:
        """Remove occurrences of events inside whose own metadata do not name a scope inside."""
        head, _ = line
        ops, seen = head.get("ops", ()), head.get("seen", ())
        for entry in seen:
            op = ops[entry[-1]]
            own = self._body(line, op[2]).get(OWN, {}) if len(op) > 2 else {}
            if "metadata" in own and not within(_scope_in(own), self._scopes):
                op[1] = ""
        if seen:
            head["seen"] = [entry for entry in seen if ops[entry[-1]][1]]

    def _said_outside(self, lines: list[Line]) -> set[str]:
        """Return the hashes of reasons given for something outside, and of equal reasons for something inside."""
        inside: set[tuple[int, int]] = set()  # numbers of lines and of bodies
        outside: set[tuple[int, int]] = set()
        for number, (head, _) in enumerate(lines):
            for verb, subject, *more in head.get("ops", ()):
                body = more[0] if more else head.get("why")
                if body is not None:
                    (outside if self._leaving_out.is_gone(verb, subject) else inside).add((number, body))
            for name, *_, body in head.get("claims", ()):
                if body is not None and name not in self._leaving_out.inside_links:
                    outside.add((number, body))
        if not inside or not outside:
            return set()
        said = {self._reason(lines[line], body) for line, body in outside} - {None}
        return {
            lines[line][0]["body"][body] for line, body in inside if self._reason(lines[line], body) in said
        }

    def _reason(self, line: Line, body: int) -> Any:
        return self._body(line, body).get("reason")

    def _body(self, line: Line, body: int | None) -> dict[str, Any]:
        """Return a body; {} if there is none or it was forgotten."""
        data = None if body is None else self._ledger.content(line[1] + body)
        return {} if data is None else orjson.loads(data)


def _scope_in(body: dict[str, Any]) -> Any:
    """Return the scope in the metadata of an event."""
    metadata = body.get("metadata")
    return metadata.get("scope") if isinstance(metadata, dict) else None


class _Outside(Compacting):
    """Removes what is outside, and every operation that is not on something inside."""

    def __init__(self) -> None:
        super().__init__(set(), ())  # no branches
        self.inside: set[str] = set()
        self.inside_links: set[str] = set()
        self.copied: set[Instant] = set()
        """The transactions of which something remains."""
        self.hidden: set[str] = set()
        """The hashes of reasons that a transaction also gives for something outside."""

    def _operations(self, heads: list[Head], firsts: list[int], used: set[int]) -> dict[int, int]:
        """Keep the operations as `Compacting` does, but without hidden reasons."""
        self._link_bodies |= self.hidden
        for head in heads:
            if "why" in head and head["body"][head["why"]] in self.hidden:
                del head["why"]
        return super()._operations(heads, firsts, used)

    def is_gone(self, verb: str, subject: str) -> bool:
        """Return True if an operation is on something outside."""
        if verb == UNDO:
            return instant(subject) not in self.copied
        if verb in OF_THE_STORE:
            return True
        return subject not in (self.inside_links if verb in OF_LINKS else self.inside)
