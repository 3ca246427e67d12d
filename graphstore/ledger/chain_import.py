"""Writes the transactions of another store's chain as those of a branch: with their operations, authors and bodies, at new instants.

Rows are numbered on a branch as they are in the other store after the common part, so a head keeps its meaning. When it was recorded there is `recorded_at` of all that it
states. Contents of what this store has forgotten are not written, and what the other store has forgotten is left as it is here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from graphstore.errors import ConflictError
from graphstore.ledger.branch_ledger import BranchDatabase
from graphstore.ledger.branch_records import BranchRecord
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import FORGETTING, FORGOTTEN, FORGOTTEN_THERE, RECORDED, UNDO, dumps
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.other_chains import (
    ORIGIN,
    OtherChain,
    OtherLine,
    Position,
    has,
    lines_of_branch,
    position_of,
)
from graphstore.values.period import BEGINNING, Instant, instant, iso, moment

Head = dict[str, Any]
_DROPPED = ("prev", "body", "more", "request", "branches", "covers", "aliases", ORIGIN)
_REWRITTEN = "SELECT value FROM property WHERE name = 'rewritten'"
_GONE = "SELECT e.id, f.word FROM forgotten f CROSS JOIN entity e ON e.number = f.entity"
_GONE_LINKS = """
SELECT l.id FROM json_each(?) j CROSS JOIN entity e ON e.id = j.value CROSS JOIN link l ON l.source = e.number
UNION SELECT l.id FROM json_each(?) j CROSS JOIN entity e ON e.id = j.value CROSS JOIN link l ON l.target = e.number
"""
_CLOSED = "SELECT p.number FROM json_each(?) j CROSS JOIN period p ON p.number = j.value WHERE p.closed_by IS NOT NULL"
_HELD = """
SELECT e.id, p.number FROM json_each(?) j CROSS JOIN entity e ON e.id = j.value
LEFT JOIN period p ON p.entity = e.number AND p.closed_by IS NULL ORDER BY e.id, p.number
"""
_RECORDED_AT = "SELECT tx FROM all_operation WHERE number >= ? AND number < ? AND recorded = ? LIMIT 1"
_THERE = {verb: f"{word}_there" for verb, word in FORGETTING.items()}


class ImportPlace(NamedTuple):
    """Where an import goes on: on which branch, and after which place of the other chain."""

    branch: str
    after: int


def find_place(
    ledger: Ledger, chain: OtherChain, branches: Iterable[BranchRecord], name: str | None
) -> ImportPlace | None:
    """Return where an earlier import of a chain goes on; None if there is none that can. Raises ConflictError if `name` names a branch of something else."""
    database = ledger.database
    [(rewritten,)] = database.rows(_REWRITTEN)
    for record in branches:
        if name not in (None, record.name) or record.last is None:
            continue
        after = None
        for head in lines_of_branch(database, record.name, record.made):
            origin = head.get(ORIGIN)
            if origin is None and not all(verb in FORGOTTEN_THERE for verb, *_ in head.get("ops", ())):
                break  # it was written here too
            if origin is not None and (after := chain.place(position_of(origin))) is None:
                last = chain.position(len(chain) - 1)
                is_older = any(
                    position_of(one[ORIGIN]) == last
                    for one in lines_of_branch(database, record.name, record.made)
                    if ORIGIN in one
                )
                after = len(chain) - 1 if is_older else None
            if origin is not None:
                after = after if origin["rewritten"] == rewritten else None
                break
        if after is not None:
            return ImportPlace(record.name, after)
        if name is not None:
            raise ConflictError(
                f"branch {name!r} was not imported from {chain.named}, or was changed here since, or one of the two chains was rewritten. "
                "Leave name= out, or give another one: what both have is recognised, and not merged twice."
            )
    return None


class ChainImport:
    """Writes transactions of another chain on a branch, from an instant on. The caller has the turn to write, and a group is open."""

    def __init__(self, ledger: Ledger, line: BranchDatabase, chain: OtherChain, tx: Instant) -> None:
        self._ledger, self._line, self._chain, self._tx = ledger, line, chain, tx
        self._name = line.branch or ""
        self.count = 0
        self.first = tx
        [(self._rewritten,)] = ledger.database.rows(_REWRITTEN)
        self._txs: dict[Instant, Instant] = {}  # tx there -> tx here
        self._origins: dict[str, Head] = {}  # of branches of the other store, the last seen so far
        self._gone: dict[str, str] = dict(ledger.database.rows(_GONE))
        erased = dumps([id for id, word in self._gone.items() if word == "erased"]).decode()
        self._gone_links = {id for (id,) in line.rows(_GONE_LINKS, (erased, erased))} if self._gone else set()
        self._met: set[str] = set()  # what is forgotten here, and was written on the branch
        self.forgotten_there: list[str] = []

    def write(self, after: int, lines: list[OtherLine]) -> None:
        """Write one transaction of the other chain. `after`: the place before it. Those of its branches are only looked at."""
        branch = lines[0].head.get("branch")
        if branch is not None:
            self._origins[branch] = lines[-1].head.get(ORIGIN) or self._origins.get(branch, {})
            return
        tx, there = self._tx, lines[0].head["tx"]
        self._txs[instant(there)] = tx
        origin: Head = {"digest": lines[-1].digest, "tx": there, "rewritten": self._rewritten}
        merged = [
            name for line in lines for verb, name, *_ in line.head.get("branches", ()) if verb == "merge"
        ]
        mirrors = {name: seen for name in merged if (seen := self._seen_of(name, after)) is not None}
        if mirrors:
            origin["has"] = moment(max(position.tx for position in mirrors.values()))
        made = []
        for line in lines:
            head, bodies = self._without_gone(line.head, line.bodies)
            made.append((self._rewrite(head, tx, mirrors), bodies))
        made[-1][0][ORIGIN] = origin
        self._append(made)
        self.count += 1

    def finish(self) -> None:
        """Record on the branch what is forgotten here of what was written on it."""
        if self._met:
            verbs = {"erased": "erased_there", "evicted": "evicted_there"}
            ops, closed = list[list[str]](), list[list[int]]()
            for id, period in self._line.rows(_HELD, (dumps(sorted(self._met)).decode(),)):
                if not ops or ops[-1][1] != id:
                    ops.append([verbs[self._gone[id]], id])
                closed += [] if period is None else [[period % SPAN, len(ops) - 1]]
            self._append(
                [
                    (
                        {
                            "tx": moment(self._tx),
                            "branch": self._name,
                            "ops": ops,
                            "closed": closed,
                            "turns": [],
                        },
                        [],
                    )
                ]
            )

    def _append(self, lines: list[tuple[Head, list[bytes]]]) -> None:
        self._ledger.append(lines)
        self._tx += 1

    def _seen_of(self, name: str, after: int) -> Position | None:
        """Return up to where this store was imported there as a branch; None if the branch is something else."""
        origin = self._origins.get(name) or self._chain.last_origin(name, after)
        if origin is None:
            return None
        position = position_of(origin)
        return position if has(self._ledger.database, position) else None

    def _rewrite(self, head: Head, tx: Instant, mirrors: dict[str, Position]) -> Head:
        """Return a head as one of the branch. A merge of this store there is a `pull` of the branch here."""
        made = {name: value for name, value in head.items() if name not in _DROPPED}
        made |= {
            "branch": self._name,
            "tx": moment(tx),
            "recorded": {"*": head["tx"], **head.get("recorded", {})},
        }
        made["requires"] = sorted({*head.get("requires", ()), RECORDED} - {"covers"})
        ops = []
        for verb, subject, *more in head.get("ops", ()):
            if verb == "merge" and subject in mirrors:
                verb, subject = "pull", self._name
            elif verb == UNDO:
                subject = self._instant_here(subject)
            elif verb in _THERE and subject:
                verb = _THERE[verb]
                self.forgotten_there.append(subject)
            ops.append([verb, subject, *more])
        if ops:
            made["ops"] = ops
        if aliases := [["", *more] for name, *more in head.get("aliases", ()) if name in mirrors]:
            made["aliases"] = aliases
        return made

    def _instant_here(self, there: str) -> str:
        """Return the tx on the branch of a transaction of the other store, as an `undo` names it. One of the common part has the same tx.

        An `undo` that came there with a merge names a transaction of a branch, which is not here: then the answer is the tx of none.
        """
        tx, line = instant(there), self._line.line
        if tx <= line.fork:
            return there
        found = self._txs.get(tx)
        if found is None:
            low = line.number * SPAN
            rows = self._ledger.database.rows(_RECORDED_AT, (low, low + SPAN, tx))
            found = rows[0][0] if rows else BEGINNING
        return iso(found)

    def _without_gone(self, head: Head, bodies: Iterable[bytes]) -> tuple[Head, list[bytes]]:
        """Return a line without the contents and reasons of what is forgotten here. Its rows stay, so that the numbers of rows do."""
        left = list(bodies)
        if not self._gone:
            return head, left
        for id, source, _, target in head.get("links", ()):
            if "erased" in (self._gone.get(source), self._gone.get(target)):
                self._gone_links.add(id)
        hidden, shown = set[int](), set[int]()
        for id, *_, body in head.get("versions", ()):
            (hidden if id in self._gone else shown).add(body)
        for id, _, body, *_ in head.get("said", ()):
            if body is not None:
                (hidden if id in self._gone else shown).add(body)
        for id, *_, body in head.get("claims", ()):
            if body is not None:
                (hidden if id in self._gone_links else shown).add(body)
        for _, subject, *more in head.get("ops", ()):
            if more and more[0] is not None:
                (hidden if subject in self._gone or subject in self._gone_links else shown).add(more[0])
        for body in hidden - shown:
            left[body] = FORGOTTEN
        for name in ("entities", "rows", "versions"):
            self._met |= {entry[0] for entry in head.get(name, ()) if entry[0] in self._gone}
        closed = head.get("closed", ())
        if closed:
            numbers = [self._line.line.row("period", place) for place, _ in closed]
            known = {number for (number,) in self._line.rows(_CLOSED, (dumps(numbers).decode(),))}
            open_ones = [entry for entry, number in zip(closed, numbers, strict=True) if number not in known]
            head = {**head, "closed": open_ones}
        return head, left
