"""A copy of a store with what some scopes hold, as if nothing else had ever been recorded: what is outside is in no file of it, so no read can show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from graphstore.core.folder.rewrite import Compacting, Head
from graphstore.core.index.occurrences import OWN
from graphstore.core.journal.line import FORGOTTEN, GENESIS, OF_LINKS, OF_THE_STORE, UNDO, encode, header
from graphstore.core.journal.positions import Line
from graphstore.core.journal.seam import Seam
from graphstore.values.period import Instant, instant

_NOT_COPIED = ("branches", "aliases", "args")  # arguments may name what is outside
_OF_WORDS = "languages"
"""The one setting that is copied: in which languages texts are found."""


def within(scope: object, granted: tuple[str, ...]) -> bool:
    """Whether a scope, a path, is one of those or below one."""
    return isinstance(scope, str) and any(scope == each or scope.startswith(f"{each}/") for each in granted)


class ScopedCopy:
    """The journal of a copy, and how far it has followed that of its store. Of branches it has nothing, of settings only in which languages texts are found.

    A node is of its scope, an event of the text `scope` in the metadata it was first recorded with; a link is there when both its ends are.
    """

    def __init__(self, source: Seam, folder: Path, scopes: tuple[str, ...]) -> None:
        self._journal = source
        self._removals = source.removals()
        self._scopes, self._prev = scopes, GENESIS
        self._leaving_out = _Outside()
        self._kinds: dict[str, dict[str, Any]] = {}
        self._used: set[str] = set()  # kinds of links
        self.crossing: set[str] = set()
        """The ids inside that ever had a link to something outside."""
        self._lines: list[Line] = []
        self._waiting: list[list[Line]] = []
        (folder / "journal").mkdir(parents=True)
        self._file = folder / "journal" / "00000001.jsonl"
        self._file.write_bytes(header(1))

    def is_of_its_store(self) -> bool:
        """Whether the journal only grew since it was read. Otherwise the copy has what was erased or taken back: make another."""
        journal = self._journal
        return journal.removals() == self._removals and not journal.renewed() and journal.unchanged()

    def follow(self, upto: Instant) -> bool:
        """Copy the transactions up to a tx. Whether the copy has more than before. Raises DamageError where the journal did not only grow."""
        for lines in self._journal.read():
            self._lines += lines
            if not lines[-1].head.get("more"):
                self._waiting.append(self._lines)
                self._lines = []
        found = []
        while self._waiting and instant(self._waiting[0][0].head["tx"]) <= upto:
            found += self._copied(self._waiting.pop(0))
        if found:
            with open(self._file, "ab") as sink:
                sink.writelines(found)
        return bool(found)

    def _copied(self, lines: list[Line]) -> list[bytes]:
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
        if left:
            self._leaving_out.copied.add(instant(left[0][0]["tx"]))
        written = []
        for number, (head, raw) in enumerate(left, 1):
            head.pop("more", None)
            head.pop("request", None)
            if number < len(left):
                head["more"] = True
            head["prev"] = self._prev
            data, self._prev, _ = encode(head, raw)
            written.append(data)
        return written

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
            else:
                self.crossing |= {begin, end} & outside.inside
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

    def close(self) -> None:
        """Close the files of the store."""
        self._journal.close()


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
