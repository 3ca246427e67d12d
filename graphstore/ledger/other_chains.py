"""Reads the chain of another store, from its ledger or from a bundle, and finds what it has in common with the chain of this one.

A bundle is a dump, or the part of one after a transaction. Its lines follow each other by digests, so equal digests mean equal chains up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from graphstore.errors import ConflictError, DamageError, NotFoundError
from graphstore.ledger import backup
from graphstore.ledger.chain import FORGOTTEN, GENESIS, Verbatim, digest_of, dumps, hashed, refuse_unknown
from graphstore.ledger.database import RowReader
from graphstore.ledger.ledger import Ledger
from graphstore.ledger.locating import locate
from graphstore.values.period import BEGINNING, Instant, exactly, instant

ORIGIN = "origin"
"""In the last head of an imported transaction: digest and tx of that transaction in its own store, and which part of this one's that store had merged by then."""
_HAS = "SELECT 1 FROM chain WHERE tx = ? AND digest = ?"
_ENDS = "SELECT coalesce(min(number), 1), coalesce(max(number), 0) FROM chain"
_AT = "SELECT tx, digest FROM chain WHERE number = ?"
_PLACE = "SELECT number FROM chain WHERE tx = ? AND digest = ?"
_OF_BRANCH = """
SELECT number, head FROM chain WHERE number <= ? AND tx > ? AND instr(head, ?) ORDER BY number DESC
"""
_LAST_LINES = f"{_OF_BRANCH} LIMIT 20"
_MOST = (1 << 63) - 1


class Position(NamedTuple):
    """The place in a chain after a line, by the tx and the digest of that line."""

    tx: Instant
    digest: str


START = Position(BEGINNING, GENESIS)


class OtherLine(NamedTuple):
    """A line of another chain: its head, its bodies and its digest."""

    head: dict[str, Any]
    bodies: Sequence[bytes]
    digest: str


class OtherChain:
    """The chain of another store, or its part after the first position."""

    named: str

    def __len__(self) -> int:
        """Return the number of positions: one more than the number of lines."""
        raise NotImplementedError

    def position(self, at: int) -> Position:
        """Return a position by its place."""
        raise NotImplementedError

    def place(self, position: Position) -> int | None:
        """Return the place of a position; None if this chain does not have it."""
        raise NotImplementedError

    def lines(self, after: int) -> Iterator[Verbatim]:
        """Yield the lines after a place."""
        raise NotImplementedError

    def last_origin(self, branch: str, before: int) -> dict[str, Any] | None:
        """Return the origin of the last transaction before a place that this store imported as one of a branch; None if there is none."""
        raise NotImplementedError

    def transactions(self, after: int) -> Iterator[list[OtherLine]]:
        """Yield the transactions after a place, each as its lines. Raises DamageError if they do not follow each other, or a body does not match its hash."""
        digest, found = self.position(after).digest, list[OtherLine]()
        for line in self.lines(after):
            head = orjson.loads(line.head)
            if digest_of(line.head) != line.digest or head["prev"] != digest:
                raise self._damaged(head, "does not follow the one before it")
            refuse_unknown(head, self.named)
            for body, said, stated in zip(line.bodies, hashed(line.bodies), head["body"], strict=True):
                if said != stated and body != FORGOTTEN:
                    raise self._damaged(head, "has a body that does not match its hash")
            digest = line.digest
            found.append(OtherLine(head, line.bodies, line.digest))
            if not head.get("more"):
                yield found
                found = []

    def _damaged(self, head: dict[str, Any], why: str) -> DamageError:
        return DamageError(
            f"{self.named}: the transaction of {head['tx']} {why}. Nothing was merged. Take another copy of it."
        )


class LedgerChain(OtherChain):
    """The chain of a ledger, as it is when this is made."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self.named = ledger, ledger.named
        [(first, self._last)] = ledger.database.rows(_ENDS)
        self._before = first - 1

    def __len__(self) -> int:
        return int(self._last - self._before + 1)

    def position(self, at: int) -> Position:
        return Position(*self._ledger.database.rows(_AT, (self._before + at,))[0]) if at else START

    def place(self, position: Position) -> int | None:
        if position == START:
            return 0
        rows = self._ledger.database.rows(_PLACE, position)
        return rows[0][0] - self._before if rows and rows[0][0] <= self._last else None

    def lines(self, after: int) -> Iterator[Verbatim]:
        return self._ledger.verbatim(self._last, after=self._before + after)

    def last_origin(self, branch: str, before: int) -> dict[str, Any] | None:
        return last_origin(self._ledger.database, branch, BEGINNING, self._before + before)


class BundleChain(OtherChain):
    """The lines of a bundle. All are read and checked at once."""

    def __init__(self, bundle: Path) -> None:
        self._bundle, self.named = bundle, str(bundle)
        header = backup.header_of(bundle)
        after = header.get("after")
        self._origins: dict[str, dict[str, Any]] = header.get("origins", {})
        self._positions = [START if after is None else Position(instant(after["tx"]), after["digest"])]
        self._places = {self._positions[0]: 0}
        for at, line in enumerate(backup.lines_of(bundle), 1):
            position = Position(instant(orjson.loads(line.head)["tx"]), line.digest)
            self._positions.append(position)
            self._places[position] = at

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, at: int) -> Position:
        return self._positions[at]

    def place(self, position: Position) -> int | None:
        return self._places.get(position)

    def lines(self, after: int) -> Iterator[Verbatim]:
        for at, line in enumerate(backup.lines_of(self._bundle)):
            if at >= after:
                yield line

    def last_origin(self, branch: str, before: int) -> dict[str, Any] | None:
        found = self._origins.get(branch)
        for line in self.lines(0):
            head = orjson.loads(line.head)
            before -= 1
            if before < 0:
                break
            found = head.get(ORIGIN, found) if head.get("branch") == branch else found
        return found


@contextmanager
def opened(other: str | PathLike[str]) -> Iterator[OtherChain]:
    """Yield the chain of another store, from its folder or from a bundle. Raises NotFoundError if there is neither, DamageError for a damaged bundle."""
    place = Path(other)
    if place.is_file():
        yield BundleChain(place)
        return
    if not place.exists():
        raise NotFoundError(
            f"there is no store and no bundle at {place}. Give the folder of a store, or a file that `bundle` wrote."
        )
    folder = locate(place, read_only=True, create=False)
    with closing(folder.read_ledger()) as ledger, ledger.snapshot():
        ledger.hide_forgotten()
        yield LedgerChain(ledger)


def has(database: RowReader, position: Position) -> bool:
    """Return True if the chain of a ledger has a position."""
    return position == START or bool(database.rows(_HAS, position))


def common(database: RowReader, chain: OtherChain) -> int:
    """Return the last place of another chain that this ledger's chain has too. Raises ConflictError if that lies before the first one of a bundle."""
    low, high = 0, len(chain) - 1
    if not has(database, chain.position(0)):
        raise ConflictError(
            f"{chain.named} begins after the transaction of {exactly(chain.position(0).tx)}, which this store neither has nor has imported. "
            "Make a bundle since an earlier one, or a whole one. Nothing was merged."
        )
    while low < high:
        middle = (low + high + 1) // 2
        if has(database, chain.position(middle)):
            low = middle
        else:
            high = middle - 1
    return low


def lines_of_branch(database: RowReader, branch: str, since: Instant) -> Iterator[dict[str, Any]]:
    """Yield the heads of a branch that was made at an instant, newest first."""
    upto = _MOST
    while rows := database.rows(_LAST_LINES, (upto, since, b'"branch":' + dumps(branch))):
        yield from (
            head for head in map(orjson.loads, (head for _, head in rows)) if head.get("branch") == branch
        )
        upto = rows[-1][0] - 1


def last_origin(database: RowReader, branch: str, since: Instant, upto: int = _MOST) -> dict[str, Any] | None:
    """Return the last origin of a branch among the rows of the chain up to a number."""
    for _, raw in database.rows(_OF_BRANCH, (upto, since, b'"branch":' + dumps(branch))):
        head = orjson.loads(raw)
        if ORIGIN in head and head.get("branch") == branch:
            found: dict[str, Any] = head[ORIGIN]
            return found
    return None


def position_of(origin: dict[str, Any]) -> Position:
    """Return the position in its own chain of what an origin names."""
    return Position(instant(origin["tx"]), origin["digest"])


def known_upto(database: RowReader, tx: Instant) -> Instant:
    """Return up to which tx of this store a branch had taken over the trunk, by the tx of its `pull`. A store that it was imported from may have had less."""
    for (raw,) in database.rows("SELECT head FROM chain WHERE tx = ? ORDER BY part DESC LIMIT 1", (tx,)):
        has_upto = orjson.loads(raw).get(ORIGIN, {}).get("has")
        return tx if has_upto is None else instant(has_upto)
    return tx
