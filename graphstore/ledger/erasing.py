"""Removes things from the chain as if they had never been recorded: no tombstone, no operation on them and no link to them remains.

All else keeps its periods and its tx. Rows, operations and bodies are renumbered, and the digest chain is computed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from graphstore.ledger.chain import (
    COUNTS,
    FORGOTTEN,
    GENESIS,
    OF_LINKS,
    OF_THE_STORE,
    TOUCH,
    Verbatim,
    digest_of,
    dumps,
    encoded,
)
from graphstore.ledger.checking import transactions
from graphstore.ledger.ledger import Ledger
from graphstore.values.period import Instant, instant

Head = dict[str, Any]
Transaction = list[tuple[Head, list[bytes]]]  # its lines, each a head and its bodies
# lists of a head: entries that begin with the id of a thing, entries that begin with the id of a link, and entries that end with an operation
_OF_THINGS = "entities versions rows gaps turns told said seen".split()
_OF_LINKS = "links claims link_rows link_told linked".split()
_NAMES = ("by", "source", "target")  # arguments that are an id, `source` only of `unlink`
_BY = "closed link_closed rows link_rows gaps turns told said link_told linked seen".split()


class _Rows:
    """Maps old numbers of rows and operations of one line of belief to new ones. For the trunk it also keeps their count at each instant.

    A removed row maps to -1; a removed operation maps to the last kept one before it.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = {"rows": [], "link_rows": [], "ops": []}
        self.kept = dict.fromkeys(self.numbers, 0)
        self.known: list[tuple[Instant, ...]] = []

    def note(self, tx: Instant) -> None:
        self.known.append((tx, *map(len, self.numbers.values())))

    def forked(self, at: Instant) -> _Rows:
        """Return the rows of a branch that forks here at an instant."""
        fresh = _Rows()
        fresh.known = [known for known in self.known if known[0] <= at]
        so_far = bisect_right(self.known, at, key=lambda known: known[0])
        counts = self.known[so_far - 1][1:] if so_far else (0, 0, 0)
        for (name, numbers), count in zip(self.numbers.items(), counts, strict=True):
            fresh.numbers[name] = numbers[:count]
            fresh.kept[name] = max(fresh.numbers[name], default=-1) + 1
        return fresh


class Compacting:
    """Rewrites the heads of all transactions in one pass, without the things in `gone`, their links, and deleted branches.

    A link may have the same id as a thing. `folded`: transactions that are removed as a whole, because a later one states their effects.
    """

    def __init__(
        self, gone: set[str], deleted: Iterable[tuple[str, Instant]], folded: frozenset[Instant] = frozenset()
    ) -> None:
        self.gone, self._folded = gone, folded
        self.links: set[str] = set()  # ids of removed links
        self._trunk = self._rows = _Rows()
        self._branches: dict[str, _Rows | None] = {}  # None for a deleted branch
        self._deleted = frozenset(deleted)
        self._link_bodies: set[str] = set()  # hashes of the bodies of removed links, in one transaction

    def transaction(self, heads: list[Head]) -> list[tuple[Head, list[int]]]:
        """Return the remaining lines of a transaction, each with the numbers of the bodies that it keeps."""
        tx, branch = instant(heads[0]["tx"]), heads[0].get("branch")
        rows = self._trunk if branch is None else self._branches[branch]
        if rows is None:
            return []
        self._rows = rows
        for head in heads:
            for verb, name, *fork in head.get("branches", ()):
                if verb == "branch":
                    over = (name, tx) in self._deleted
                    parent = self._branches[fork[1]] if len(fork) > 1 else self._trunk
                    self._branches[name] = None if over or parent is None else parent.forked(instant(fork[0]))
        kept = self._transaction(heads, tx in self._folded)
        rows.note(tx)
        return kept

    def _transaction(self, heads: list[Head], is_folded: bool) -> list[tuple[Head, list[int]]]:
        for head in heads:
            self.links |= {
                name for name, source, _, target in head.get("links", ()) if {source, target} & self.gone
            }
        self._link_bodies = {
            head["body"][body]
            for head in heads
            for name, *_, body in head.get("claims", ())
            if name in self.links and body is not None
        }
        firsts, total = [], 0
        for head in heads:
            firsts.append(total)
            total += len(head.get("ops", ()))
        for head in heads:
            self._leave_out(head)
        used = {
            first + entry[-1]
            for head, first in zip(heads, firsts, strict=True)
            for name in _BY
            for entry in head.get(name, ())
        }
        numbers = self._operations(heads, firsts, used)
        self._arguments(heads, firsts, numbers)
        self._renumber(heads, firsts, numbers)
        if is_folded:
            numbers = {}
        self._count_operations(total, numbers)
        self._renumber_coverage(heads, firsts, numbers)
        _renumber_recorded(heads, firsts, numbers)
        left = [
            head
            for head in heads
            if head.get("turns")
            or set(head) - {"tx", "requires", "author", "why", "body", "prev", "more", "branch", "turns"}
        ]
        return [] if is_folded else [(head, _bodies(head)) for head in left]

    def _count_operations(self, total: int, numbers: dict[int, int]) -> None:
        rows = self._rows
        for at in range(total):
            rows.kept["ops"] += at in numbers
            rows.numbers["ops"].append(rows.kept["ops"] - 1)

    def _renumber_coverage(self, heads: list[Head], firsts: list[int], numbers: dict[int, int]) -> None:
        """Renumber the operations in the coverage of rechecks that a merge brought."""
        places, begun = self._rows.numbers["ops"], 0
        for head, first in zip(heads, firsts, strict=True):
            kept = {}
            for name, ranges in head.pop("covers", {}).items():
                if (op := first + int(name)) in numbers:
                    renumbered = [
                        [after if after < 0 else places[after], places[upto]] for after, upto in ranges
                    ]
                    kept[str(numbers[op] - begun)] = [
                        [after, upto] for after, upto in renumbered if after < upto
                    ]
            if kept:
                head["covers"] = kept
            begun += len(head.get("ops", ()))

    def _leave_out(self, head: Head) -> None:
        for closed, rows in (("closed", "rows"), ("link_closed", "link_rows")):
            numbers = self._rows.numbers[rows]
            if closed in head:
                _keep(head, closed, [[numbers[row], op] for row, op in head[closed] if numbers[row] >= 0])
            for entry in head.get(rows, ()):
                gone = entry[0] in (self.gone if rows == "rows" else self.links)
                numbers.append(-1 if gone else self._rows.kept[rows])
                self._rows.kept[rows] += not gone
        for names, left_out in ((_OF_THINGS, self.gone), (_OF_LINKS, self.links)):
            for name in names:
                if name in head:
                    _keep(head, name, [entry for entry in head[name] if entry[0] not in left_out])
        if "aliases" in head:
            _keep(head, "aliases", [entry for entry in head["aliases"] if entry[2] not in self.gone])
        for name, left_out in (("took", self.links), ("kept", self.gone), ("not_kept", self.gone)):
            for id in left_out.intersection(head.get(name, ())):
                del head[name][id]
            if not head.get(name, True):
                del head[name]

    def _operations(self, heads: list[Head], firsts: list[int], used: set[int]) -> dict[int, int]:
        """Keep the operations on what remains, and those that remaining rows name (with an empty subject). Return old number -> new number."""
        numbers: dict[int, int] = {}
        for head, first in zip(heads, firsts, strict=True):
            kept = []
            for at, (verb, subject, *more) in enumerate(head.get("ops", ()), first):
                gone = self.is_gone(verb, subject)
                if gone and at not in used:
                    continue
                numbers[at] = len(numbers)
                body = more[0] if more else None
                if gone or (body is not None and head["body"][body] in self._link_bodies):
                    more = [None, *more[1:]] if more[1:] else []
                kept.append([verb, "" if gone else subject, *more])
            _keep(head, "ops", kept)
            if not any(subject and not more for _, subject, *more in kept):
                head.pop("why", None)
        return numbers

    def _arguments(self, heads: list[Head], firsts: list[int], numbers: dict[int, int]) -> None:
        """Keep the arguments of remaining operations, without ids of removed things."""
        begun = 0
        for head, first in zip(heads, firsts, strict=True):
            ops, entries = head.get("ops", ()), head.pop("args", {})
            kept = {"*": entries["*"]} if ops and "*" in entries else {}
            for name, entry in entries.items():
                op = -1 if name == "*" else first + int(name)
                if op not in numbers or not ops[numbers[op] - begun][1]:  # its subject is removed
                    continue
                rest = {
                    field: self._without_gone(value)
                    for field, value in entry.items()
                    if field != "ops" and not (field in _NAMES and value in self.gone)
                }
                count = sum(each in numbers for each in range(op, op + entry.get("ops", 1)))
                rest |= {"ops": count} if count > 1 else {}
                if rest := {field: value for field, value in rest.items() if value != []}:
                    kept[str(numbers[op] - begun)] = rest
            if kept:
                head["args"] = kept
            begun += len(ops)

    def _without_gone(self, value: Any) -> Any:
        """Return a list of ids or links without removed ones; return any other value unchanged."""
        if not isinstance(value, list):
            return value
        return [each for each in value if self.gone.isdisjoint(each if isinstance(each, list) else (each,))]

    def is_gone(self, verb: str, subject: str) -> bool:
        """Return True if the subject of an operation is removed."""
        return verb not in OF_THE_STORE and subject in (self.links if verb in OF_LINKS else self.gone)

    def _renumber(self, heads: list[Head], firsts: list[int], numbers: dict[int, int]) -> None:
        begun = 0
        for head, first in zip(heads, firsts, strict=True):
            for name in _BY:
                for entry in head.get(name, ()):
                    entry[-1] = numbers[first + entry[-1]] - begun
            begun += len(head.get("ops", ()))


def _renumber_recorded(heads: list[Head], firsts: list[int], numbers: dict[int, int]) -> None:
    """Renumber the operations of which a head tells when another store recorded them."""
    begun = 0
    for head, first in zip(heads, firsts, strict=True):
        told = head.pop("recorded", {})
        kept = {"*": told["*"]} if "*" in told else {}
        for name, tx in told.items():
            if name != "*" and first + int(name) in numbers:
                kept[str(numbers[first + int(name)] - begun)] = tx
        if kept:
            head["recorded"] = kept
        begun += len(head.get("ops", ()))


def _keep(head: Head, name: str, entries: list[Any]) -> None:
    head.pop(name, None)
    if entries or name == "turns":  # kept even if empty: older releases recorded no turns at all
        head[name] = entries


def _bodies(head: Head) -> list[int]:
    """Return the old numbers of the bodies that a head still names, and write the new ones into the head."""
    places: list[tuple[Any, Any]] = [(entry, -1) for entry in head.get("versions", ())]
    places += [(entry, -1) for entry in head.get("claims", ()) if entry[-1] is not None]
    places += [(entry, 2) for entry in head.get("ops", ()) if len(entry) > 2 and entry[2] is not None]
    places += [(entry, 2) for entry in head.get("said", ()) if entry[2] is not None]
    if "why" in head:
        places.append((head, "why"))
    order: dict[int, int] = {}
    for holder, at in places:
        holder[at] = order.setdefault(holder[at], len(order))
    return list(order)


def left(
    ledger: Ledger,
    gone: set[str],
    folded: frozenset[Instant],
) -> Iterator[Transaction]:
    """Yield the rest of each transaction of a ledger, without the `folded` ones."""
    compacting = Compacting(gone, ledger.deleted_branches(), folded)
    for lines in transactions(ledger.database):
        kept = compacting.transaction([head for head, _ in lines])
        rest = with_bodies(ledger, lines, kept)
        for head, bodies in rest:
            _leave_out_counts(head, bodies, gone)
        if rest:
            yield rest


def with_bodies(
    ledger: Ledger, lines: list[tuple[Head, int]], kept: list[tuple[Head, list[int]]]
) -> Transaction:
    """Return the remaining lines of a transaction with the bodies that they keep."""
    firsts = {id(head): first for head, first in lines}
    rest = []
    for head, numbers in kept:
        bodies = [ledger.content(firsts[id(head)] + number) or FORGOTTEN for number in numbers]
        head["body"] = [head["body"][number] for number in numbers]
        rest.append((head, bodies))
    return rest


def _leave_out_counts(head: Head, bodies: list[bytes], gone: set[str]) -> None:
    """Remove the counts of removed things from recorded lookups."""
    for verb, _, *body in head.get("ops", ()):
        if verb == TOUCH:
            counts = orjson.loads(bodies[body[0]])
            counts[COUNTS] = {name: count for name, count in counts[COUNTS].items() if name not in gone}
            bodies[body[0]] = dumps(counts)
            head["body"][body[0]] = digest_of(bodies[body[0]])


def chained(rest: Iterable[Transaction]) -> Iterator[Verbatim]:
    """Yield the lines of transactions with a new digest chain."""
    digest = GENESIS
    for transaction in rest:
        for left_lines, (head, bodies) in zip(range(len(transaction) - 1, -1, -1), transaction, strict=True):
            head.pop("more", None)
            if left_lines:
                head["more"] = True
            head["prev"] = digest
            line = encoded(head, bodies)
            digest = line.digest
            yield line
