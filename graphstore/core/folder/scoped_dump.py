"""A dump of what some scopes hold of a store, as if nothing else had ever been recorded: what is outside is nowhere in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from graphstore.core.folder import restore
from graphstore.core.folder.rewrite import Compacting, Head, Transaction, chained
from graphstore.core.index.occurrences import OWN
from graphstore.core.journal.line import FORGOTTEN, GENESIS, OF_LINKS, OF_THE_STORE, UNDO
from graphstore.core.journal.positions import Line
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.scoped_rows import within
from graphstore.values.period import Instant, instant

_NOT_COPIED = ("branches", "aliases", "args")  # arguments may name what is outside
_OF_WORDS = "languages"
"""The one setting that is copied: in which languages texts are found."""


def save(journal: Ledger, scopes: tuple[str, ...], target: Path) -> int:
    """Write a dump of what some scopes hold, and close the journal. Returns the number of lines in it; raises as `restore.save`."""
    with contextlib.closing(journal):
        transactions = list(chained(_Part(journal, scopes).transactions()))
    lines = [line for transaction in transactions for line in transaction]
    digest = orjson.loads(lines[-1])["digest"] if lines else GENESIS
    return restore.write(lines, len(transactions), digest, target)


class _Part:
    """The part of a journal that some scopes hold. Of branches it has nothing, of settings only in which languages texts are found.

    A node is of its scope, an event of the text `scope` in the metadata it was first recorded with; a link is there when both its ends are.
    """

    def __init__(self, journal: Ledger, scopes: tuple[str, ...]) -> None:
        self._journal, self._scopes = journal, scopes
        self._leaving_out = _Outside()
        self._kinds: dict[str, dict[str, Any]] = {}
        self._used: set[str] = set()  # kinds of links

    def transactions(self) -> Iterator[Transaction]:
        """Yield what is left of each transaction."""
        lines: list[Line] = []
        for group in self._journal.read():
            lines += group
            if not lines[-1].head.get("more"):
                if left := self._left(lines):
                    yield left
                lines = []

    def _left(self, lines: list[Line]) -> Transaction:
        heads = [line.head for line in lines]
        if heads[0].get("branch") is not None:
            return []
        for line in lines:
            self._look(line)
        self._leaving_out.hidden = self._said_outside(lines)
        places = {id(line.head): line.places for line in lines}
        left = []
        for head, kept in self._leaving_out.transaction(heads):
            bodies = [places[id(head)][number] for number in kept]
            head["body"] = [head["body"][number] for number in kept]
            left.append((head, [self._journal.raw(*body) if body[1] else FORGOTTEN for body in bodies]))
        for head, _ in left:
            head.pop("request", None)
        if left:
            self._leaving_out.copied.add(instant(left[0][0]["tx"]))
        return left

    def _look(self, line: Line) -> None:
        """Note what a line has that is inside, and what is outside."""
        outside, head = self._leaving_out, line.head
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
        if defined := [self._kinds.pop(kind) for kind in sorted(self._used & self._kinds.keys())]:
            head["kinds"] = defined

    def _leave_occurrences(self, line: Line) -> None:
        """Leave out what an event inside was seen with, where that is not said to be of a scope inside."""
        ops = line.head.get("ops", ())
        seen = line.head.get("seen", ())
        for entry in seen:
            op = ops[entry[-1]]
            own = self._body(line, op[2]).get(OWN, {}) if len(op) > 2 else {}
            if "metadata" in own and not within(_scope_in(own), self._scopes):
                op[1] = ""
        if seen:
            line.head["seen"] = [entry for entry in seen if ops[entry[-1]][1]]

    def _said_outside(self, lines: list[Line]) -> set[str]:
        """The hashes of the reasons that a transaction gives for something outside, and of those for something inside that say the same."""
        inside: set[tuple[int, int]] = set()  # numbers of lines and of bodies
        outside: set[tuple[int, int]] = set()
        for number, line in enumerate(lines):
            head = line.head
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
            lines[line].head["body"][body] for line, body in inside if self._reason(lines[line], body) in said
        }

    def _reason(self, line: Line, body: int) -> Any:
        return self._body(line, body).get("reason")

    def _body(self, line: Line, body: int | None) -> dict[str, Any]:
        """A body; empty where there is none, or it was forgotten."""
        if body is None or not line.places[body][1]:
            return {}
        return orjson.loads(self._journal.raw(*line.places[body]))  # type: ignore[no-any-return]


def _scope_in(body: dict[str, Any]) -> Any:
    """The scope that the metadata of an event names."""
    metadata = body.get("metadata")
    return metadata.get("scope") if isinstance(metadata, dict) else None


class _Outside(Compacting):
    """Leaves out what is outside, and every operation that is not on something inside."""

    def __init__(self) -> None:
        super().__init__(set(), ())  # no branches
        self.inside: set[str] = set()
        self.inside_links: set[str] = set()
        self.copied: set[Instant] = set()
        """The transactions of which something is left."""
        self.hidden: set[str] = set()
        """The hashes of reasons that one transaction gives for something outside as well."""

    def _operations(self, heads: list[Head], firsts: list[int], used: set[int]) -> dict[int, int]:
        """The same, without the reasons that are hidden."""
        self._link_bodies |= self.hidden
        for head in heads:
            if "why" in head and head["body"][head["why"]] in self.hidden:
                del head["why"]
        return super()._operations(heads, firsts, used)

    def is_gone(self, verb: str, subject: str) -> bool:
        """Whether an operation is on something outside."""
        return self._is_gone(verb, subject)

    def _is_gone(self, verb: str, subject: str) -> bool:
        if verb == UNDO:
            return instant(subject) not in self.copied
        if verb in OF_THE_STORE:
            return True
        return subject not in (self.inside_links if verb in OF_LINKS else self.inside)
